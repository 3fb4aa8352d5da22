"""Each rule finds what its table says, and a rule with any of its conditions bent no longer does."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.findings import Finding
from policies import checks
from tests.support.policies.bend import bent, changed
from tests.support.policies.rule_tables import TABLES, Row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pkgutil import ModuleInfo
    from types import ModuleType

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


# A bent condition that changes nothing anybody can observe: module → lines as they read when bent.
EQUIVALENT: dict[str, set[str]] = {}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_no_bent_condition_survives_the_table(name: str) -> None:
    survivors = []
    count = 0
    original = import_module(f"policies.checks.{name}")
    for tree, module in bent(original):
        count += 1
        if all(survives(module, row) for row in TABLES[name]):
            lines = changed(original, tree)
            if lines.strip() not in EQUIVALENT.get(name, set()):
                survivors.append(lines)

    assert survivors == []
    assert count > 1


def survives(module: ModuleType, row: Row) -> bool:
    try:
        return holds(module, row)
    except Exception:  # noqa: BLE001 - a bent rule that breaks is a rule that was noticed
        return False


def test_bending_is_noticed_where_a_table_is_too_short() -> None:
    short: list[Any] = [row for row in TABLES["cluster.scale_to_zero"] if row.args[0] != row.named["nodes"]]

    original = import_module("policies.checks.cluster.scale_to_zero")
    assert any(all(survives(module, row) for row in short) for _, module in bent(original))
