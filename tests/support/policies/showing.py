"""Resources and verdicts as they go over the analyzer protocol."""

from __future__ import annotations

from datetime import date
from typing import Any

from google.protobuf.struct_pb2 import Struct
from pulumi.runtime.proto import analyzer_pb2 as proto

TODAY = date(2026, 8, 1)
LEVELS = {proto.MANDATORY: "mandatory", proto.ADVISORY: "advisory"}
SIZE_RULES_ALONE = dict.fromkeys(
    (
        "size-retiring",
        "size-closed",
        "restart-without-checkpoint",
        "image-cannot-run-here",
        "nebula-gone",
        "scale-to-zero",
        "idle-time",
        "node-public-ip",
        "ssh-closed",
        "local-auth-off",
        "environment-pinned",
        "processes-beyond-gpus",
        "gpus-idle",
        "shared-memory",
        "fabric-switched-off",
        "spot-checkpoint",
        "job-timeout",
        "subnet-overlap",
    ),
    "disabled",
)
"""Configuration that leaves the rules on sizes, for tests of what the pack sees in a resource."""


def shown(response: Any) -> list[tuple[str, str, str]]:
    """Diagnostics as ``(level, policy, message)``, the message without the rule's title before it."""
    return [
        (LEVELS[one.enforcementLevel], one.policyName, one.message.removeprefix(f"{one.description}\n"))
        for one in response.diagnostics
    ]


def request(token: str, props: dict[str, Any], name: str = "it") -> Any:
    wire = Struct()
    wire.update(props)
    return proto.AnalyzeRequest(type=token, urn=f"urn:pulumi:test::test::{token}::{name}", name=name, properties=wire)
