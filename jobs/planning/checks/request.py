"""What the request carries otherwise than it is written, or has no place for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from jobs.launchers import Custom
from jobs.model.distribution import RayDistribution
from jobs.model.secret_variables import secret_of
from jobs.model.values import Input
from jobs.planning.checks.local_files import local_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jobs.model.job import Job
    from jobs.model.values import Scalar


def variables(job: Job, reserved: frozenset[str]) -> Iterator[Finding]:
    """Variables that the launcher sets itself, and such as are no text."""
    for name, value in job.environment_variables.items():
        where = f"environment_variables.{name}"
        if name in reserved:
            yield Finding(
                "variable-reserved",
                where,
                f"The job sets `{name}`",
                "Azure ML and the launcher set it, differently on each node or process",
                "Leave it out; the training code finds it set.",
                Level.ERROR if job.typed else Level.WARNING,
            )
        if isinstance(value, (dict, list)) and secret_of(value) is None:
            yield Finding(
                "variable-not-text",
                where,
                f"`{name}` is a {'mapping' if isinstance(value, dict) else 'list'}",
                "A variable is text, or `{secret: NAME}` for a secret of the stack",
                "Write it as one string.",
                Level.WARNING,
            )


def losses(job: Job) -> Iterator[Finding]:
    """What the wire form cannot hold."""
    if isinstance(job.docker_args, tuple) and job.docker_args:
        for name in ("locations", "max_instance_count"):
            if getattr(job, name) is not None:
                yield Finding(
                    "lost-in-rendering",
                    name,
                    f"`{name}` is not sent beside a list of docker_args",
                    "Azure ML's form with a list of arguments has no place for it",
                    "Write docker_args as one string.",
                    Level.WARNING,
                )
    for name, value in job.inputs.items():
        for key in _unsent(value):
            yield Finding(
                "lost-in-rendering",
                f"inputs.{name}.{key}",
                f"`{key}` is not sent",
                "The request of a command job has no place for it",
                "Leave it out.",
                Level.WARNING,
            )
    if isinstance(job.launcher, Custom) and isinstance(job.launcher.distribution, RayDistribution):
        yield Finding(
            "ray-experimental",
            "launcher",
            "The distribution is Ray",
            "Azure ML offers Ray as an experiment: it is sent as written, and may change without notice",
            level=Level.INFO,
        )


def _unsent(value: Input | Scalar) -> Iterator[str]:
    if isinstance(value, Input):
        if value.path_on_compute is not None:
            yield "path_on_compute"
        if value.datastore is not None and not local_path(value.path or ""):
            yield "datastore"


def reserved(job: Job) -> frozenset[str]:
    """Variables that the job's launcher sets by itself."""
    return job.launcher.reserved if isinstance(job.launcher, Custom) else job.launcher.RESERVED
