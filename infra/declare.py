"""Everything that the stack will be, and everything that is wrong with it, before a single resource is registered."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import snapshot
from amlstack.base.findings import Finding, Level, errors
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import PROJECT, is_dir, is_file, names_in
from amlstack.catalog import environments
from infra import azure_policy_assignment, ruling, scheduled
from infra.composed import Composed, own_code, own_codes, scanned, with_environments
from infra.named import environment_of
from infra.scheduled import Timed
from infra.settings import CuratedEnvironment, CustomEnvironment, dotted
from jobs.planning.checks import INPUT_LOCAL
from policies import gate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from datetime import date

    from infra.settings import JobFile, Reading, Settings
    from policies.config import Config


@dataclass(frozen=True, slots=True)
class Run:
    """One training run of the stack.

    Attributes:
        name: Name of the job; its id is this and a hash.
        plan: The job against its cluster.
        code: Its folder's content; None when it has none to upload.
        own: What of it counts for the run's identity.
    """

    name: str
    plan: jobs.Plan
    code: snapshot.Snapshot | None
    own: snapshot.OwnCode


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the stack says.

    Attributes:
        runs: Its training runs, jobs, sweeps and pipelines, and its schedules of such.
        findings: All that is wrong with settings, clusters and jobs; warnings among them refuse nothing.
        config: The rules' configuration; None when there was nothing to read.
    """

    runs: tuple[Run | Composed | Timed, ...]
    findings: tuple[Finding, ...]
    config: Config | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing refuses it."""
        return not errors(self.findings)


def declare(reading: Reading, *, on: date, root: Path = PROJECT, place: str = "") -> Declaration:
    """Judge the settings' meaning: sizes, environments, job files and the jobs in them.

    Args:
        reading: The settings; where they are faulty, what could be made of them is judged.
        on: The day of the judgement, for retired sizes.
        root: The folder that paths in the settings start from.
        place: ``STACK::PROJECT``, for exceptions with patterns over URNs; empty where it is not known.
    """
    if reading.partial is None:
        return Declaration((), reading.findings)
    rules, faults = gate_of(reading, reading.partial, on=on, root=root, place=place)
    stack = _Stack(reading, reading.partial, on, root, rules)
    found = [*reading.findings, *faults, *stack.clusters(), *stack.environments()]
    runs: list[Run | Composed | Timed] = []
    for index, job_file in enumerate(reading.partial.jobs):
        if not reading.doubts("jobs", index, "file"):
            more, wrong = stack.file(index, job_file)
            runs += more
            found += wrong
    found += _names_twice(runs)
    if reading.partial.azure_policy is not None:
        found += azure_policy_assignment.check(reading, reading.partial.azure_policy)
    found += ruling.of_the_rest(rules, reading, reading.partial)
    found += rules.whole()
    return Declaration(tuple(runs), tuple(found), rules.config)


def gate_of(
    reading: Reading, settings: Settings, *, on: date, root: Path, place: str = "", file: Path | None = None
) -> tuple[gate.Gate, tuple[Finding, ...]]:
    """The rules as a stack configures them, and what is wrong with their file.

    Args:
        reading: The settings.
        settings: The same, mended.
        on: The day of the judgement.
        root: The folder that paths in the settings start from.
        place: ``STACK::PROJECT``.
        file: A configuration that counts instead of the stack's.
    """
    where = dotted(("policies",))
    path = file or (root / settings.policies if settings.policies else None)
    config, faults = gate.read(path, written=str(file or settings.policies or ""), where="" if file else where)
    located = faults if file else tuple(reading.locate(("policies",), replace(one, file=None)) for one in faults)
    return gate.Gate(config, on, place=place), located


@dataclass(frozen=True, slots=True)
class _Stack:
    reading: Reading
    settings: Settings
    on: date
    root: Path
    rules: gate.Gate
    of_clusters: dict[int, tuple[Finding, ...]] = field(default_factory=dict)

    @property
    def own_environments(self) -> tuple[str, ...]:
        """Names of the environments that the stack registers."""
        return tuple(each.name for each in self.settings.environments if isinstance(each, CustomEnvironment))

    def clusters(self) -> Iterator[Finding]:
        for index in range(len(self.settings.clusters)):
            yield from self.cluster(index)

    def cluster(self, index: int) -> tuple[Finding, ...]:
        """What the rules say of one cluster, which is judged once."""
        if index not in self.of_clusters:
            self.of_clusters[index] = ruling.of_cluster(self.rules, self.reading, self.settings, index)
        return self.of_clusters[index]

    def told(self, finding: Finding, target: jobs.Target) -> bool:
        """Whether a job's finding says of its cluster or environment what the settings' own findings say already."""
        if finding.code == "environment-unknown" and self.reading.doubts("environments"):
            return True
        return finding.where == "compute" and any(
            finding.code == other.code
            for index, cluster in enumerate(self.settings.clusters)
            if cluster.name == target.cluster
            for other in self.cluster(index)
        )

    def environments(self) -> Iterator[Finding]:
        for index, environment in enumerate(self.settings.environments):
            loc: tuple[str | int, ...] = ("environments", index)
            if self.reading.doubts(*loc):
                continue
            if isinstance(environment, CuratedEnvironment) and environments.get(environment.curated) is None:
                near = did_you_mean(environment.curated, (each.name for each in environments.all_environments()))
                yield self.reading.locate(
                    (*loc, "curated"),
                    Finding(
                        "environment-unknown",
                        dotted((*loc, "curated")),
                        f"`{environment.curated}` is no curated environment that the catalogue knows",
                        "A curated environment is one of Azure ML's registry; your own has `name` and `image`",
                        near,
                    ),
                )
            if isinstance(environment, CustomEnvironment) and environment.conda:
                path = self.root / environment.conda
                if not is_file(path):
                    yield self.missing((*loc, "conda"), environment.conda, "A conda file is a path in the project")

    def file(self, index: int, job_file: JobFile) -> tuple[list[Run | Composed | Timed], list[Finding]]:
        """The runs of one job file."""
        path = self.root / job_file.file
        if not is_file(path):
            return [], [self.missing(("jobs", index), job_file.file, "A job file is a path in the project")]
        loaded = jobs.load(path)
        found = list(loaded.findings)
        runs: list[Run | Composed | Timed] = []
        for job in loaded.jobs:
            found += (self.reading.locate(("jobs", index), each) for each in scheduled.misplaced(job, job_file))
            if not isinstance(job, jobs.Job):
                several: tuple[Composed | Timed, list[Finding]] = (
                    self.timed(job, job_file, loaded.source)
                    if isinstance(job, jobs.Schedule)
                    else self.composed(job, job_file, loaded.source, path)
                )
                runs.append(several[0])
                found += several[1]
                continue
            declared = job.model_copy(update={**job_file.overrides, **environment_of(job, self.settings, self.root)})
            target, wrong = self.target(declared)
            plan = jobs.plan(declared, target, on=self.on, source=loaded.source, environments=self.own_environments)
            name = declared.name or path.stem
            ruled = ruling.of_plan(self.rules, name, plan, loaded.source)
            found += [finding for finding in ruled if not self.told(finding, target)]
            found += (loaded.source.locate(finding) for finding in wrong)
            code = snapshot.scan(plan.code, plan.beside) if plan.code and is_dir(plan.code) else None
            found += [_in_folder(code.root, finding) for finding in code.findings] if code else []
            found += [loaded.source.locate(finding) for finding in _not_deployable(declared)]
            own = own_code(plan, code, path) if code else snapshot.OwnCode()
            runs.append(Run(name, plan, code, own))
        return runs, [self.shortened(_of_a_stack(finding)) for finding in found]

    def composed(
        self, run: jobs.Sweep | jobs.Pipeline, job_file: JobFile, source: jobs.Source, path: Path
    ) -> tuple[Composed, list[Finding]]:
        """A sweep or pipeline, and what is wrong with it."""
        declared = with_environments(run.model_copy(update=job_file.overrides), self.means)
        plan = jobs.resolve(declared, self.target, on=self.on, source=source, environments=self.own_environments)
        assert isinstance(plan, (jobs.SweepPlan, jobs.PipelinePlan))  # noqa: S101 - of a sweep or a pipeline
        name = declared.name or path.stem
        codes, found = self.parted(plan, name, source, source.locate)
        return Composed(name, plan, codes, own_codes(plan, codes, path)), found

    def timed(self, schedule: jobs.Schedule, job_file: JobFile, source: jobs.Source) -> tuple[Timed, list[Finding]]:
        """A schedule, and what is wrong with it and with what it starts."""
        declared = scheduled.declared(schedule, job_file, self.means)
        plan = jobs.resolve(declared, self.target, on=self.on, source=source, environments=self.own_environments)
        assert isinstance(plan, jobs.SchedulePlan)  # noqa: S101 - of a schedule
        codes, found = self.parted(plan, schedule.name, source, scheduled.placing(schedule, source))
        return Timed(schedule.name, plan, codes), found

    def means(self, part: jobs.Job | jobs.Component) -> dict[str, Any]:
        """What the stack says of a part's environment."""
        return environment_of(part, self.settings, self.root)

    def parted(
        self, plan: jobs.Planned, name: str, source: jobs.Source, place_in_file: Callable[[Finding], Finding]
    ) -> tuple[dict[str, snapshot.Snapshot], list[Finding]]:
        """The code of each part of a plan, and what is wrong with it, each thing once."""
        parts = jobs.parts(plan)
        repeated = {
            (f"{place}.compute".lstrip("."), other.code)
            for place, part in parts.items()
            for index, cluster in enumerate(self.settings.clusters)
            if cluster.name == part.target.cluster
            for other in self.cluster(index)
        }
        ruled = ruling.of_plan(self.rules, name, plan, source)
        found = [finding for finding in ruled if (_of_compute(finding, parts), finding.code) not in repeated]
        for place, part in parts.items():
            wrong = _not_deployable(part.job)
            found += (place_in_file(finding.under(place) if place else finding) for finding in wrong)
        codes = scanned(plan)
        for code in codes.values():
            found += [_in_folder(code.root, finding) for finding in code.findings]
        return codes, list(dict.fromkeys(found))

    def target(self, job: jobs.Job) -> tuple[jobs.Target, list[Finding]]:
        """Where a job runs, and what is wrong with that."""
        if job.compute is None:
            return jobs.Target(size=job.instance_type), []
        name = job.compute.removeprefix("azureml:")
        if name.lower() == "local":
            return jobs.Target(), []
        if name.startswith("/"):  # a cluster that somebody else owns: nothing is known of it here
            return jobs.Target(cluster=name.rsplit("/", 1)[-1]), []
        for index, cluster in enumerate(self.settings.clusters):
            if cluster.name.lower() == name.lower() and not self.reading.doubts("clusters", index, "name"):
                doubtful = self.reading.doubts("clusters", index, "nodes")
                size = None if self.reading.doubts("clusters", index, "size") else cluster.size
                most = None if doubtful else cluster.nodes.max
                return jobs.Target(size, cluster.name, most, cluster.single_node_jobs), []
        if self.reading.doubts("clusters"):
            return jobs.Target(cluster=name), []
        names = [cluster.name for cluster in self.settings.clusters]
        return jobs.Target(cluster=name), [
            Finding(
                "cluster-unknown",
                "compute",
                f"The stack has no cluster `{name}`",
                "A job names a cluster of its stack, one that exists by its ARM id, or none to run serverless",
                did_you_mean(name, names, otherwise="Declare amlstack:clusters"),
            )
        ]

    def missing(self, loc: tuple[str | int, ...], written: str, rule: str) -> Finding:
        path = self.root / written
        folder = next((parent for parent in path.parents if is_dir(parent)), None)
        near = did_you_mean(path.relative_to(folder).parts[0], names_in(folder)) if folder else ""
        finding = Finding("file-missing", dotted(loc), f"There is no file `{written}`", rule, near)
        return self.reading.locate(loc, finding)

    def shortened(self, finding: Finding) -> Finding:
        """The finding with its file as seen from the project, where that is shorter."""
        if finding.file is None or not Path(finding.file).is_relative_to(self.root):
            return finding
        return replace(finding, file=os.path.relpath(finding.file, self.root))


