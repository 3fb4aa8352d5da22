"""Processes that a killed engine leaves behind, found by a mark in their environment.

An engine starts language hosts, plugins and policy packs, each in a process group of its own. Killed, it ends none of
them: plugins notice, but a language host looks for its engine every few minutes, and a policy pack never does.
"""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

from amlstack.processes import marks, procfs

if TYPE_CHECKING:
    from pathlib import Path

MARK = "AMLSTACK_ENGINE"
"""Variable of everything that one run of the engine starts: ``<home>:<pid>:<its start time>:<word>``, where the process
is the one that runs the engine and follows it."""


def fresh(home: Path) -> str:
    """The mark of a new run of the engine that this process will follow."""
    return f"{home}:{os.getpid()}:{procfs.started(os.getpid())}:{secrets.token_hex(8)}"


def find(home: Path) -> tuple[int, ...]:
    """Live processes of all runs on a home."""
    return marks.find(MARK, f"{home}:", prefix=True)


def end_abandoned(home: Path) -> None:
    """Ends what runs on a home have started that no process follows any more: who started them was killed."""
    for mark in {marks.value(pid, MARK) for pid in find(home)}:
        if mark and not _is_followed(mark):
            marks.end(MARK, mark)


def end_all(home: Path) -> int:
    """Ends the processes of all runs on a home; how many there were."""
    return marks.end(MARK, f"{home}:", prefix=True)


def _is_followed(mark: str) -> bool:
    _, pid, start, _ = mark.rsplit(":", 3)
    return str(procfs.started(int(pid))) == start
