"""Each rule finds what its table says, and a rule with any of its conditions bent no longer does."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.findings import Finding
from policies import checks
from tests.support.policies.bend import bent, changed
from tests.support.policies.rule_tables import TABLES, Row
from tests.support.rows import for_each

if TYPE_CHECKING:
    from types import ModuleType

ROWS = [(name, row) for name, rows in TABLES.items() for row in rows]
MODULES: list[ModuleType] = [
    import_module(found.name)
    for found in iter_modules(checks.__path__, "policies.checks.")
    if found.name not in {"policies.checks.rule", "policies.checks.own"}
]


def module_of(name: str) -> ModuleType:
    """The module that holds the check of a rule."""
    return next(one for one in MODULES if hasattr(one, f"check_{name}"))


def outcome(module: ModuleType, name: str, row: Row) -> str | None:
    """The rule's findings in one text; None for none."""
    found = getattr(module, row.function.replace("check", f"check_{name}", 1))(*row.args, **row.named)
    findings = found if isinstance(found, tuple) else () if found is None else (found,)
    assert all(isinstance(one, Finding) for one in findings)
    return "\n".join(map(str, findings)) or None


def holds(module: ModuleType, name: str, row: Row) -> bool:
    message = outcome(module, name, row)
    return message is None if row.says is None else message is not None and row.says in message


@for_each("name, row", ROWS)
def test_a_rule_finds_what_its_table_says(name: str, row: Row) -> None:
    module = module_of(name)
    message = outcome(module, name, row)

    if row.says is None:
        assert message is None
    else:
        assert message is not None
        assert row.says in message


def test_every_rule_has_a_table_with_both_answers() -> None:
    codes: dict[str, set[str]] = {}
    for name, rows in TABLES.items():
        assert {row.says is None for row in rows} == {True, False}
        messages = [outcome(module_of(name), name, row) or "" for row in rows]
        codes[name] = {message.rpartition("[")[2].removesuffix("]") for message in messages if message}

    assert {len(each) for each in codes.values()} == {1}
    assert set().union(*codes.values()) == {rule.code for rule in checks.RULES}


@pytest.mark.parametrize("original", MODULES, ids=lambda one: one.__name__.rpartition(".")[2])
def test_no_bent_condition_survives_the_tables(original: ModuleType) -> None:
    rows = [(name, row) for name, row in ROWS if module_of(name) is original]
    survivors, count = [], 0
    for tree, module in bent(original):
        count += 1
        noticed = next((place for place, each in enumerate(rows) if not survives(module, *each)), None)
        if noticed is None:
            survivors.append(changed(original, tree))
        else:  # what notices one often notices the next
            rows.insert(0, rows.pop(noticed))

    assert survivors == []
    assert count > 1


def survives(module: ModuleType, name: str, row: Row) -> bool:
    try:
        return holds(module, name, row)
    except Exception:  # noqa: BLE001 - a bent rule that breaks is a rule that was noticed
        return False


def test_bending_is_noticed_where_a_table_is_too_short() -> None:
    name = "scale_to_zero"
    short: list[Any] = [row for row in TABLES[name] if row.args[0] != row.named["nodes"]]

    assert any(all(survives(module, name, row) for row in short) for _, module in bent(module_of(name)))
