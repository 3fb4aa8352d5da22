"""Ports that a job fixes itself: those of a cluster's nodes would be free, those of this machine may be taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir
from amlstack.cli.rehearsal.feasibility.aspect import Aspect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import jobs

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"
_KINDS = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow"}


@dataclass(frozen=True, slots=True)
class Asking:
    """What fixes ports, as `fixed_ports.ports` reads it."""

    command: str
    distribution: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


def aspects(place: str, part: jobs.Plan) -> Iterator[Aspect]:
    """Each port that a part's variables, command or scripts name, and whether a program listens on it now."""
    from amlstack.sandbox.runner import fixed_ports

    code = part.job.code
    if code is None or not code.local or not is_dir(folder := part.base / code.path):
        return
    enriched = part.enriched
    kind = getattr(getattr(enriched.launcher, "distribution", None), "type", "")
    variables = {name: str(value) for name, value in enriched.environment_variables.items()}
    found = fixed_ports.ports(Asking(enriched.command, _KINDS.get(kind), variables), folder)
    taken = _listened() if found else frozenset()
    for port in found:
        if port in taken:
            text = f"{port} is fixed by the job, and a program of this machine listens on it"
            yield Aspect("ports", "note", f"{text}: the ranks cannot, as long as it runs", "", (place,))
        else:
            text = f"{port} is fixed by the job: rehearsals that fix the same one run one after the other"
            yield Aspect("ports", "ready", text, "", (place,))


def _listened() -> frozenset[int]:
    """Ports on which any program of this machine listens."""
    found = set()
    for table in _TABLES:
        try:
            rows = [line.split() for line in table.read_text().splitlines()[1:]]
        except OSError:
            continue
        found |= {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == _LISTENING}
    return frozenset(found)
