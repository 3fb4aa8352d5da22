"""What the words of a job mean in a stack; apart from `infra.declare`, so that a job can be read without the rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack.base.paths import is_file
from amlstack.catalog import environments
from infra.settings import CuratedEnvironment, CustomEnvironment

if TYPE_CHECKING:
    from infra.settings import Settings


def environment_of(job: jobs.Job | jobs.Component, settings: Settings, root: Path) -> dict[str, Any]:
    """What a job's environment means in a stack: one of its own by name, or a curated one at its version.

    Args:
        job: As its file says it.
        settings: The stack's.
        root: The folder that paths in the settings start from.

    Returns:
        The job's field ``environment`` where the stack says more than the job does; else nothing.
    """
    wanted = job.environment
    if not isinstance(wanted, str):
        return {}
    wanted = wanted.removeprefix("azureml:")
    for environment in settings.environments:
        if isinstance(environment, CustomEnvironment) and environment.name == wanted:
            conda = str(root / environment.conda) if environment.conda else None
            if conda and not is_file(Path(conda)):
                conda = None  # told already, where the stack says it
            return {"environment": jobs.Environment(name=environment.name, image=environment.image, conda_file=conda)}
        if isinstance(environment, CuratedEnvironment) and environment.version:
            known = environments.get(environment.curated)
            if known is not None and known is environments.get(wanted):
                return {"environment": known.version_id(environment.version)}
    return {}
