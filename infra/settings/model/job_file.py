"""Job files with the overrides of the stack."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from amlstack.catalog.fabric import Block
from infra.settings.model.base import SettingsModel
from infra.settings.model.secret import SecretVariable, VariableName


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class JobFile(SettingsModel):
    """A file of jobs with the stack's overrides; a bare string is its path."""

    file: str = Field(min_length=1, description="Job file, a path in the project: Python, or an Azure ML CLI v2 YAML.")
    rerun: str | None = Field(None, description="Any word; another word is another run of the file's jobs.")
    on_edit: Literal["refuse", "cancel", "keep"] | None = Field(
        None, description="What an edit does while the old run is active: refuse it, cancel the old run, or keep it."
    )
    wait: Literal["none", "started", "completed"] | None = Field(
        None, description="What `up` waits for before whatever depends on the jobs goes on."
    )
    after: Annotated[tuple[str, ...], BeforeValidator(_several, json_schema_input_type=str | tuple[str, ...])] = Field(
        (),
        description="Jobs of this stack, each by its name or by its job file, that must have completed before the "
        "file's jobs are submitted; beside what these name themselves.",
    )
    fabric: Annotated[
        tuple[Block, ...], BeforeValidator(_several, json_schema_input_type=Block | tuple[Block, ...])
    ] = Field(
        (),
        description="Further variables of the fabric for the file's jobs, trials and steps: `azure-tuned`, `sharp`, "
        "`topology` (docs/fabric.md). Jobs in Azure ML's own words get the usual ones with them.",
    )
    environment_variables: dict[VariableName, SecretVariable] = Field(
        default_factory=dict,
        description="Variables of the file's jobs, trials and steps that hold a secret of the stack: "
        "`WANDB_API_KEY: {secret: NAME}`. For files of Azure ML, which have no word for it.",
    )
    delete_history: bool | None = Field(None, description="Delete the run's record when the job is removed.")
    enabled: bool | None = Field(
        None,
        description="Whether the file's schedules start anything; as each is declared when absent, and one that a "
        "person paused in the workspace then stays paused.",
    )

    @property
    def overrides(self) -> dict[str, str | bool]:
        """What the stack sets for runs instead of the job file."""
        return dict(
            self.model_dump(exclude={"file", "enabled", "after", "environment_variables", "fabric"}, exclude_none=True)
        )
