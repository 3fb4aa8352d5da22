"""What jobs, sweeps and pipelines share: how the run is named, and how it behaves in a stack."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictBool

from jobs.model.values import Model


class RunFields(Model):
    """Names, tags, and what an edit or a removal does."""

    name: Annotated[
        str | None, Field(description="Name of the run; its id is this plus a hash. Unset: the file's name.")
    ] = None
    display_name: Annotated[str | None, Field(description="Name shown in the studio; may change later.")] = None
    description: Annotated[str | None, Field(description="Description; may change later.")] = None
    experiment_name: Annotated[str | None, Field(description="Experiment that the run is filed under.")] = None
    tags: dict[str, str | None] = Field(default_factory=dict, description="Tags; may change later.")
    properties: dict[str, str | None] = Field(default_factory=dict, description="Properties of the run record.")
    rerun: Annotated[str | None, Field(description="Any word; another word is another run of the same.")] = None
    on_edit: Annotated[
        Literal["refuse", "cancel", "keep"],
        Field(description="What an edit does while the old run is active: refuse it, cancel the old run, or keep it."),
    ] = "refuse"
    wait: Annotated[
        Literal["none", "started", "completed"],
        Field(description="What `up` waits for before whatever depends on the run goes on."),
    ] = "none"
    delete_history: Annotated[StrictBool, Field(description="Delete the run's record when it is removed.")] = False
