"""Runs commands of the engine, and ends what they have left.

The engine's events are read as they happen, from a named pipe that stands in for its event log, so that progress is the
engine's own word and not a guess from its text output.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base import paths
from amlstack.engine.errors import EngineInterruptedError
from amlstack.engine.outcome import Outcome
from amlstack.engine.surroundings import private_umask
from amlstack.processes import leftovers, marks, procfs
from amlstack.processes.interruption import passed_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def run(
    words: Sequence[str],
    env: Mapping[str, str],
    *,
    cwd: Path | None = None,
    on_event: Callable[[Mapping[str, Any]], None] | None = None,
    owner: Path | None = None,
) -> Outcome:
    """Run ``pulumi WORDS`` and follow its events until it ends.

    Ctrl-C is passed on to the engine once: it begins nothing more, its providers end what they wait for, and what is in
    flight is recorded. A second one ends it at once, and what was in flight is then pending in the state.

    Args:
        words: The command, without ``pulumi``; one that takes ``--event-log``.
        env: The environment of :func:`environ`.
        cwd: The folder of Pulumi.yaml; this clone's by default.
        on_event: Called with each engine event as it happens.
        owner: Folder that processes of the command are marked with; the sandbox's home by default, whose end ends them.

    Raises:
        EngineInterruptedError: This process was asked to end, and the engine has ended.
    """
    outcome = Outcome()
    mark = leftovers.fresh(owner or paths.home())
    with tempfile.TemporaryDirectory(prefix="amlstack-events-") as folder, passed_on() as interruption:
        pipe = Path(folder) / "events"
        os.mkfifo(pipe)
        # Opened for both directions: neither end then blocks on opening, nor sees an end before the engine is done.
        reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        process = subprocess.Popen(
            ["pulumi", *words, "--event-log", str(pipe)],
            cwd=cwd or paths.PROJECT,
            env={**env, leftovers.MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=private_umask(env),
            process_group=0,  # a terminal's Ctrl-C comes to it from here alone
        )
        interruption.attend(process)
        try:
            for event in _events(process, reader, outcome):
                outcome.take(event)
                if "preludeEvent" in event:
                    interruption.listens(now=True)
                elif "summaryEvent" in event:
                    # Between two phases and after the last one the engine would die of it, and leave its lock.
                    interruption.listens(now=False)
                if on_event:
                    on_event(event)
        except BaseException:
            process.terminate()
            raise
        finally:
            outcome.code = process.wait()
            marks.end(leftovers.MARK, mark)
            os.close(reader)
            if process.stdout:
                process.stdout.close()
    if interruption.asked:
        raise EngineInterruptedError(outcome)
    return outcome


def _events(process: subprocess.Popen[bytes], reader: int, outcome: Outcome) -> Iterator[Mapping[str, Any]]:
    """Events as they are written, until the command's own output ends and the pipe is empty."""
    assert process.stdout is not None  # noqa: S101 - it was asked for
    text, pending = bytearray(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(reader, selectors.EVENT_READ)
        running = True
        while True:
            ready = {key.fd for key, _ in selector.select(None if running else 0)}
            if running and process.stdout.fileno() in ready:
                chunk = os.read(process.stdout.fileno(), 65536)
                text += chunk
                if not chunk:
                    running = False
                    selector.unregister(process.stdout)
            if reader in ready:
                *lines, pending = (pending + os.read(reader, 1 << 20)).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield json.loads(line)
            elif not running:
                break
    outcome.output = text.decode(errors="replace")


def clear_stale_lock(backend: Path | None = None) -> int:
    """End what no process follows any more and remove locks of engines that are gone; a living engine's lock stays.

    An engine whose `amlstack` was killed works on, holding the lock; whatever it was at, the next `up` goes on with.

    Args:
        backend: Folder of the state; the sandbox stack's own by default.

    Returns:
        How many locks were removed.
    """
    leftovers.end_abandoned(paths.home())
    removed = 0
    for lock in ((backend or paths.home() / "pulumi") / ".pulumi" / "locks").rglob("*.json"):
        try:
            holder = json.loads(lock.read_text())
            ours = holder.get("hostname") == socket.gethostname()
            alive = procfs.started(int(holder["pid"])) is not None
        except (OSError, ValueError, KeyError):
            continue
        if ours and not alive:
            lock.unlink(missing_ok=True)
            removed += 1
    return removed


def end_leftovers() -> int:
    """End every process that engines on this home have left running.

    Returns:
        How many there were.
    """
    return leftovers.end_all(paths.home())
