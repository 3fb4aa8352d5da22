"""Environments of a job that a rehearsal cannot know: registered in a workspace, or declared by a stack not read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.paths import PROJECT
from amlstack.cli.rehearsal.mapping_file import NAME
from jobs.model.component import NO_ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jobs
    from amlstack.cli.targets import Targets

_ELSEWHERE = ("azureml:/", "azureml:AzureML-")


def findings(plan: jobs.Planned, where: Targets, file: Path, refusal: str) -> Iterator[Finding]:
    """For each part whose environment was found nowhere: what was looked for, where, and the remedy.

    Args:
        plan: The plan that the sandbox refused.
        where: The stack that was read, if any.
        file: The job file.
        refusal: The sandbox's message; an environment that it does not name is not what is wrong.
    """
    for place, part in plan.parts.items():
        wanted = where.environment_of(part.job).get("environment", part.job.environment)
        if not isinstance(wanted, str) or not wanted.startswith("azureml:") or wanted == NO_ENVIRONMENT:
            continue
        if wanted.startswith(_ELSEWHERE):
            continue
        name = wanted.removeprefix("azureml:").partition("@")[0].partition(":")[0]
        if name not in refusal:
            continue
        seen, remedy = words(wanted, where)
        yield Finding(
            "environment-unregistered",
            f"{place}.environment".lstrip("."),
            seen,
            "A rehearsal knows curated environments, those written in the job, and those of the stack that it reads",
            remedy,
            file=str(file),
        )


def words(wanted: str, where: Targets) -> tuple[str, str]:
    """What was looked for and where, and the remedy.

    Args:
        wanted: The environment's reference.
        where: The stack that was read, if any.
    """
    name = wanted.removeprefix("azureml:").partition("@")[0].partition(":")[0]
    return f"`{wanted}` was looked for in the sandbox's workspace, and {_looked(where)}", _remedy(name, where)


def _looked(where: Targets) -> str:
    if where.settings is not None:
        return (
            f"among the environments of Pulumi.{where.stack}.yaml ({', '.join(sorted(where.environments())) or 'none'})"
        )
    return "no stack's settings were read" + (", because --size was given" if where.size else "")


def _remedy(name: str, where: Targets) -> str:
    if stack := next((each for each, names in _declared() if name in names and each != where.stack), None):
        return f"Give --stack {stack}, which declares `{name}`{', and leave --size out' if where.size else ''}."
    return (
        "Write it into the job (`image`, `conda_file`), declare it in a stack and name that with --stack, or write "
        f'into {NAME} beside the job: `[stand_in."azureml:{name}"]`, below it `requirements = ["PACKAGE==VERSION"]`.'
    )


def _declared() -> Iterator[tuple[str, frozenset[str]]]:
    """The stacks here and in the project's root, each with the names of its environments."""
    from amlstack.cli.targets import Targets
    from infra.settings import read_file

    for base in dict.fromkeys((Path.cwd(), PROJECT)):
        for path in sorted(base.glob("Pulumi.*.yaml")):
            yield path.suffixes[0][1:], Targets(settings=read_file(path).partial).environments()
