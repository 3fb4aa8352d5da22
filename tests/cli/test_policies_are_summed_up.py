"""What `amlstack up` says of the policies' verdicts."""

from __future__ import annotations

from typing import Any

from amlstack.cli import summary
from amlstack.engine import Outcome

OUTPUTS: dict[str, Any] = {"workspace": {"name": "w", "resource_group": "g"}, "clusters": {}, "jobs": {}}


def policy(name: str, level: str, resource: str) -> dict[str, Any]:
    urn = f"urn:pulumi:sandbox::amlstack::azure-native:machinelearningservices:Compute::{resource}"
    said = {
        "policyName": name,
        "enforcementLevel": level,
        "resourceUrn": urn,
        "message": f"{name} is a rule.\nDo this.",
    }
    return {"policyEvent": said}


def outcome(*events: dict[str, Any]) -> Outcome:
    made = Outcome()
    for event in events:
        made.take(event)
    return made


def rows(made: Outcome) -> list[tuple[str, str]]:
    return [row for row in summary.rows(made, OUTPUTS, {}) if row[0] in {"policies", "advice"}]


def test_preview_and_update_say_the_same_and_it_is_counted_once() -> None:
    refused = policy("sriov-fabric", "mandatory", "a100")
    made = outcome({"preludeEvent": {}}, refused, {"preludeEvent": {}}, refused)
    assert len(made.refusals) == 1
    assert rows(made) == [("policies", "pack: 1 violation in 0 resources")]


def test_advice_is_no_violation_and_comes_once_for_all_its_resources() -> None:
    made = outcome({"preludeEvent": {}}, *(policy("idle-time", "advisory", name) for name in ("a100", "h100", "a100")))
    assert made.refusals == []
    assert rows(made) == [
        ("policies", "pack: no violation in 0 resources"),
        ("advice", "idle-time (a100, h100): Do this."),
    ]
