"""What the code fetches from the internet, and programs that only its image has."""

from __future__ import annotations

import functools
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amlstack.base.paths import is_dir
from amlstack.cli.rehearsal.feasibility.aspect import Aspect
from amlstack.code_reading import shell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import jobs
    from amlstack.code_reading.downloads import Download

_SECONDS: Final = 0.4
"""How long all hosts are waited for together, while the rest is judged: an answer takes a tenth of that."""


class Needs:
    """What the parts of a job need of the internet; the hosts are asked while the caller judges the rest.

    Args:
        parts: Every part that is to run, by its place.
    """

    def __init__(self, parts: Mapping[str, jobs.Plan]) -> None:
        self._found = {place: _Found.of(place, part) for place, part in parts.items()}
        hosts = frozenset(each.host for found in self._found.values() for each in found.downloads if each.host)
        self._away: frozenset[str] = frozenset()
        self._asking = threading.Thread(target=self._ask, args=(hosts,), daemon=True) if hosts else None
        if self._asking is not None:
            self._asking.start()

    def _ask(self, hosts: frozenset[str]) -> None:
        self._away = unreachable(hosts)

    def aspects(self) -> Iterator[Aspect]:
        """What needs the internet or a program, and whether this machine has it; waits for the hosts."""
        if self._asking is not None:
            self._asking.join()
        for place, found in self._found.items():
            yield from _programs(place, found.steps)
            for each in found.downloads:
                file = str(found.folder / each.path) if each.path else None
                yield _of(each, found.instead if each.host in self._away else "", place, file)


@dataclass(frozen=True, slots=True)
class _Found:
    """The steps and downloads of one part, its code folder, and what is to be done where a host is out of reach."""

    steps: tuple[Sequence[str], ...]
    downloads: tuple[Download, ...]
    folder: Path
    instead: str

    @classmethod
    def of(cls, place: str, part: jobs.Plan) -> _Found:
        from amlstack.code_reading import downloads

        steps = shell.steps(part.enriched.command)
        found = [*downloads.in_command(steps)]
        code = part.job.code
        folder = part.base / code.path if code is not None and code.local else part.base
        if code is not None and code.local and is_dir(folder):
            found += downloads.in_code(folder, shell.scripts(part.enriched.command))
        step = place.removeprefix("jobs.")
        written = " ".join(f"--input {step}.{name}=PATH" for name in part.job.outputs) if step != place else ""
        instead = f"Give what the step writes, `{written}`" if written else "Give the job its data as an input"
        return cls(tuple(steps), tuple(found), folder, instead)


def _programs(place: str, steps: tuple[Sequence[str], ...]) -> Iterator[Aspect]:
    from amlstack.code_reading import programs

    for program in programs.outside_programs(steps):
        if program.changes:
            text = f"`{program.name}` in the command would change this machine, where a rehearsal runs its commands"
            remedy = "Move it into the image, or give --force to run it here all the same."
        else:
            text = f"`{program.name}` is not on this machine, and a stand-in of an image holds Python packages alone"
            remedy = "Install it, or rehearse where it is."
        yield Aspect("programs", "blocks", text, remedy, (place,), ignorable=True)


def _of(each: Download, instead: str, place: str, file: str | None) -> Aspect:
    """What becomes of a download; ``instead`` is what to do where its host is out of reach, else empty."""
    where = each.host or "the internet"
    line = each.line or None
    if instead and each.certain:
        text = f"{each.what}, and {where} cannot be reached from this machine"
        remedy = f"{instead}, or --force where what it fetches is here already."
        return Aspect("internet", "blocks", text, remedy, (place,), file, line, ignorable=True)
    unsure = "" if each.certain else ", unless a condition of the code spares it"
    missing = f"; {where} cannot be reached from this machine" if instead else ""
    return Aspect("internet", "note", f"{each.what} from {where}{unsure}{missing}", "", (place,), file, line)


@functools.lru_cache(maxsize=32)
def unreachable(hosts: frozenset[str]) -> frozenset[str]:
    """The hosts that refuse or have no address here; one that is only slow counts as reachable."""
    failed: set[str] = set()

    def ask(host: str) -> None:
        try:
            socket.create_connection((host, 443), timeout=_SECONDS).close()
        except TimeoutError:
            return
        except OSError:
            failed.add(host)

    asking = [threading.Thread(target=ask, args=(host,), daemon=True) for host in hosts]
    for thread in asking:
        thread.start()
    until = time.monotonic() + _SECONDS
    for thread in asking:
        thread.join(max(0.0, until - time.monotonic()))
    return frozenset(failed)
