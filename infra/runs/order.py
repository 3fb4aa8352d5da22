"""The order of a stack's runs, and the names in them as the stack means them: environments, targets, secrets.

Order comes from names under ``after``, in job files and in the settings' list of them.
"""

from __future__ import annotations

import graphlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import jobs
from amlstack import run_identity
from amlstack.base.findings import Finding, stated
from amlstack.base.paths import is_file
from amlstack.base.text import did_you_mean
from amlstack.catalog import environments, regions
from jobs.planning.plans import Target
from jobs.wire.command import is_serverless, secret_of

if TYPE_CHECKING:
    from infra.names import Names
    from infra.settings import JobFile, Reading, Settings
    from jobs.model.job import Job

_LATEST = "@latest"
UNNAMED = "amlstack-inline"
"""Name of what a job writes inline without a name: its version says what it is."""


def environment_of(job: jobs.Job | jobs.Component, settings: Settings, root: Path) -> dict[str, Any]:
    """The meaning of a job's environment in a stack: its own by name, also with ``@latest``, or a curated one.

    Args:
        job: As its file declares it.
        settings: The stack's.
        root: The folder that paths in the settings start from.

    Returns:
        The job's field ``environment`` where the stack sets more than the job does; else nothing.
    """
    from infra.settings import CuratedEnvironment, CustomEnvironment  # noqa: PLC0415 - `check` of a file needs neither

    wanted = job.environment
    if not isinstance(wanted, str):
        return {}
    name = wanted.removeprefix("azureml:")
    own = name.removesuffix(_LATEST)  # the latest one of the stack's is what the stack declares
    for environment in settings.environments:
        if isinstance(environment, CustomEnvironment) and environment.name == own:
            conda = str(root / environment.conda) if environment.conda else None
            if conda and not is_file(Path(conda)):
                conda = None  # the settings have a finding on it already
            return {"environment": jobs.Environment(name=environment.name, image=environment.image, conda_file=conda)}
        if isinstance(environment, CuratedEnvironment):
            known = environments.get(environment.curated)
            by_reference = name != wanted and environment.curated == own
            if known is not None and environment.version and (by_reference or known is environments.get(name)):
                return {"environment": known.version_id(environment.version)}
            if known is not None and by_reference:
                return {"environment": known.label_id()}
    return {}


@dataclass(frozen=True, slots=True)
class RegisteredEnvironment:
    """An environment that the stack registers, under a version made from its content.

    Attributes:
        name: Name in the workspace.
        body: ARM properties of the version.
    """

    name: str
    body: dict[str, Any]

    @classmethod
    def of(cls, inline: jobs.Environment, base: Path) -> RegisteredEnvironment:
        """The registered environment that an inline one becomes.

        Args:
            inline: As the job or the stack declares it, with an image.
            base: Folder that its conda file's path starts from.
        """
        system = (inline.os_type or "linux").capitalize()
        body = {**jobs.environment_properties(inline, base), "osType": system}
        if inline.name is not None:
            del body["isAnonymous"]  # what has a name is found by it
        return cls(inline.name or UNNAMED, body)

    @property
    def version(self) -> str:
        """The version that the provider will give it."""
        return run_identity.environment_version(self.body)

    def id_in(self, names: Names) -> str:
        """Its ARM id."""
        return f"{names.workspace_id}/environments/{self.name}/versions/{self.version}"


LOCAL = "local"


