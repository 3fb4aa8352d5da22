"""``fabric_check`` of a cluster: a job that judges its nodes before the first other job."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from infra.settings.model.base import SettingsModel


class FabricCheck(SettingsModel):
    """A preflight and an all-reduce over a cluster's nodes; `true` is one with nothing set."""

    nodes: int | None = Field(
        None, ge=1, description="Nodes that it takes; as many as the cluster may have when absent."
    )
    environment: str | None = Field(
        None, min_length=1, description="Environment of the job, with PyTorch in it; a curated one when absent."
    )
    expect: float | None = Field(
        None,
        gt=0,
        description="Least bus bandwidth in GB/s; when absent what the catalogue knows of the size, if it knows any.",
    )
    rerun: str | None = Field(None, description="Any word; another word repeats the check.")


def _switch(value: Any) -> Any:
    if isinstance(value, bool):
        return {} if value else None
    if not isinstance(value, dict | FabricCheck | None):
        message = f"`fabric_check` must be true, false or an object with keys, got `{value}`"
        raise ValueError(message)  # noqa: TRY004 - pydantic makes a finding of a ValueError
    return value


OptionalFabricCheck = Annotated[
    FabricCheck | None, BeforeValidator(_switch, json_schema_input_type=bool | FabricCheck | None)
]
