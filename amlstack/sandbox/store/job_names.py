"""Jobs by the names that people give them: a run's own, its job's, a step's or a trial's below its parent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import text
from amlstack.sandbox.store.holdings import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from amlstack.sandbox.store.store import JobRow, Store

_NAME: Final = "amlstack.name"
"""The property by which a run of a stack names its job (`amlstack.run_identity`)."""
_RUN: Final = re.compile(r"(?P<job>.+)-(?:[0-9a-f]{10}|[0-9a-f]{6})")
"""A run's name: its job's, and ten hex digits of its identity, or six random ones of a rehearsal."""


class UnknownJobError(Exception):
    """No job has such a name, or several have; the message names what there is."""


def find(store: Store, wanted: str, jobs: Iterable[JobRow], *, what: str = "") -> JobRow:
    """The one of some jobs that a person means.

    Args:
        store: The sandbox's tables.
        wanted: See `matches`.
        jobs: Those to choose from.
        what: What they are, for the message: ``running``.

    Raises:
        UnknownJobError: None of them is meant, or several may be.
    """
    jobs = tuple(jobs)
    found = matches(store, wanted, jobs)
    if len(found) == 1:
        return found[0]
    if found:
        kind = f"{what} jobs" if what else "jobs"
        names = listed([path(store, job) for job in found])
        raise UnknownJobError(f"{wanted!r} names {len(found)} {kind}: {names}. Name one of them.")
    known = [path(store, job) for job in jobs]
    begun = [name for name in known if name.startswith(wanted)]
    hint = text.hint(wanted, dict.fromkeys((*known, *map(job_of, known))))
    hint = f" A whole name is needed; so begin: {listed(begun)}.{hint}" if begun else hint
    seen = f"No job {wanted!r} runs. Running" if what == "running" else f"There is no job {wanted!r}. There are"
    raise UnknownJobError(f"{seen}: {listed(known) or 'none'}.{hint}")


def matches(store: Store, wanted: str, jobs: Iterable[JobRow]) -> tuple[JobRow, ...]:
    """Those of some jobs that may be meant: the run of that very name, else the runs of the job of that very name.

    Args:
        store: The sandbox's tables.
        wanted: The run's name or ARM id, or its job's name, as in the job's file; of a step or trial the same of its
            parent, a slash, and the step's name or the trial's number.
        jobs: Those to choose from.
    """
    known = {path(store, job): job for job in jobs}
    found = [job for name, job in known.items() if wanted in (name, job.name, job.id, job.arm_id)]
    stem, slash, place = wanted.partition("/")

    def is_of(name: str) -> bool:
        run, inner, below = name.partition("/")
        row = store.jobs.get(run)
        return (inner, below) == (slash, place) and stem == job_of(run, {} if row is None else row.properties)

    return tuple(found) or tuple(job for name, job in known.items() if is_of(name))


def job_of(run: str, properties: Mapping[str, Any] | None = None) -> str:
    """The name of a run's job, as in the job's file; the run's own name where it does not tell.

    Args:
        run: The run's name.
        properties: The ARM ``properties`` of its record.
    """
    marked = ((properties or {}).get("properties") or {}).get(_NAME)
    made = _RUN.fullmatch(run)
    return str(marked) if marked else run if made is None else made["job"]


def path(store: Store, job: JobRow) -> str:
    """``<job>``, or for a child ``<parent>/<place>``: by what a person can name it."""
    above = store.family.above(job.id)
    places = [store.family.place(key) or key for key in (job.id, *above[:-1])]
    return "/".join([above[-1], *reversed(places)]) if above else job.id
