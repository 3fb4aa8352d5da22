"""What an environment becomes when it is registered: its ARM properties, and a version made from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import run_identity

if TYPE_CHECKING:
    from pathlib import Path

    from infra.names import Names

UNNAMED = "amlstack-inline"
"""Name of what a job writes inline without a name: its version says what it is."""


@dataclass(frozen=True, slots=True)
class Registered:
    """An environment that the stack registers.

    Attributes:
        name: Name in the workspace.
        body: ARM properties of the version.
    """

    name: str
    body: dict[str, Any]

    @classmethod
    def of(cls, inline: jobs.Environment, base: Path) -> Registered:
        """What an inline environment becomes.

        Args:
            inline: As the job or the stack says it, with an image.
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
