"""What is answered about one rehearsal, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

State = Literal["ready", "later", "blocks", "note"]
"""``ready``: it is here. ``later``: the rehearsal brings it. ``blocks``: it cannot be had. ``note``: worth knowing."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """One thing that a rehearsal needs, or that is in its way.

    Attributes:
        about: ``environment``, ``data``, ``GPU``, ``MPI``, ``size``, ``disk``, ``ports``, ``sandbox``, ``steps``,
            ``programs``, ``internet``.
        state: What will become of it.
        text: One sentence or less.
        remedy: What to do about what is in the way; empty for nothing.
        places: Parts of the job that it is about; none for the whole.
        file: Where the reason is written, when that is a file.
        line: In that file, from 1.
        ignorable: ``--force`` starts the rehearsal all the same.
    """

    about: str
    state: State
    text: str
    remedy: str = ""
    places: tuple[str, ...] = ()
    file: str | None = None
    line: int | None = None
    ignorable: bool = False

    @property
    def spot(self) -> str:
        """``file:line`` as far as it is known."""
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The answer for one job, sweep or pipeline.

    Attributes:
        name: As its file names it.
        aspects: What was looked at.
        unproven: What a rehearsal will say nothing about.
    """

    name: str
    aspects: tuple[Aspect, ...]
    unproven: tuple[str, ...] = ()

    @property
    def blocking(self) -> tuple[Aspect, ...]:
        """What is in the way."""
        return tuple(each for each in self.aspects if each.state == "blocks")

    @property
    def possible(self) -> bool:
        """Whether nothing is."""
        return not self.blocking

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        aspects = [asdict(each) for each in self.aspects]
        return {"name": self.name, "possible": self.possible, "aspects": aspects, "unproven": list(self.unproven)}


def merged(aspects: Iterable[Aspect]) -> tuple[Aspect, ...]:
    """Equal aspects of several parts as one, with the places of all."""
    found: dict[Aspect, tuple[str, ...]] = {}
    for each in aspects:
        key = replace(each, places=())
        found[key] = (*found.get(key, ()), *(place for place in each.places if place))
    return tuple(replace(each, places=places) for each, places in found.items())
