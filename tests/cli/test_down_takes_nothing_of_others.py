"""`amlstack down --stack` names what the stack does not own before it asks, and lets go what was named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.progress import Progress
from amlstack.cli.stack.anywhere import judged as judging
from amlstack.cli.stack.anywhere import take_down
from amlstack.cli.stack.anywhere.place import StackPlace
from amlstack.cli.stack.state import State
from amlstack.engine import Outcome
from amlstack.provider.stacks import foreign, keeper

if TYPE_CHECKING:
    from collections.abc import Mapping

GROUP = "/subscriptions/s/resourceGroups/rg-team"
KEEPER = {
    "type": "amlstack:stack:Keeper",
    "urn": "urn:pulumi:prod::amlstack::amlstack:stack:Keeper::keeper",
    "inputs": {"group": GROUP, "owned": [], "stackId": "s1"},
    "outputs": {"owner": "amlstack/prod"},
}
HELD = foreign.Foreign("storageAccounts", "stdata", f"{GROUP}/providers/Microsoft.Storage/storageAccounts/stdata")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The engine's commands; Azure has one account of others in the stack's group."""
    asked: list[tuple[str, ...]] = []

    def run(_place: Any, _progress: Any, *words: str, **_: Any) -> Outcome:
        asked.append(words)
        return Outcome(0)

    def held(_arm: Any, places: Mapping[str, str], _asked: Any, owners: tuple[str, ...]) -> list[foreign.Foreign]:
        assert (places, owners) == ({"group": GROUP}, ("amlstack/prod",))
        return [HELD]

    monkeypatch.setattr(take_down, "_engine", run)
    monkeypatch.setattr(keeper, "held", held)
    monkeypatch.setattr(judging, "client", lambda _: None)
    monkeypatch.setattr(StackPlace, "state", lambda _: State((KEEPER,)))
    return asked


def destroyed(*names: str) -> int:
    asked = take_down.AskedDown("prod", sandbox=False, yes=True, foreign=names)
    place = StackPlace("prod", take_down._agreed(asked), Path())
    judged: Any = None
    return take_down._destroyed(asked, judged, place, Progress())


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
