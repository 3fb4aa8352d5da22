"""Advice of a policy has the words of the stack's program where it found the same: the setting and its place."""

from __future__ import annotations

from amlstack.cli.stack import summary
from amlstack.engine import Outcome

CODE = "node-public-ip"
PLACE = "Pulumi.sandbox.yaml:8:7: amlstack:clusters[0].node_public_ip: Nodes get public addresses. Write it."


def outcome(*messages: str) -> Outcome:
    made = Outcome(diagnostics=[("warning", "", message) for message in messages])
    urn = "urn:pulumi:sandbox::amlstack::azure-native:machinelearningservices:Compute::a100"
    message = f"A rule.\nproperties.properties.enableNodePublicIp: Nodes get public addresses. [{CODE}]"
    made.policies.append({"policyName": CODE, "enforcementLevel": "advisory", "resourceUrn": urn, "message": message})
    return made


def test_the_programs_words_count_where_it_found_the_same() -> None:
    lines = list(summary.verdict_lines(outcome(f"{PLACE} [{CODE}]", "another [other]")))
    assert lines[1:] == [f"advice: {CODE} (a100): {PLACE}"]


def test_else_the_policys_own_words_do() -> None:
    lines = list(summary.verdict_lines(outcome("another [other]")))
    assert lines[1:] == [
        f"advice: {CODE} (a100): properties.properties.enableNodePublicIp: Nodes get public addresses."
    ]


def test_an_answer_is_shown_once() -> None:
    assert len(list(summary.verdict_lines(outcome(), known={CODE}))) == 1