def _in_folder(folder: Path, finding: Finding) -> Finding:
    """A finding on a snapshot's file, which is named from the folder on."""
    return replace(finding, file=str(folder / finding.file)) if finding.file else finding


def _of_compute(finding: Finding, parts: Collection[str]) -> str:
    """Where a part's finding on its compute stands among the parts; of a sweep's trial that is the sweep's own key."""
    where = finding.where.removeprefix("create_job.")
    return "trial.compute" if where == "compute" and "trial" in parts else where


def _of_a_stack(finding: Finding) -> Finding:
    """What is a warning where azure-ai-ml may submit the file, and refuses a stack: nobody would upload the data."""
    if finding.code != INPUT_LOCAL:
        return finding
    rule = "A stack uploads code and no data: the job would fail after its nodes have come up"
    return replace(finding, level=Level.ERROR, rule=rule)


def _not_deployable(job: jobs.Job) -> Iterator[Finding]:
    if isinstance(job.environment, jobs.Environment) and job.environment.build is not None:
        yield Finding(
            "environment-build",
            "environment.build",
            "The environment is built from a Docker context",
            "A stack registers environments of an image and a conda file",
            "Push the image to a registry and name it, or register the environment and refer to it",
        )
    if job.compute is not None and job.compute.lower() == "local":
        yield Finding(
            "compute-local",
            "compute",
            "The job runs on `local`",
            "A stack runs jobs on clusters or serverless",
            "Name a cluster; `amlstack rehearse` runs a job on this machine",
        )


def _names_twice(runs: list[Run | Composed | Timed]) -> Iterator[Finding]:
    seen: set[tuple[bool, str]] = set()
    for run in runs:
        timed = isinstance(run, Timed)
        if (timed, run.name) in seen:
            yield Finding(
                "job-twice",
                "amlstack:jobs",
                f"Two {'schedules' if timed else 'jobs'} are named `{run.name}`",
                "A workspace has one schedule of a name"
                if timed
                else "The name is the first part of a run's id, so each job of a stack has its own",
                "Give one of them another `name`",
            )
        seen.add((timed, run.name))