def resolve_target(job: Job, reading: Reading) -> tuple[Target, list[Finding]]:
    """The target of a job, and what is wrong with it; nothing is judged that depends on doubtful settings.

    Args:
        job: As its file declares it; ``compute`` is a name, ``azureml:NAME``, an ARM id or ``local``.
        reading: The stack's settings.
    """
    settings = reading.partial
    home = settings.location if settings is not None and not reading.doubts("location") else None
    if is_serverless(job.compute):
        spot = job.queue_settings is not None and job.queue_settings.job_tier == "spot"
        return Target(size=job.instance_type, region=_region((job.locations or (home,))[0]), low_priority=spot), []
    name = str(job.compute).removeprefix("azureml:")
    if name.lower() == LOCAL:
        return Target(), []
    if name.startswith("/"):  # a cluster that somebody else owns: nothing is known of it
        return Target(cluster=name.rsplit("/", 1)[-1]), []
    clusters = settings.clusters if settings else ()
    for index, cluster in enumerate(clusters):
        if cluster.name.lower() == name.lower() and not reading.doubts("clusters", index, "name"):
            size = None if reading.doubts("clusters", index, "size") else cluster.size
            most = None if reading.doubts("clusters", index, "nodes") else cluster.nodes.max
            return (
                Target(
                    size,
                    cluster.name,
                    most,
                    cluster.single_node_jobs,
                    region=_region(cluster.location or home),
                    low_priority=cluster.priority == "low_priority",
                ),
                [],
            )
    if reading.doubts("clusters"):
        return Target(cluster=name), []
    return Target(cluster=name), [
        Finding(
            "cluster-unknown",
            "compute",
            f"The stack has no cluster `{name}`",
            "A job names a cluster of its stack, one that exists by its ARM id, or none to run serverless",
            did_you_mean(name, [cluster.name for cluster in clusters], otherwise="Declare it under amlstack:clusters."),
        )
    ]


def _region(written: str | None) -> str | None:
    return regions.code(written) if written else None


_OF_VARIABLES = "A variable names a secret under `amlstack:secrets`"


def with_secrets(declared: jobs.Declared, job_file: JobFile) -> jobs.Declared:
    """A declaration with the variables that the settings add to each of its jobs, trials and steps."""
    if not job_file.environment_variables:
        return declared
    added = {name: {"secret": value.secret} for name, value in job_file.environment_variables.items()}

    def changed(value: Any) -> Any:
        if hasattr(value, "environment_variables"):
            return value.model_copy(update={"environment_variables": {**value.environment_variables, **added}})
        if value.steps:
            inner = {name: changed(step) for name, step in value.steps.items()}
            return value.with_runs(value.runs.model_copy(update={"jobs": inner}))
        return value

    return declared.with_parts(changed)


def secret_findings(
    declared: jobs.Declared, job_file: JobFile, reading: Reading, index: int, source: jobs.Source
) -> Iterator[Finding]:
    """The findings about the secrets that a declaration names: each one has to be among the stack's.

    Args:
        declared: As the stack means it, `with_secrets`.
        job_file: Its entry in the settings.
        reading: The settings.
        index: Which of `jobs` the entry is.
        source: The job file.
    """
    known = reading.partial.secrets if reading.partial is not None else {}
    sweep = next((name for name, step in declared.steps.items() if step.kind == "sweep"), None)
    if job_file.environment_variables and sweep is not None:
        loc: tuple[str | int, ...] = ("jobs", index, "environment_variables")
        finding = stated("variable-misplaced", "", sweep=sweep)
        yield reading.about(loc, finding)
    for where, variable, name in dict.fromkeys(named_secrets(declared)):
        if name in known or reading.doubts("secrets"):
            continue
        finding = Finding(
            "secret-unknown",
            f"{where}environment_variables.{variable}",
            f"`{variable}` is to hold the secret `{name}`, which the stack does not have",
            _OF_VARIABLES,
            did_you_mean(
                name, known, otherwise=f"Set it by `pulumi config set --secret --path amlstack:secrets.{name}`"
            ),
        )
        loc = ("jobs", index, "environment_variables", variable, "secret")
        if variable in job_file.environment_variables:
            yield reading.about(loc, finding)
        else:
            yield source.locate(finding)


def named_secrets(declared: jobs.Declared) -> Iterator[tuple[str, str, str]]:
    """Each variable that names a secret: the path of the part that has it, its name, the secret's."""
    for place, part in declared.parts.items():
        yield from _secrets_in(part, f"{place}." if place else "")


def _secrets_in(part: Any, where: str) -> Iterator[tuple[str, str, str]]:
    for variable, value in getattr(part, "environment_variables", {}).items():
        if (name := secret_of(value)) is not None:
            yield where, variable, name
    for name, step in part.steps.items():
        yield from _secrets_in(step, f"{where}jobs.{name}.")


_Name = TypeVar("_Name", str, int)
RULE = "`after` lists jobs, sweeps and pipelines of this stack, each by its name or by its job file"


