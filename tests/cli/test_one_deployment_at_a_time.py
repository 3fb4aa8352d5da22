"""Two commands on one stack: one wins, the other says who works on it, in one line and with a status of its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from amlstack.cli import main
from amlstack.cli.stack import turns
from amlstack.cli.stack.anywhere.place import turn_of
from amlstack.engine import Outcome

if TYPE_CHECKING:
    from pathlib import Path

LOCKED = """\
the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with
`pulumi cancel`.
  file:///b/.pulumi/locks/organization/p/dev/1.json: created by ann@mill (pid 4711) at 2026-11-22T10:00:00Z"""


def test_the_second_one_names_the_first(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "turn"
    with turns.alone(file, "dev", "amlstack up"):
        with pytest.raises(turns.BusyError) as busy, turns.alone(file, "dev", "amlstack down"):
            pytest.fail("two at once")
        message = str(busy.value)
    assert message.startswith(f"another `amlstack up` works on the stack `dev` (process {os.getpid()}, since ")
    assert "nothing was changed here" in message
    with turns.alone(file, "dev", "amlstack down"):
        pass


def test_a_turn_without_a_word_on_its_holder_is_busy_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "turn"
    with turns.alone(file, "dev", "amlstack up"):
        file.write_text("")
        with pytest.raises(turns.BusyError, match="another `amlstack` works on the stack `dev`; nothing was changed"):
            turns.alone(file, "dev", "amlstack up").__enter__()


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (LOCKED, " (ann@mill, process 4711, since 2026-11-22T10:00:00Z)"),
        ("error: [409] Conflict: Another update is currently in progress.", ""),
    ],
    ids=["file backend", "Pulumi Cloud"],
)
def test_the_engines_own_lock_is_one_line(words: str, who: str) -> None:
    message = turns.engine_is_locked(Outcome(code=255, diagnostics=[("error", "", words)]), "dev")
    assert message.startswith(f"another `pulumi` command works on the stack `dev`{who}; nothing was changed here.")
    assert "\n" not in message


def test_other_failures_are_no_lock() -> None:
    assert turns.engine_is_locked(Outcome(code=255, output="error: no such bucket"), "dev") == ""
    assert turns.engine_is_locked(Outcome(code=0, output=LOCKED), "dev") == ""


@pytest.mark.parametrize("verb", ["up", "down"])
def test_a_verb_of_the_sandbox_stack_ends_with_3_while_another_works_on_it(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    with turns.alone(turn_of("sandbox", sandbox=True), "sandbox", "amlstack up"):
        assert main.main([verb]) == turns.BUSY
    assert "another `amlstack up` works on the stack `sandbox`" in capsys.readouterr().out


def test_stacks_have_turns_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    places = [turn_of(name, sandbox=where) for name in ("sandbox", "dev", "prod") for where in (True, False)]
    assert len(set(places)) == len(places)
