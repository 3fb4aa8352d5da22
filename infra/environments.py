"""Environments of a stack: which one a job means by a name, and its content as a registered version."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import run_identity
from amlstack.base.paths import is_file
from amlstack.catalog import environments
from infra.settings import CuratedEnvironment, CustomEnvironment

if TYPE_CHECKING:
    from infra.names import Names
    from infra.settings import Settings

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
