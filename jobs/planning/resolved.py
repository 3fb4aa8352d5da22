"""Plans: what those of every kind of declaration have in common, and that of a command job, of which others consist."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

from amlstack.base.findings import errors
from amlstack.base.paths import is_dir
from jobs.planning.declared_data import declaration

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.model.job import Job
    from jobs.model.sweep import SweepLimits
    from jobs.planning.enrichment import Added
    from jobs.planning.target import Target


class Resolved:
    """Base of all plans.

    Attributes:
        findings: What is wrong, placed in the file.
        base: Folder that relative paths start from.
    """

    timed: ClassVar[bool] = False
    """Whether it is a schedule."""

    findings: tuple[Finding, ...]
    base: Path

    @property
    def runs(self) -> Self | None:
        """The plan of what is run: it itself."""
        return self

    @property
    def ok(self) -> bool:
        """Whether nothing refuses it; warnings do not."""
        return not errors(self.findings)

    @property
    def parts(self) -> Mapping[str, Plan]:
        """The plans of its command jobs, by their place: `jobs.STEP`, `trial`; empty for a single job."""
        raise NotImplementedError

    @staticmethod
    def step(place: str) -> str:
        """Name of the step at a part's place; empty for a job, and for a sweep's trial."""
        return place.removeprefix("jobs.") if place.startswith("jobs.") else ""

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the part at a place as one of the whole."""
        return finding.under(place) if place else finding

    def trials(self, place: str) -> SweepLimits | None:
        """How often the part at a place is tried; None for a part that runs once."""
        del place
        return None


@dataclass(frozen=True)
class Plan(Resolved):
    """A job resolved against a target.

    Attributes:
        job: As declared.
        enriched: In Azure ML's words, with all that was added; what `jobs.body` renders.
        target: What it was planned against.
        nodes: Number of nodes.
        processes_per_node: Ranks per node; None where only the running job knows.
        world_size: Ranks in total; None likewise.
        added: What is not the person's own, value by value.
        findings: What is wrong, placed in the job's file.
        base: Folder that the job's relative paths start from.
        beside: Packages that travel with the code; they are no part of the run's identity.
    """

    job: Job
    enriched: Job
    target: Target
    nodes: int
    processes_per_node: int | None
    world_size: int | None
    added: tuple[Added, ...]
    findings: tuple[Finding, ...]
    base: Path
    beside: tuple[Path, ...] = ()

    @property
    def parts(self) -> dict[str, Plan]:
        """The plan itself: a single job is its one part."""
        return {"": self}

    @cached_property
    def declaration(self) -> dict[str, Any]:
        """What the person wrote, for the run's identity: without names, tags and anything derived."""
        return declaration(self.job, self.base)

    @cached_property
    def code(self) -> Path | None:
        """The folder to upload; None when the job has none or names code that is registered already."""
        if self.job.code is None or not self.job.code.local:
            return None
        folder = self.base / self.job.code.path
        includes = [self.base / name for name in self.job.code.includes]
        if not includes or not is_dir(folder):
            return folder
        from amlstack import snapshot  # noqa: PLC0415 - few jobs have such code
        from amlstack.base import paths  # noqa: PLC0415 - few jobs have such code

        return snapshot.staged(folder, includes, paths.cache() / "includes")
