"""Two commands on one stack: one wins, the other says who works on it, in one line and with a status of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING

import pytest

from amlstack.cli import main
from amlstack.cli.stack import pulumi_stack
from amlstack.cli.stack.pulumi_stack import lock_file
from amlstack.engine import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LOCKED = """\
the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with
`pulumi cancel`.
  file:///b/.pulumi/locks/organization/p/dev/1.json: created by ann@mill (pid 4711) at 2026-11-22T10:00:00Z"""


def test_the_second_one_names_the_first(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "turn"
    with pulumi_stack.hold(file, "dev", "amlstack up"):
        with pytest.raises(pulumi_stack.BusyError) as busy, pulumi_stack.hold(file, "dev", "amlstack down"):
            pytest.fail("two at once")
        message = str(busy.value)
    assert message.startswith(f"another `amlstack up` works on the stack `dev` (process {os.getpid()}, since ")
    assert "nothing was changed here" in message
    with pulumi_stack.hold(file, "dev", "amlstack down"):
        pass


def test_a_turn_without_a_word_on_its_holder_is_busy_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "turn"
    with pulumi_stack.hold(file, "dev", "amlstack up"):
        file.write_text("")
        with pytest.raises(
            pulumi_stack.BusyError, match="another `amlstack` works on the stack `dev`; nothing was changed"
        ):
            pulumi_stack.hold(file, "dev", "amlstack up").__enter__()


@pytest.mark.parametrize(
    ("words", "who"),
    [
        (LOCKED, " (ann@mill, process 4711, since 2026-11-22T10:00:00Z)"),
        ("error: [409] Conflict: Another update is currently in progress.", ""),
    ],
    ids=["file backend", "Pulumi Cloud"],
)
def test_the_engines_own_lock_is_one_line(words: str, who: str) -> None:
    message = pulumi_stack.engine_is_locked(Outcome(code=255, diagnostics=[("error", "", words)]), "dev")
    assert message.startswith(f"another `pulumi` command works on the stack `dev`{who}; nothing was changed here.")
    assert "\n" not in message


def locked(seconds_ago: float) -> Outcome:
    """The engine's answer where another one has taken the lock so long ago."""
    moment = datetime.fromtimestamp(time.time() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Outcome(code=255, diagnostics=[("error", "", LOCKED.replace("2026-11-22T10:00:00Z", moment))])


def test_a_command_begins_again_when_both_gave_up_in_the_same_moment() -> None:
    answers = [locked(0), locked(0), Outcome()]
    notes: list[str] = []
    pauses: list[float] = []
    done = pulumi_stack.run_when_free(lambda: answers.pop(0), "dev", notes.append, pauses.append)
    assert done.code == 0
    assert len(pauses) == 2
    assert min(pauses) >= 0.5, "longer than from the engine's first look for locks to its second"
    assert notes[0].startswith("another command took the lock of `dev` in the same moment: trying again in ")


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        (lambda: locked(60), 1),
        (lambda: locked(0), 4),
        (lambda: Outcome(code=255, output="error: [409] Conflict: Another update is currently in progress."), 1),
        (
            lambda: Outcome(
                code=255, output="the stack is currently locked by 1 lock(s): created by a (pid 1) at noon"
            ),
            1,
        ),
    ],
    ids=["one that works since a minute", "one after the other", "a service that lets one through", "no time"],
)
def test_a_command_ends_when_the_lock_stays(answer: Callable[[], Outcome], attempts: int) -> None:
    pauses: list[float] = []
    with pytest.raises(pulumi_stack.BusyError):
        pulumi_stack.run_when_free(answer, "dev", lambda line: None, pauses.append)
    assert len(pauses) == attempts - 1


def test_a_lock_that_outlives_the_first_attempt_is_somebody_at_work() -> None:
    answers = [locked(0), locked(60)]
    pauses: list[float] = []
    with pytest.raises(pulumi_stack.BusyError, match=r"ann@mill, process 4711"):
        pulumi_stack.run_when_free(lambda: answers.pop(0), "dev", lambda line: None, pauses.append)
    assert len(pauses) == 1


def test_a_turn_whose_folder_goes_meanwhile_is_taken_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "stack" / "turn"
    real = fcntl.flock
    removed: list[Path] = []

    def flock(turn: IO[str], how: int) -> None:
        if not removed:  # a `down` ends between opening and locking
            removed.append(file.parent)
            shutil.rmtree(file.parent)
        real(turn, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with pulumi_stack.hold(file, "dev", "amlstack up"), pytest.raises(pulumi_stack.BusyError):
        pulumi_stack.hold(file, "dev", "amlstack up").__enter__()


def test_of_many_that_begin_at_once_exactly_one_has_the_turn(tmp_path: Path) -> None:
    begin, done = threading.Barrier(8), threading.Barrier(8)
    won: list[str] = []

    def one() -> None:
        begin.wait()
        with contextlib.ExitStack() as held:
            try:
                held.enter_context(pulumi_stack.hold(tmp_path / "folder" / "turn", "dev", "amlstack up"))
                won.append("one")
            except pulumi_stack.BusyError:
                pass
            done.wait()

    for _ in range(50):
        won.clear()
        threads = [threading.Thread(target=one) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert won == ["one"]


def test_the_sandbox_stays_while_another_of_its_stacks_is_worked_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    with pulumi_stack.hold(lock_file("dev", sandbox=True), "dev", "amlstack up"):
        assert main.main(["down", "--yes"]) == pulumi_stack.BUSY
    assert "another `amlstack up` works on the stack `dev`" in capsys.readouterr().out
    assert lock_file("dev", sandbox=True).is_file()


def test_other_failures_are_no_lock() -> None:
    assert pulumi_stack.engine_is_locked(Outcome(code=255, output="error: no such bucket"), "dev") == ""
    assert pulumi_stack.engine_is_locked(Outcome(code=0, output=LOCKED), "dev") == ""


@pytest.mark.parametrize("verb", ["up", "down"])
def test_a_verb_of_the_sandbox_stack_ends_with_3_while_another_works_on_it(
    verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path))
    with pulumi_stack.hold(lock_file("sandbox", sandbox=True), "sandbox", "amlstack up"):
        assert main.main([verb]) == pulumi_stack.BUSY
    assert "another `amlstack up` works on the stack `sandbox`" in capsys.readouterr().out


def test_stacks_have_turns_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    places = [lock_file(name, sandbox=where) for name in ("sandbox", "dev", "prod") for where in (True, False)]
    assert len(set(places)) == len(places)
