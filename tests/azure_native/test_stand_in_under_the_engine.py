"""The real engine, the real azure-native classes, the stand-in and a sandbox, together."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.harness import Stack

pytestmark = pytest.mark.engine

PROGRAM = "workspace_and_cluster"
ALL = {"group", "account", "vault", "logs", "insights", "registry", "workspace", "cluster"}
H100, A100, V100 = "Standard_ND96isr_H100_v5", "Standard_ND96amsr_A100_v4", "Standard_ND40rs_v2"
BARE = """\
import pulumi
pulumi.CustomResource("azure-native:{}", "one", {{"resourceGroupName": "g", "location": "westeurope"}})
"""
"""A resource without azure-native's classes, which take seconds to import."""


def size_of(made: Stack) -> str:
    return str(made.resources("Compute")["cluster"]["outputs"]["properties"]["properties"]["vmSize"])


def test_a_workspace_and_its_cluster_from_creation_to_the_end_with_sizes_that_fail_as_on_azure(
    stack: Any, own_sandbox: Any
) -> None:
    made: Stack = stack(PROGRAM, sandbox=own_sandbox)
    created = made.up(preview=True).ok()
    assert {created.op(name) for name in ALL} == {"create"}
    outputs = made.outputs()
    assert outputs["cluster"].endswith(
        "/resourceGroups/rg-one/providers/Microsoft.MachineLearningServices/workspaces/ws-one/computes/cl-one"
    )
    assert outputs["account"].startswith("account")
    assert len(outputs["account"]) == len("account") + 8

    # Without replace_on_changes: planned as an update, which the service answers with success and ignores.
    scaled = made.set("nodes", "4").set("size", H100).up().ok()
    assert scaled.op("cluster") == "update"
    assert scaled.steps("cluster")[0].detail == {
        "properties.properties.scaleSettings.maxNodeCount": "update",
        "properties.properties.vmSize": "update",
    }
    assert scaled.changes == {"update": 1}
    assert size_of(made) == A100.upper()

    # Without delete_before_replace: the new cluster's name is taken by the old one.
    program = (made.folder / "__main__.py").read_text("utf-8")
    made.write("__main__.py", program.replace("delete_before_replace=replacing", "delete_before_replace=False"))
    failed = made.set("replacing", "true").set("size", V100).up().failed()
    assert any("cannot create already existing resource" in error for error in failed.errors), failed.output

    made.write("__main__.py", program)
    resized = made.up().ok()
    assert resized.op("cluster") == "replace"
    assert size_of(made) == V100.upper()

    assert made.preview("--refresh").ok().changes == {}
    made.destroy().ok()
    assert made.resources() == {}


def stand_ins(leader: int) -> list[int]:
    """Processes of the stand-in in the session that the engine leads."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                session = int((entry / "stat").read_text().rpartition(")")[2].split()[3])
            except OSError:
                continue
            if b"amlstack.sandbox.azure_native" in words and session == leader:
                found.append(int(entry.name))
    return found


def test_killed_in_the_middle_the_next_up_converges(stack: Any, own_sandbox: Any, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    through = os.open(gate, os.O_RDWR)  # neither side waits for the other to open it
    made: Stack = stack(PROGRAM, sandbox=own_sandbox).set("gate", str(gate))

    running = made.start_up()
    running.wait_until_starts("vault")
    running.kill()  # the engine
    made.unlock()

    running = made.start_up()
    running.wait_until_done("registry")
    plugins = stand_ins(running.process.pid)
    assert plugins
    for pid in plugins:
        os.kill(pid, signal.SIGKILL)
    os.write(through, b"cl-one\n")  # until now the cluster has waited, and with it the end
    running.result().failed()
    os.close(through)

    made.set("gate", None).up().ok()
    assert set(made.resources()) == ALL
    assert made.preview().ok().changes == {}


def test_nothing_is_done_and_the_reason_is_shown_without_a_sandbox(stack: Any) -> None:
    from tests.support.harness import STAND_IN

    text = BARE.format("resources:ResourceGroup")
    lost: Stack = stack(text, env={"AMLSTACK_ARM_ENDPOINT": "https://management.azure.com"})
    lost.env["PATH"] = f"{STAND_IN}{os.pathsep}{lost.env['PATH']}"
    failed = lost.preview().failed()
    assert "never to Azure" in failed.output


def test_a_type_that_the_sandbox_does_not_have_is_refused_by_name(stack: Any, sandbox: Any) -> None:
    failed = stack(BARE.format("network:RouteTable"), sandbox=sandbox).preview().failed()
    assert "the sandbox does not stand in for azure-native:network:RouteTable" in failed.output