class Wanted(NamedTuple):
    """One entry of an ``after``.

    Attributes:
        name: As it is written: the name of a run, or a job file of the settings.
        locate: From a finding on it to the same with its place.
    """

    name: str
    locate: Callable[[Finding], Finding]


class OrderedRun(NamedTuple):
    """A run, as far as the order knows it.

    Attributes:
        name: Its name.
        file: The job file that declares it, as the settings list it; empty for one that a setting declares.
        wanted: What it comes after.
        is_schedule: It starts runs and never ends.
    """

    name: str
    file: str = ""
    wanted: tuple[Wanted, ...] = ()
    is_schedule: bool = False


class Order(NamedTuple):
    """The order of runs.

    Attributes:
        before: Run → the runs that it comes after, as they are written; without those that a finding is about.
        findings: What is wrong, each with its place.
    """

    before: Mapping[str, tuple[str, ...]]
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, members: Iterable[OrderedRun], *, complete: bool = True) -> Order:
        """Resolve the names.

        Args:
            members: The stack's runs; of several with one name the first counts, a job before a schedule.
            complete: Whether these are all of them; otherwise a name that is not there is passed over.
        """
        known = _Known.of(members)
        before: dict[str, tuple[str, ...]] = {}
        found: list[Finding] = []
        for member in known.runs.values():
            names: dict[str, Wanted] = {}
            for wanted in member.wanted:
                wrong = _wrong(member, wanted, known, complete=complete)
                if wrong is not None:
                    found.append(wanted.locate(wrong))
                else:
                    names |= dict.fromkeys(known.meant(wanted.name), wanted)
            before[member.name] = tuple(names)
        return cls(before, (*found, *_circles(before, known)))

    def awaited(self) -> dict[str, tuple[str, ...]]:
        """Run → the runs that come after it."""
        result: dict[str, tuple[str, ...]] = {}
        for name, earlier in self.before.items():
            for each in earlier:
                result[each] = (*result.get(each, ()), name)
        return result


def sequence(before: Mapping[_Name, Sequence[_Name]]) -> tuple[_Name, ...]:
    """The runs in an order in which each comes after what it waits for, otherwise as they are listed."""
    result: dict[_Name, None] = {}
    for name in before:
        path = {} if name in result else {name: iter(before[name])}
        while path:
            last = next(reversed(path))
            following = next((each for each in path[last] if each not in result and each not in path), None)
            if following is None:
                result[last] = None
                del path[last]
            else:
                path[following] = iter(before.get(following, ()))
    return tuple(result)


class _Known(NamedTuple):
    runs: dict[str, OrderedRun]
    of_file: dict[str, list[str]]

    @classmethod
    def of(cls, members: Iterable[OrderedRun]) -> _Known:
        runs: dict[str, OrderedRun] = {}
        of_file: dict[str, list[str]] = {}
        for member in sorted(members, key=lambda one: one.is_schedule):  # a schedule may be named as a job is
            if runs.setdefault(member.name, member) is member and member.file:
                of_file.setdefault(os.path.normpath(member.file), []).append(member.name)
        return cls(runs, of_file)

    def meant(self, name: str) -> Sequence[str]:
        """The runs that an entry means: one by its name, else those of a file."""
        return (name,) if name in self.runs else self.of_file.get(os.path.normpath(name), ())


def _wrong(member: OrderedRun, wanted: Wanted, known: _Known, *, complete: bool) -> Finding | None:
    name, where = wanted.name, "after"
    meant = known.meant(name)
    if not meant:
        names = [*known.runs, *known.of_file]
        if not complete:
            return None
        seen = f"`{member.name}` comes after `{name}`, which this stack does not run"
        remedy = did_you_mean(name, [each for each in names if each != member.name])
        return Finding("after-unknown", where, seen, RULE, remedy)
    if member.name in meant:
        seen = f"`{member.name}` comes after itself{'' if name == member.name else f', which `{name}` declares'}"
        remedy = "Name the other jobs one by one" if len(meant) > 1 else "Take it out of `after`"
        return Finding("after-itself", where, seen, "A job is submitted once what it comes after has completed", remedy)
    if endless := [each for each in meant if known.runs[each].is_schedule]:
        return stated("after-schedule", where, member=member, endless=endless[0])
    if member.is_schedule:
        return stated("after-schedule/wrong", where, member=member, name=name)
    return None


