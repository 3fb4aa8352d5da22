"""An update that would change neither a resource nor the state ends after its preview."""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from amlstack import engine
from amlstack.base import paths, pulumi_wire
from amlstack.cli.stack.plan import changes_nothing
from amlstack.cli.stack_files import State
from amlstack.engine import Outcome
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

URN = "urn:pulumi:sandbox::amlstack::azure-native:storage:StorageAccount::storage"
GROUP = "urn:pulumi:sandbox::amlstack::azure-native:resources:ResourceGroup::group"
RECORD = {
    "urn": URN,
    "dependencies": [GROUP],
    "propertyDependencies": {"location": None, "resourceGroupName": [GROUP]},
    "customTimeouts": {"create": 60.0},
}
GOAL = {
    "inputDiff": {},
    "outputDiff": {},
    "dependencies": [GROUP],
    "propertyDependencies": {"location": [], "resourceGroupName": [GROUP]},
    "customTimeouts": {"create": 60.0},
}
PLAN: dict[str, Any] = {"goal": GOAL, "steps": ["same"]}
STATE = State((RECORD,))
SAME = {"op": "same", "urn": URN, "type": "t", "old": {"parent": "a"}, "new": {"parent": "a"}}


def by(folder: Path, *, preview: Outcome | None = None, plan: object = None, state: State = STATE) -> bool:
    file = folder / "plan.json"
    file.write_text(json.dumps({"resourcePlans": {URN: PLAN}} if plan is None else plan))
    return changes_nothing(preview or Outcome(ops={URN: "same"}), file, state)


def test_an_update_is_left_out_where_all_is_as_recorded(tmp_path: Path) -> None:
    assert by(tmp_path)


@pytest.mark.parametrize("op", ["create", "read", "update", "delete"])
def test_an_operation_is_a_change(op: str, tmp_path: Path) -> None:
    assert not by(tmp_path, preview=Outcome(ops={URN: "same", GROUP: op}))


def test_a_failed_preview_is_no_word_on_changes(tmp_path: Path) -> None:
    assert not by(tmp_path, preview=Outcome(1, ops={URN: "same"}))


@for_each(
    "edit",
    [
        {"inputDiff": {"adds": {"a": 1}}},
        {"outputDiff": {"adds": {"a": 1}}},
        {"dependencies": []},
        {"propertyDependencies": {"location": [GROUP], "resourceGroupName": [GROUP]}},
        {"customTimeouts": {}},
    ],
)
def test_what_the_plan_describes_otherwise_is_a_change(edit: dict[str, Any], tmp_path: Path) -> None:
    assert not by(tmp_path, plan={"resourcePlans": {URN: {**PLAN, "goal": {**GOAL, **edit}}}})


@pytest.mark.parametrize("mark", ["delete", "pendingReplacement", "initErrors"])
def test_what_an_update_has_not_finished_is_a_change(mark: str, tmp_path: Path) -> None:
    assert not by(tmp_path, state=State(({**RECORD, mark: ["left"]},)))


def test_operations_that_were_cut_off_are_a_change(tmp_path: Path) -> None:
    assert not by(tmp_path, state=State((RECORD,), (URN,)))


def test_another_number_of_resources_is_a_change(tmp_path: Path) -> None:
    assert not by(tmp_path, state=State((RECORD, RECORD)))
    assert not by(tmp_path, state=State())


@pytest.mark.parametrize(
    "plan", [[], {}, {"resourcePlans": {URN: {}}}, {"resourcePlans": {URN: {**PLAN, "steps": ["update"]}}}]
)
def test_a_plan_of_another_form_is_a_change(plan: object, tmp_path: Path) -> None:
    assert not by(tmp_path, plan=plan)
    assert not changes_nothing(Outcome(ops={URN: "same"}), tmp_path / "none.json", STATE)


def test_a_resource_that_moves_to_another_parent_is_a_change_though_the_engine_calls_it_the_same(
    tmp_path: Path,
) -> None:
    moved = Outcome()
    moved.take({"preludeEvent": {}})
    moved.take({"resourcePreEvent": {"metadata": SAME}})
    moved.take({"resOutputsEvent": {"metadata": SAME}})
    assert by(tmp_path, preview=moved)

    moved.take({"resOutputsEvent": {"metadata": {**SAME, "new": {"parent": "b"}}}})
    assert not by(tmp_path, preview=moved)


def test_outputs_are_read_from_the_state_where_they_are_plain() -> None:
    def state(outputs: object) -> State:
        return State(({"urn": "u", "type": "pulumi:pulumi:Stack", "outputs": outputs},))

    secret = {pulumi_wire.SIGNATURE: pulumi_wire.SECRET, "ciphertext": "v1:…"}
    assert state({"jobs": {}}).outputs() == {"jobs": {}}
    assert state({"jobs": {"train": {"jobId": secret}}}).outputs() is None
    assert State().outputs() is None


def test_a_stack_that_is_selected_already_is_not_selected_by_another_run_of_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    env = {"PULUMI_HOME": str(tmp_path / "pulumi-home"), "PULUMI_BACKEND_URL": "file:///backend"}
    ran: list[object] = []
    monkeypatch.setattr("subprocess.run", lambda *words, **_: ran.append(words) or subprocess.CompletedProcess((), 0))
    engine.select(env)
    assert len(ran) == 1, "there is no stack yet"

    digest = hashlib.sha1(str(tmp_path / "Pulumi.yaml").encode()).hexdigest()
    noted = tmp_path / "pulumi-home" / "workspaces" / f"amlstack-{digest}-workspace.json"
    noted.parent.mkdir(parents=True)
    noted.write_text(json.dumps({"stacks": {"file:///backend": "organization/amlstack/sandbox"}}))
    engine.select(env)
    assert len(ran) == 2, "the backend does not have the stack"

    file = tmp_path / "home" / "pulumi" / ".pulumi" / "stacks" / "amlstack" / "sandbox.json"
    file.parent.mkdir(parents=True)
    file.touch()
    engine.select(env)
    assert len(ran) == 2

    noted.write_text(json.dumps({"stacks": {"file:///backend": "organization/amlstack/other"}}))
    engine.select(env)
    assert len(ran) == 3, "another stack is selected"
