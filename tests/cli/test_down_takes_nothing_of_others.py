"""`amlstack down --stack` names what the stack does not own before it asks, and lets go what was named."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli import stack_files
from amlstack.cli.console import Progress
from amlstack.cli.stack import take_down
from amlstack.cli.stack.pulumi_stack import PulumiStack
from amlstack.cli.stack_files import State
from amlstack.engine import Outcome
from amlstack.provider.arm import ArmError
from amlstack.provider.stacks import foreign, guard

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = "/subscriptions/s/resourceGroups/rg-team"
KEEPER = {
    "type": "amlstack:stack:Keeper",
    "urn": "urn:pulumi:prod::amlstack::amlstack:stack:Keeper::keeper",
    "inputs": {"group": GROUP, "owned": [], "stackId": "s1"},
    "outputs": {"owner": "amlstack/prod"},
}
WORKSPACE = f"{GROUP}/providers/Microsoft.MachineLearningServices/workspaces/w"
WITHOUT_KEEPER = (
    {"type": "pulumi:pulumi:Stack", "urn": "urn:pulumi:prod::amlstack::pulumi:pulumi:Stack::amlstack-prod"},
    {"type": "azure-native:resources:ResourceGroup", "urn": "a::b::c::group", "id": GROUP},
    {"type": "azure-native:machinelearningservices:Workspace", "urn": "a::b::c::w", "id": WORKSPACE},
    {"type": "azure-native:operationalinsights:Workspace", "urn": "a::b::c::log", "id": f"{GROUP}/providers/x/log"},
    {"type": "azure-native:storage:StorageAccount", "urn": "a::b::c::st", "id": f"{GROUP}/st", "external": True},
    {"type": "amlstack:stack:Record", "urn": "a::b::c::record", "id": "s1"},
    {
        "type": "amlstack:jobs:Job",
        "urn": "a::b::c::train",
        "id": "train-0123456789",
        "outputs": {"owner": "amlstack/prod", "jobId": f"{WORKSPACE}/jobs/train-0123456789"},
    },
)
"""A stack whose keeper was taken out of its state."""
HELD = foreign.Foreign("storageAccounts", "stdata", f"{GROUP}/providers/Microsoft.Storage/storageAccounts/stdata")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The engine's commands; Azure has one account of others in the stack's group."""
    asked: list[tuple[str, ...]] = []

    def run(_stack: Any, *words: str, **_: Any) -> Outcome:
        asked.append(words)
        return Outcome(0)

    def held(_arm: Any, places: Mapping[str, str], _asked: Any, owners: tuple[str, ...]) -> list[foreign.Foreign]:
        assert (places, owners) == ({"group": GROUP}, ("amlstack/prod",))
        return [HELD]

    monkeypatch.setattr(PulumiStack, "run", run)
    monkeypatch.setattr(guard, "held", held)
    monkeypatch.setattr(stack_files, "client_of", lambda _: None)
    monkeypatch.setattr(PulumiStack, "state", lambda _: State((KEEPER,)))
    return asked


def destroyed(*names: str) -> int:
    asked = take_down.AskedDown("prod", sandbox=False, yes=True, foreign=names)
    place = PulumiStack("prod", take_down._agreed(asked), Path())
    settings: Any = SimpleNamespace(config={})
    return take_down._destroyed(asked, settings, place, Progress())


def test_what_others_have_is_named_and_nothing_is_destroyed(
    engine: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert destroyed() == 1
    assert [words[1] for words in engine] == ["--preview-only"]
    printed = " ".join("".join(capsys.readouterr()).split())
    assert "what this stack does not own: storageAccounts/stdata" in printed
    assert "--delete-foreign storageAccounts/stdata" in printed


def test_what_was_named_goes_along_and_the_engine_is_told(
    engine: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert destroyed("stdata") == 0
    assert [words[1] for words in engine] == ["--preview-only", "--yes"]
    monkeypatch.setenv(foreign.VARIABLE, "jobs/*")
    given = take_down._agreed(take_down.AskedDown("prod", sandbox=False, foreign=("stdata", "disks/a")))
    assert given == {foreign.VARIABLE: "jobs/*,stdata,disks/a"}


def test_a_stack_without_a_keeper_is_asked_about_by_what_its_state_has(
    engine: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def held(_arm: Any, *others: Any) -> list[foreign.Foreign]:
        seen.append(others)
        return [HELD]

    monkeypatch.setattr(guard, "held", held)
    monkeypatch.setattr(PulumiStack, "state", lambda _: State(WITHOUT_KEEPER))
    assert destroyed() == 1
    assert [words[1] for words in engine] == ["--preview-only"]
    ((places, asked, owners),) = seen
    assert places == {"group": GROUP, "workspace": WORKSPACE}
    assert asked["owned"] == [GROUP, WORKSPACE, f"{GROUP}/providers/x/log", f"{WORKSPACE}/jobs/train-0123456789"]
    assert (asked["stackId"], owners) == ("s1", ("amlstack/prod",))
    assert destroyed("stdata") == 0


def test_a_stack_without_a_keeper_stays_where_nobody_can_be_asked(
    engine: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(*_: Any) -> list[foreign.Foreign]:
        raise ArmError(503, "Unavailable", "not now")

    monkeypatch.setattr(guard, "held", held)
    monkeypatch.setattr(PulumiStack, "state", lambda _: State(WITHOUT_KEEPER))
    assert destroyed() == 1
    assert [words[1] for words in engine] == ["--preview-only"]
