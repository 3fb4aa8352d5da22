"""Losses of a deployment: resources with data by their type, workspaces and clusters with their runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import typer

from amlstack.cli import console
from amlstack.cli.console import Progress
from amlstack.cli.stack import deployment
from amlstack.cli.stack.deployment import Deployment, missing_resources
from amlstack.cli.stack.pulumi_stack import PulumiStack
from amlstack.cli.stack_files import State, read_state
from amlstack.engine import Outcome
from amlstack.sandbox.store.store import Store
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GROUP = "/subscriptions/s/resourceGroups/g"
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/w"
TYPES = {
    "azure-native:resources:ResourceGroup": GROUP,
    "azure-native:machinelearningservices/v20250901:Workspace": WORKSPACE,
    "azure-native:machinelearningservices:Compute": f"{WORKSPACE}/computes/busy",
    "azure-native:machinelearningservices/v20250901:Compute": f"{WORKSPACE}/computes/idle",
    "azure-native:storage:StorageAccount": f"{GROUP}/providers/Microsoft.Storage/storageAccounts/st",
    "azure-native:operationalinsights:Workspace": f"{GROUP}/providers/Microsoft.OperationalInsights/workspaces/logs",
    "amlstack:jobs:Job": "train-1",
}


def urn(kind: str) -> str:
    return f"urn:pulumi:sandbox::amlstack::{kind}::{TYPES[kind].rsplit('/', 1)[-1]}"


STATE = State(tuple({"urn": urn(kind), "type": kind, "id": resource} for kind, resource in TYPES.items()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sandbox's home with one run on the cluster `busy`."""
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    store = Store(tmp_path)
    store.jobs.add(WORKSPACE, "train-1", {"properties": {"computeId": f"{WORKSPACE}/computes/Busy"}})
    for resource in TYPES.values():
        if resource != GROUP:
            store.resources.put(resource, "Microsoft.X/y", GROUP, {})
    store.close()
    return tmp_path


@pytest.mark.parametrize("op", ["delete", "replace", "create-replacement", "delete-replaced"])
def test_what_holds_data_or_runs_is_named_whatever_the_operation(op: str, home: Path) -> None:
    lines = deployment.losses_of(dict.fromkeys(map(urn, TYPES), op), STATE, home)

    verb = "deletes" if op == "delete" else "replaces"
    assert lines == (
        f"{verb} ResourceGroup g (g): everything in the resource group",
        f"{verb} Workspace w (w): registered assets and the history of runs and 1 run (train-1)",
        f"{verb} Compute busy (busy): 1 run (train-1)",
        f"{verb} StorageAccount st (st): code, inputs, outputs and checkpoints of runs",
    )


@pytest.mark.parametrize("op", ["create", "same", "update"])
def test_what_stays_is_not_asked_about(op: str, home: Path) -> None:
    assert deployment.losses_of(dict.fromkeys(map(urn, TYPES), op), STATE, home) == ()


def test_what_the_engine_retains_is_not_lost(home: Path) -> None:
    state = State(tuple({**one, "retainOnDelete": True} for one in STATE.resources))

    assert deployment.losses_of(dict.fromkeys(map(urn, TYPES), "delete"), state, home) == ()


def test_what_the_sandbox_has_not_is_lost_and_a_run_is_not(home: Path) -> None:
    assert missing_resources(STATE, home) == (urn("azure-native:resources:ResourceGroup"),)
    assert missing_resources(State(), home) == ()
    assert len(missing_resources(STATE, home / "after a reset")) == len(TYPES) - 1


@for_each("text", ["", "{", "[]", '{"checkpoint": {}}', '{"checkpoint": {"latest": null}}'])
def test_a_state_file_of_an_unknown_form_records_nothing(text: str, tmp_path: Path) -> None:
    file = tmp_path / ".pulumi" / "stacks" / "amlstack" / "sandbox.json"
    file.parent.mkdir(parents=True)
    file.write_text(text)

    assert read_state(tmp_path, "sandbox") == State()


@pytest.mark.parametrize(
    ("terminal", "answer", "yes", "verbs"),
    [
        (False, False, False, ["preview"]),
        (True, False, False, ["preview"]),
        (True, True, False, ["preview", "up"]),
        (False, False, True, ["preview", "up"]),
    ],
    ids=["a script", "no", "yes", "agreed before"],
)
def test_the_update_begins_only_after_an_agreement(
    *,
    terminal: bool,
    answer: bool,
    yes: bool,
    verbs: list[str],
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[Sequence[str]] = []

    def run(words: Sequence[str], *_: object, **__: object) -> Outcome:
        ran.append(words)
        return Outcome(ops={urn("azure-native:resources:ResourceGroup"): "replace"})

    monkeypatch.setattr("amlstack.engine.run", run)
    monkeypatch.setattr(PulumiStack, "state", lambda _: STATE)
    monkeypatch.setattr("amlstack.cli.console.on_a_terminal", lambda: terminal)
    monkeypatch.setattr("amlstack.cli.console.confirmed", lambda _: answer)
    stack = PulumiStack("sandbox", {}, home)
    judged: Any = SimpleNamespace(settings=None, findings=())

    done = Deployment(stack, judged, Progress()).run(yes=yes, refresh=False)

    assert [words[0] for words in ran] == verbs
    assert done.refused is (verbs == ["preview"])
    assert done.ok is not done.refused


@pytest.mark.parametrize(("typed", "raised"), [("\n", None), (EOFError, None), (KeyboardInterrupt, KeyboardInterrupt)])
def test_no_answer_is_a_no_and_ctrl_c_is_no_answer(
    typed: str | type[BaseException], raised: type[BaseException] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prompted(text: str) -> str:
        del text
        if isinstance(typed, str):
            return typed.strip()
        raise typed

    monkeypatch.setattr(f"{typer.confirm.__module__}.visible_prompt_func", prompted)
    if raised is None:
        assert console.confirmed("Apply this?") is False
    else:
        with pytest.raises(raised):
            console.confirmed("Apply this?")
