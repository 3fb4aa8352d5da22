"""Each rule finds what its table says, and a rule with any of its conditions bent no longer does."""

from __future__ import annotations

import ast
import copy
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.findings import Finding
from policies import checks
from tests.support.policies.bend import Bend
from tests.support.policies.rule_tables import TABLES, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pkgutil import ModuleInfo

ROWS = [(name, row) for name, rows in TABLES.items() for row in rows]


def rule_modules() -> Iterator[ModuleInfo]:
    """The modules inside the folders of checks: one rule each."""
    for found in walk_packages(checks.__path__, "policies.checks."):
        if not found.ispkg and found.name.count(".") == 3:
            yield found


def outcome(module: ModuleType, row: Row) -> str | None:
    """What the rule says, all findings in one text; None for nothing."""
    found = getattr(module, row.function)(*row.args, **row.named)
    findings = found if isinstance(found, tuple) else () if found is None else (found,)
    assert all(isinstance(one, Finding) for one in findings)
    return "\n".join(map(str, findings)) or None


def holds(module: ModuleType, row: Row) -> bool:
    message = outcome(module, row)
    return message is None if row.says is None else message is not None and row.says in message


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_a_rule_finds_what_its_table_says(name: str, row: Row) -> None:
    module = import_module(f"policies.checks.{name}")
    message = outcome(module, row)

    if row.says is None:
        assert message is None
    else:
        assert message is not None
        assert row.says in message
        assert message.endswith(f"[{module.RULE.code}]")


def test_every_rule_has_a_table_with_both_answers() -> None:
    modules = {found.name.removeprefix("policies.checks.") for found in rule_modules()}

    assert modules == set(TABLES)
    for rows in TABLES.values():
        assert {row.says is None for row in rows} == {True, False}


def mutants(name: str) -> Iterator[tuple[int, str, ModuleType]]:
    """Every module that differs from a rule's by one bent condition."""
    source = import_module(f"policies.checks.{name}")
    assert source.__file__ is not None
    tree = ast.parse(Path(source.__file__).read_text(encoding="utf-8"))
    lines = set(ast.unparse(tree).splitlines())
    number = 0
    while True:
        bend = Bend(number)
        bent = ast.fix_missing_locations(bend.visit(copy.deepcopy(tree)))
        if bend.met <= number:
            return
        module = ModuleType(f"bent_{name.replace('.', '_')}")
        sys.modules[module.__name__] = module
        try:
            exec(compile(bent, source.__file__, "exec"), module.__dict__)
        finally:
            del sys.modules[module.__name__]
        changed = [line for line in ast.unparse(bent).splitlines() if line not in lines]
        yield number, "\n".join(changed), module
        number += 1


# A bent condition that changes nothing anybody can observe: module → lines as they read when bent.
EQUIVALENT: dict[str, set[str]] = {}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_no_bent_condition_survives_the_table(name: str) -> None:
    survivors = []
    count = 0
    for _, changed, module in mutants(name):
        count += 1
        if changed.strip() in EQUIVALENT.get(name, set()):
            continue
        if all(survives(module, row) for row in TABLES[name]):
            survivors.append(changed)

    assert survivors == []
    assert count > 1


def survives(module: ModuleType, row: Row) -> bool:
    try:
        return holds(module, row)
    except Exception:  # noqa: BLE001 - a bent rule that breaks is a rule that was noticed
        return False


def test_bending_is_noticed_where_a_table_is_too_short() -> None:
    short: list[Any] = [row for row in TABLES["cluster.scale_to_zero"] if row.args[0] != row.named["nodes"]]

    assert any(all(survives(module, row) for row in short) for _, _, module in mutants("cluster.scale_to_zero"))
