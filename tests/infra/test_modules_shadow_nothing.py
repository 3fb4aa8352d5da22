"""Pulumi puts infra/ first on the module path: a module there must not have the name of another that is importable."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

from amlstack.base.paths import PROJECT
from tests.support.rows import for_each

NAMES = sorted(
    path.stem for path in (PROJECT / "infra").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
)


@for_each("name", [name for name in NAMES if not name.startswith("__")])
def test_a_module_of_the_program_hides_no_other(name: str) -> None:
    others = [folder for folder in sys.path if Path(folder).resolve() != PROJECT / "infra"]
    assert name not in sys.stdlib_module_names
    assert importlib.machinery.PathFinder.find_spec(name, others) is None
