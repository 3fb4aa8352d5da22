"""The operator's loop over the project's stack: its pod's folders, its variables, and the flags that it types."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support.deploy import operator_pod
from tests.support.harness import STAND_IN, Stack
from tests.support.running import running_sandbox
from tests.support.stack.small_jobs import SIZE, job, runs_of, settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.running import Engine

pytestmark = [pytest.mark.engine]

RETIRED = "Standard_NC24s_v3"
LAX = {"size-retired": "disabled", "sriov-fabric": "disabled"}
"""Settings of a commit for the rules that the program itself judges by."""


@pytest.fixture(scope="module")
def loop(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Result], Path]]:
    """Step → what the engine did; and the sandbox's home."""
    with running_sandbox(tmp_path_factory.mktemp("sandbox")) as sandbox:
        folder = tmp_path_factory.mktemp("share")
        stack = Stack.of_project(folder, engine.folders, name="prod", env=sandbox.environ, path=(STAND_IN,))
        try:
            operator_pod.put_into_pod(stack, folder)
            yield played(stack), sandbox.home
        finally:
            stack.close()


def played(stack: Stack) -> dict[str, Result]:
    for key, value in settings("operated").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [{"file": str(job(stack.folder, "first", "true"))}], path=False)
    done = {"first": stack.up(*operator_pod.UP), "again": stack.up(*operator_pod.UP)}

    stack.set("amlstack:policies", str(stack.write("lax.json", json.dumps(LAX))), path=False)
    clusters = [
        {"name": "busy", "size": SIZE, "nodes": {"max": 8}},
        {"name": "old", "size": RETIRED, "nodes": {"max": 1}},
    ]
    stack.set("amlstack:clusters", clusters, path=False)
    stack.set("amlstack:jobs", [{"file": str(job(stack.folder, "second", "true"))}], path=False)
    done["violation"] = stack.up(*operator_pod.UP)
    pack = stack.env.pop("PULUMI_OPTION_POLICY_PACK")
    done["without the variable"] = stack.preview()
    stack.env["PULUMI_OPTION_POLICY_PACK"] = pack
    done["refresh"] = stack.refresh(*operator_pod.AGENT)
    return done


def test_the_pack_of_the_variable_runs_and_a_good_commit_is_brought_up(loop: tuple[dict[str, Result], Path]) -> None:
    done, home = loop
    done["first"].ok()
    summary = done["first"].bodies("summaryEvent")[-1]
    (pack,) = summary.get("policyPacks") or summary["PolicyPacks"]
    assert pack.startswith("amlstack|local|")
    assert pack.endswith("/policies/analyzer")  # of a long path the engine leaves the middle out
    assert len(runs_of(home, "first")) == 1


def test_the_same_commit_again_changes_nothing(loop: tuple[dict[str, Result], Path]) -> None:
    assert set(loop[0]["again"].ok().changes) <= {"same", "read"}


def test_a_violation_fails_the_update_and_nothing_of_the_commit_is_made(loop: tuple[dict[str, Result], Path]) -> None:
    done, home = loop
    refused = done["violation"].failed()
    assert {(one.policy, one.pack) for one in refused.violations if one.level == "mandatory"} == {
        ("size-retired", "amlstack")
    }
    assert [step.name for step in refused.done if step.op == "create"] == []
    assert runs_of(home, "second") == []
    line = "amlstack@v0.1.0 [mandatory]  size-retired  (azure-native:machinelearningservices:Compute: old)"
    assert line in refused.output
    assert line in (PROJECT / "docs/how-to/gitops-kubernetes.md").read_text("utf-8")


def test_it_is_the_variable_that_enforces_the_pack(loop: tuple[dict[str, Result], Path]) -> None:
    assert loop[0]["without the variable"].ok().violations == ()


def test_commands_that_take_no_pack_are_not_bothered_by_the_variable(loop: tuple[dict[str, Result], Path]) -> None:
    loop[0]["refresh"].ok()
