"""Shared code of tests lies in tests/support: no test module imports another."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.source_trees import tree_of

if TYPE_CHECKING:
    from pathlib import Path

TESTS = PROJECT / "tests"
SCENARIOS = TESTS / "policies" / "test_every_rule_runs_in_the_engine.py"
"""Its subject is the tests themselves: which of them runs a rule in the engine."""
MODULES = {path.stem for path in TESTS.rglob("*.py") if path.stem.startswith("test_")} | {"conftest"}
FILES = [path for path in TESTS.rglob("*.py") if "programs" not in path.parts and path != SCENARIOS]


def imported(path: Path) -> set[str]:
    """The test modules and conftests that a file imports, or imports from."""
    words = set(re.findall(r"\b(?:test_\w+|conftest)\b", text := path.read_text("utf-8")))
    if "from tests" not in text or words.isdisjoint(MODULES):  # most of the time goes into parsing
        return set()
    imports = [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom)]
    names = {node.module or "" for node in imports} | {
        f"{node.module}.{one.name}" for node in imports for one in node.names
    }
    parts = {part for name in names if name.startswith("tests.") for part in name.split(".")[1:3]}
    return {part for part in parts if part.startswith("test_") or part == "conftest"}


def test_no_test_module_is_imported_by_another_file() -> None:
    assert len(FILES) > 250
    imports = {path.relative_to(TESTS).as_posix(): imported(path) for path in FILES}
    assert {file: modules for file, modules in imports.items() if modules} == {}
