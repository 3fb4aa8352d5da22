"""The fact that each rule judges: rows of resources that hold every condition in between."""

from __future__ import annotations

from dataclasses import replace

import pytest

from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from policies.evaluation import bindings, verdicts
from policies.pack.server import Pack
from tests.support.policies.bend import bent, changed
from tests.support.policies.binding_rows import ROWS, Row
from tests.support.policies.binding_rows.rows import H100
from tests.support.policies.showing import TODAY, request, shown
from tests.support.rows import for_each


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """One size has a price, the one that the examples speak of."""
    size = sizes.get(H100)
    assert size is not None
    at_home = Price(100.0, "westeurope", TODAY, "made up")
    abroad = Price(120.0, "uksouth", TODAY, "made up", low_priority=24.0)
    with_price = replace(size, prices=(at_home, abroad))
    known = {**sizes.by_lower_name(), H100.lower(): with_price}
    monkeypatch.setattr(sizes, "by_lower_name", lambda: known)


def holds(one: Row) -> bool:
    pack = Pack("amlstack", "1.0.0", TODAY, one.config)
    answers = [shown(pack.Analyze(request(token, props), None)) for token, props in one.shown]
    refusing = {code for level, code, _ in answers[-1] if level == "mandatory"}
    waits = [message for _, code, message in answers[-1] if code == "checked-at-up" and one.code in message]
    return (one.code in refusing) is one.speaks and bool(waits) is one.waits


@for_each("one", ROWS)
def test_a_rule_judges_what_it_is_bound_to(one: Row) -> None:
    assert holds(one)


@pytest.mark.tools
def test_no_bent_condition_of_a_binding_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    survivors = []
    bound = {one.rule.code for one in bindings.BINDINGS}
    rows = [one for one in ROWS if one.code in bound]
    for source, module in bent(bindings):
        of_kind = {kind: tuple(one for one in module.BINDINGS if kind in one.rule.kinds) for kind in verdicts._OF_KIND}
        monkeypatch.setattr(verdicts, "_OF_KIND", of_kind)
        for name in ("cluster_of", "paid_as"):
            monkeypatch.setattr(verdicts, name, getattr(module, name))
        noticed = next((place for place, one in enumerate(rows) if not survives(one)), None)
        if noticed is None:
            survivors.append(changed(bindings, source))
        else:  # what notices one often notices the next
            rows.insert(0, rows.pop(noticed))

    assert survivors == []


def survives(one: Row) -> bool:
    try:
        return holds(one)
    except Exception:  # noqa: BLE001 - a bent binding that breaks was noticed
        return False
