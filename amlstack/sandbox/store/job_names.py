"""Jobs by the names that people give them: a run's own, its job's, a step's or a trial's below its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base import near_misses
from amlstack.sandbox.store.holdings import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.sandbox.store.store import JobRow, Store


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
        raise UnknownJobError(f"{len(found)} {kind} begin with {wanted!r}: {names}. Name one of them.")
    known = [path(store, job) for job in jobs]
    hint = near_misses.hint(wanted, dict.fromkeys((*known, *(name.rpartition("-")[0] for name in known))))
    seen = f"No job {wanted!r} runs. Running" if what == "running" else f"There is no job {wanted!r}. There are"
    raise UnknownJobError(f"{seen}: {listed(known) or 'none'}.{hint}")


def matches(store: Store, wanted: str, jobs: Iterable[JobRow]) -> tuple[JobRow, ...]:
    """Those of some jobs that may be meant: the one of that very name, else all that begin with it.

    Args:
        store: The sandbox's tables.
        wanted: The run's name or ARM id, or its beginning up to a hyphen, as in the job's file; of a step or trial the
            same of its parent, a slash, and the step's name or the trial's number.
        jobs: Those to choose from.
    """
    known = {path(store, job): job for job in jobs}
    found = [job for name, job in known.items() if wanted in (name, job.name, job.id, job.arm_id)]
    stem, slash, place = wanted.partition("/")
    begun = (job for name, job in known.items() if name.startswith(f"{stem}-") and name.endswith(slash + place))
    return tuple(found or begun)


def path(store: Store, job: JobRow) -> str:
    """``<job>``, or for a child ``<parent>/<place>``: by what a person can name it."""
    above = store.family.above(job.id)
    places = [store.family.place(key) or key for key in (job.id, *above[:-1])]
    return "/".join([above[-1], *reversed(places)]) if above else job.id
