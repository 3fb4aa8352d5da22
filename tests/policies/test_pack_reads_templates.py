"""ARM templates: whatever is deployed inside one is judged as if it stood in the program."""

from __future__ import annotations

from typing import Any

import pytest
from pack_subjects import cluster, pack, seen
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE

DEPLOYMENT = "azure-native:resources:Deployment"


def arm(kind: str, props: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": "w/train", "apiVersion": "2025-12-01", **props, **more}


ML = "Microsoft.MachineLearningServices/workspaces"
RETIRED = cluster(vmSize="Standard_NC24rs_v3")


@pytest.mark.parametrize(
    "resources",
    [
        [arm(f"{ML}/computes", RETIRED)],
        {"symbolic": arm(f"{ML}/computes", RETIRED)},
        [arm(ML, {}, resources=[arm("computes", RETIRED)])],
        [{"type": "Microsoft.Resources/deployments", "name": "inner",
          "properties": {"template": {"resources": [arm(f"{ML}/computes", RETIRED)]}}}],
        [{"type": "Microsoft.Storage/storageAccounts", "name": "s"}, arm(f"{ML}/computes", RETIRED)],
    ],
    ids=["top", "symbolic", "child", "nested", "second"],
)  # fmt: skip
def test_an_arm_template_hides_nothing(resources: Any) -> None:
    found = seen(pack(), DEPLOYMENT, {"properties": {"template": {"resources": resources}}})

    assert found == ["mandatory size-retired"]


def test_what_a_template_does_not_say_is_said_to_be_undecided() -> None:
    size = cluster(vmSize="[parameters('size')]")
    template = {"properties": {"template": {"resources": [arm(f"{ML}/computes", size)]}}}
    linked = {"properties": {"templateLink": {"uri": "https://example.org/t.json"}}}

    assert seen(pack(), DEPLOYMENT, template) == ["advisory checked-at-up"]
    assert seen(pack(), DEPLOYMENT, linked) == ["advisory checked-at-up"]
    assert seen(pack(), DEPLOYMENT, {"properties": {"template": UNKNOWN_OBJECT_VALUE}}) == ["advisory checked-at-up"]
