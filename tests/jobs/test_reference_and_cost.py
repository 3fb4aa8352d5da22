"""The documentation is made from the models; costs are shown only where a price is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import jobs
from amlstack.base.models import described
from amlstack.base.paths import PROJECT
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from jobs import launchers
from jobs.planning.plans import costs
from tests.support.rows import for_each

if TYPE_CHECKING:
    import pytest


def test_every_launcher_and_field_is_documented() -> None:
    page = (PROJECT / "docs/reference/launchers.md").read_text()
    for kind in launchers.LAUNCHERS:
        assert f"### {kind.__name__}\n" in page
    for name, meaning in described(jobs.Job).items():
        assert f"| `{name}` |" in page
        assert meaning in page


def planned(**fields: object) -> jobs.Plan:
    job = jobs.Job(command="python t.py", environment="azureml:e:1", compute="a", nodes=2, **fields)
    return jobs.plan(job, jobs.Target("Standard_ND96asr_v4", "a", 2))


def test_a_cost_is_not_shown_without_a_price(monkeypatch: pytest.MonkeyPatch) -> None:
    row = sizes.get("Standard_ND96asr_v4")
    assert row is not None
    unpriced = replace(row, prices=())
    monkeypatch.setattr(sizes, "get", lambda name: unpriced)
    assert costs(planned()) == {}


@for_each(
    "target, says",
    [
        (jobs.Target("Standard_ND96isr_H100_v5", region="uksouth"), "245.80 USD per hour (uksouth, 2026-08, Azure's"),
        (jobs.Target("Standard_ND96isr_H100_v5", region="uksouth", low_priority=True), "49.16 USD per hour (uksouth"),
        (jobs.Target("Standard_ND96isr_H100_v5", region="uksouth", low_priority=True), "list, low priority)"),
        (jobs.Target("Standard_ND96asr_v4", region="westeurope", low_priority=True), "70.71 USD per hour (westeurope"),
        (jobs.Target("Standard_ND96asr_v4", region="westeurope", low_priority=True), "copy, dedicated nodes)"),
        (jobs.Target("Standard_ND96asr_v4"), "54.39 USD per hour (eastus"),
    ],
)
def test_a_cost_is_that_of_the_region_and_the_priority(target: jobs.Target, says: str) -> None:
    job = jobs.Job(command="python t.py", environment="azureml:e:1", compute="a", nodes=2)

    assert says in str(costs(jobs.plan(job, target))[""])


def test_with_a_price_the_bound_follows_from_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    row = sizes.get("Standard_ND96asr_v4")
    assert row is not None
    priced = replace(row, prices=(Price(10.0, "westeurope", date(2026, 7, 1), "a price list"),))
    monkeypatch.setattr(sizes, "get", lambda name: priced)
    open_ended = costs(planned())[""]
    assert str(open_ended) == "20.00 USD per hour (westeurope, 2026-07, a price list)"
    bounded = costs(planned(limits=jobs.Limits(timeout=5400)))[""]
    assert (bounded.per_hour, bounded.most) == (20.0, 30.0)
    assert "at most 30.00 USD in 1.5 h" in str(bounded)


def test_timeouts_of_trials_alone_bound_the_cost_of_a_sweep() -> None:
    loaded = jobs.load(PROJECT / "examples" / "sweep" / "sweep.py")
    (sweep,) = loaded.jobs
    (price,) = costs(jobs.resolve(sweep, lambda _: (jobs.Target("Standard_ND96asr_v4"), ()))).values()
    assert "until its trials' timeouts" in str(price)
