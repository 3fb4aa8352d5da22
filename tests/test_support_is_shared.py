"""What tests share lies in tests/support: no test module imports another."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

TESTS = PROJECT / "tests"
SCENARIOS = TESTS / "policies" / "test_every_rule_runs_in_the_engine.py"
"""Its subject is the tests themselves: which of them runs a rule in the engine."""
FILES = [path for path in TESTS.rglob("*.py") if "programs" not in path.parts and path != SCENARIOS]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(TESTS).as_posix())
def test_test_module_is_imported_by_no_other_file(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    names = {
        f"{node.module}.{one.name}" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names
    }
    parts = {part for name in modules | names if name.startswith("tests.") for part in name.split(".")[1:3]}
    assert not {part for part in parts if part.startswith("test_") or part == "conftest"}
