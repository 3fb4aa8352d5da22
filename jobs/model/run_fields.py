"""What jobs, sweeps and pipelines share: how the run is named, and how it behaves in a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool

from jobs.model.values import Model

if TYPE_CHECKING:
    from collections.abc import Mapping


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Names, or the only one by itself."""


class RunFields(Model):
    """Names, tags, and what an edit or a removal does."""

    timed: ClassVar[bool] = False
    """Whether times start it, again and again."""

    name: str | None = None
    """Name of the run; its id is this plus a hash. Unset: the file's name."""
    display_name: str | None = None
    """Name shown in the studio; may change later."""
    description: str | None = None
    """Description; may change later."""
    experiment_name: str | None = None
    """Experiment that the run is filed under."""
    tags: dict[str, str | None] = Field(default_factory=dict)
    """Tags; may change later."""
    properties: dict[str, str | None] = Field(default_factory=dict)
    """Properties of the run record."""
    rerun: str | None = None
    """Any word; another word is another run of the same."""
    on_edit: Literal["refuse", "cancel", "keep"] = "refuse"
    """What an edit does while the old run is active: refuse it, cancel the old run, or keep it."""
    wait: Literal["none", "started", "completed"] = "none"
    """What `up` waits for before whatever depends on the run goes on."""
    after: Names = ()
    """Jobs of the same stack, by name or by job file, that must have completed before this one is submitted."""
    delete_history: StrictBool = False
    """Delete the run's record when it is removed."""

    @property
    def runs(self) -> Self:
        """What is run: it itself."""
        return self

    @property
    def steps(self) -> Mapping[str, Any]:
        """Its steps by name; empty for what is no pipeline."""
        return {}

    @property
    def parts(self) -> Mapping[str, Any]:
        """What has a command of its own, by its place in the file: the job itself, `trial`, or `jobs.STEP`."""
        return {"": self}
