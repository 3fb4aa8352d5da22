"""What a range of commits touches, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amlstack.cli.jobfiles.changes.base import Base
    from amlstack.cli.jobfiles.changes.touched import Reason


@dataclass(slots=True)
class TouchedJob:
    """One job file.

    Attributes:
        file: From the working folder on.
        stacks: The stacks that list it.
        reasons: Why it is touched.
    """

    file: str
    stacks: list[str] = field(default_factory=list)
    reasons: list[Reason] = field(default_factory=list)


@dataclass(slots=True)
class TouchedStack:
    """One stack.

    Attributes:
        stack: Its name.
        reasons: Why it is touched.
    """

    stack: str
    reasons: list[Reason] = field(default_factory=list)


@dataclass(slots=True)
class Survey:
    """What a range touches.

    Attributes:
        base: What was compared with.
        files: How many paths changed.
        uncommitted: How many of them are not committed.
        jobs: Job files that are there and are touched.
        stacks: Stacks that are touched.
        removed: Job files that a stack listed and lists no longer; they cannot be rehearsed.
        removed_stacks: Stacks whose settings file is gone.
        unreadable: Stacks whose settings cannot be read: their jobs are not known.
    """

    base: Base
    files: int
    uncommitted: int
    jobs: list[TouchedJob] = field(default_factory=list)
    stacks: list[TouchedStack] = field(default_factory=list)
    removed: list[TouchedJob] = field(default_factory=list)
    removed_stacks: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
