"""What a look at a stack found, as values: what differs, what changes by itself, and the runs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CHANGED: Final = "changed"
DELETED: Final = "deleted"


@dataclass(frozen=True, slots=True)
class Declaring:
    """How a difference becomes a part of the declaration.

    Attributes:
        words: For people.
        setting: The setting that decides the property; empty where none does.
        value: What to write there; None where it is for a person to say, or nothing is to be written.
        file: Where it is written: the file, and its line where that is known.
        command: The command that writes it; empty where an editor has to, or plain `pulumi` does not reach the stack.
    """

    words: str
    setting: str = ""
    value: Any = None
    file: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class PropertyDrift:
    """One property.

    Attributes:
        path: In the engine's grammar.
        declared: As the stack deployed it last; None for nothing.
        there: As Azure has it; None for nothing.
        adopt: How it becomes declared.
    """

    path: str
    declared: Any
    there: Any
    adopt: Declaring


@dataclass(frozen=True, slots=True)
class ResourceDrift:
    """One resource that is otherwise than declared.

    Attributes:
        urn, type, name, id: As the engine and Azure name it.
        what: CHANGED or DELETED.
        properties: What differs; nothing of one that is deleted.
        adopt: How its absence becomes declared; None of one that is changed.
        put_back: The command after which it is as declared, and everything else too.
        put_back_alone: The same for this resource alone; empty where plain `pulumi` cannot be called as it is.
    """

    urn: str
    type: str
    name: str
    id: str
    what: str
    properties: tuple[PropertyDrift, ...] = ()
    adopt: Declaring | None = None
    put_back: str = ""
    put_back_alone: str = ""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A property that changed by itself.

    Attributes:
        urn, path, was, there: Which, and its values.
        who: What changed it.
        source: From where that is known.
    """

    urn: str
    path: str
    was: Any
    there: Any
    who: str
    source: str


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run of the stack. It is no drift, whatever became of it: `up` neither runs it again nor forgets it.

    Attributes:
        job, run: Name of the job, id of the run.
        recorded, status: As the stack recorded it last, and now; None of a record that is gone.
        gone: Whether its record is gone from the workspace.
    """

    job: str
    run: str
    recorded: str | None
    status: str | None
    gone: bool

    @property
    def words(self) -> str:
        """What became of it."""
        if self.gone:
            return f"its record is gone from the workspace (last seen {self.recorded})"
        return str(self.status) if self.status == self.recorded else f"{self.status} (recorded: {self.recorded})"


@dataclass(slots=True)
class Look:
    """What was found.

    Attributes:
        stack: The stack's name, as it was asked for.
        where: Where it lives, for people.
        looked_at: How many resources were asked for.
        resources: What is otherwise than declared.
        left_out: What changed by itself.
        runs: All runs of the stack.
        errors: Why something could not be looked at.
    """

    stack: str
    where: str
    looked_at: int = 0
    resources: list[ResourceDrift] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    runs: list[SeenRun] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """0 for no drift, 1 for drift, 2 where it could not be looked for."""
        return 1 if self.resources else 2 if self.errors else 0

    def as_dict(self) -> Mapping[str, Any]:
        """Plain data for a program."""
        return {**asdict(self), "drift": bool(self.resources), "exit_status": self.exit_status}