def _circles(before: dict[str, tuple[str, ...]], known: _Known) -> list[Finding]:
    """A finding for each circle, at the run in it that is listed first; the circle is cut there in ``before``."""
    found: list[Finding] = []
    try:
        graphlib.TopologicalSorter(before).prepare()
    except graphlib.CycleError:
        pass
    else:
        return found
    for name in tuple(before):
        while (circle := _circle(name, before)) is not None:
            following = circle[1] if len(circle) > 1 else name
            words = ", ".join(
                f"`{one}` after `{other}`" for one, other in zip(circle[1:], [*circle[2:], name], strict=True)
            )
            finding = stated("after-circle", "after", name=name, following=following, words=words)
            wanted = next(each for each in known.runs[name].wanted if following in known.meant(each.name))
            found.append(wanted.locate(finding))
            before[name] = tuple(each for each in before[name] if each != following)
    return found


def _circle(start: str, before: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """The shortest way from a run back to itself, itself first; None where there is none."""
    came: dict[str, str] = {}
    front = [start]
    while front:
        following: list[str] = []
        for name in front:
            for each in before.get(name, ()):
                if each == start:
                    way = [name]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return way[::-1]
                if each not in came:
                    came[each] = name
                    following.append(each)
        front = following
    return None


def members(
    loaded: jobs.Loaded,
    path: Path,
    job_file: JobFile,
    reading: Reading,
    index: int,
    *,
    shown: Callable[[Finding], Finding] = lambda finding: finding,
) -> list[OrderedRun]:
    """The runs of a job file with what they come after: what the file says of each, and the settings of all.

    Args:
        loaded: The file.
        path: Where it is.
        job_file: Its entry in the settings.
        reading: The settings.
        index: Which of `jobs` the entry is.
        shown: Applied to findings in the file.
    """
    of_settings = tuple(
        Wanted(name, partial(reading.about, ("jobs", index, "after", number)))
        for number, name in enumerate(job_file.after)
    )
    return [
        OrderedRun(
            declared.name or path.stem,
            job_file.file,
            (*_of_file(loaded, position, shown), *of_settings),
            declared.timed,
        )
        for position, declared in enumerate(loaded.jobs)
    ]


def alone(loaded: jobs.Loaded, path: Path) -> list[OrderedRun]:
    """The same of a file that no settings list."""
    return [
        OrderedRun(
            declared.name or path.stem,
            os.path.normpath(path),
            tuple(_of_file(loaded, position, lambda finding: finding)),
            declared.timed,
        )
        for position, declared in enumerate(loaded.jobs)
    ]


def misplaced(loaded: jobs.Loaded) -> Iterator[Finding]:
    """An ``after`` where there is nothing to wait: at a step of a pipeline, or at what a schedule starts."""
    for declared in loaded.jobs:
        started = declared.runs if declared.timed else None
        if getattr(started, "after", ()):
            finding = stated("after-misplaced", "create_job.after")
            yield loaded.source.locate(finding)
        for name, step in declared.steps.items():
            if getattr(step, "after", ()):
                finding = stated("after-misplaced/misplaced", f"jobs.{name}.after", name=name)
                yield loaded.source.locate(finding.under("create_job") if declared.timed else finding)


def _of_file(loaded: jobs.Loaded, position: int, shown: Callable[[Finding], Finding]) -> Iterator[Wanted]:
    names = getattr(loaded.jobs[position], "after", ())
    for number, name in enumerate(names):
        yield Wanted(name, partial(_in_file, loaded, position, number, shown))


def _in_file(
    loaded: jobs.Loaded, position: int, number: int, shown: Callable[[Finding], Finding], finding: Finding
) -> Finding:
    places = (f"after[{number}]", f"jobs[{position}].after[{number}]")
    located = [loaded.source.locate(replace(finding, where=where)) for where in places]
    if len(loaded.jobs) > 1:
        located.reverse()
    return shown(next((each for each in located if each.line is not None), located[0]))
