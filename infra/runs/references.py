"""Names in a job as its stack means them: its environment, its target, and the secrets in its variables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import run_identity
from amlstack.base.findings import Finding
from amlstack.base.paths import is_file
from amlstack.base.text import did_you_mean
from amlstack.catalog import environments, regions
from infra.settings import CuratedEnvironment, CustomEnvironment
from jobs.planning.plans import Target
from jobs.wire.references import is_serverless, secret_of

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        finding = Finding(
            "variable-misplaced",
            "",
            f"The step `{sweep}` would have the variables too, and tries many hyperparameters",
            "Azure ML takes no variables at such a step",
            "Take the step into a file of its own",
        )
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
                name,
                known,
                otherwise=f"Set it by `pulumi config set --secret --path amlstack:secrets.{name}`",
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
