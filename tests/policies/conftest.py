"""Shows resources to the pack through the SDK's own analyzer, as the engine does."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import proto
from pulumi_policy import EnforcementLevel
from pulumi_policy.policy import _PolicyAnalyzerServicer

from policies.pack import NAME, policies

if TYPE_CHECKING:
    from collections.abc import Callable

TODAY = date(2026, 8, 1)
LEVELS = {proto.MANDATORY: "mandatory", proto.ADVISORY: "advisory"}


@pytest.fixture
def analyze() -> Callable[[str, dict[str, Any]], list[tuple[str, str, str]]]:
    """Judges one resource: ``(type token, properties) -> [(level, policy, message)]``.

    Properties go over the wire format, so that the rules meet the SDK's proxies and unknowns. The message is what the
    pack reported, without the title that the SDK puts before it.
    """
    servicer = _PolicyAnalyzerServicer(NAME, "0.0.1", policies(TODAY), EnforcementLevel.MANDATORY)

    def judge(token: str, props: dict[str, Any]) -> list[tuple[str, str, str]]:
        wire = Struct()
        wire.update(props)
        urn = f"urn:pulumi:test::test::{token}::it"
        response = servicer.Analyze(proto.AnalyzeRequest(type=token, urn=urn, name="it", properties=wire), None)
        return [
            (LEVELS[one.enforcementLevel], one.policyName, one.message.removeprefix(f"{one.description}\n"))
            for one in response.diagnostics
        ]

    return judge
