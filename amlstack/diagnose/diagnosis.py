"""The verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amlstack.diagnose.events import Event, Frame
    from amlstack.diagnose.signatures import Signature


@dataclass(frozen=True, slots=True)
class Victim:
    """A rank that ended because another one had."""

    rank: int | None
    node: str | None
    code: str
    file: str
    line: int
    text: str

    @property
    def named(self) -> int | str:
        """Its rank, else what is known of it."""
        if self.rank is not None:
            return self.rank
        return f"node {self.node}" if self.node else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where to look next: a rank, a node, a line."""

    rank: int | None
    node: str | None
    file: str
    line: int
    text: str
    code: str

    @classmethod
    def to(cls, event: Event) -> Pointer:
        """To the line of an event."""
        return cls(event.rank, event.node, event.file, event.line, event.text, event.code)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The first true cause that logs show.

    Attributes:
        found: A cause is in these logs.
        cause: Its stable kebab-case code; None when none was found.
        rank: The rank to blame; None when none is, or it is unknown. Without a cause: the one rank to look at.
        node: That rank's node, by name or number.
        file: The log that shows it.
        line: 1-based line in that log.
        text: That line, without prefixes, tokens and signatures.
        source: The line of the user's own code, when a traceback names it.
        confidence: ``high``, ``medium`` or ``low``.
        reason: What the confidence rests on.
        means: The cause in words.
        advice: What to do.
        victims: Ranks that ended because of it.
        pointers: Where else to look.
        notes: What is wrong besides, without having ended anything.
        fatal: Whether it ended the run; a slow network does not.
        events: The lines behind the verdict.
        files, lines: How much was read.
    """

    found: bool
    cause: str | None = None
    rank: int | None = None
    node: str | None = None
    file: str | None = None
    line: int | None = None
    text: str | None = None
    source: Frame | None = None
    confidence: str = "low"
    reason: str = ""
    means: str = ""
    advice: str = ""
    victims: tuple[Victim, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    notes: tuple[Pointer, ...] = ()
    fatal: bool = True
    events: tuple[Event, ...] = ()
    files: int = 0
    lines: int = 0

    @classmethod
    def shown_by(cls, event: Event, signature: Signature, **fields: Any) -> Diagnosis:
        """A cause that was found: its line, what it means and what to do.

        Args:
            event: The line that shows it.
            signature: The cause.
            fields: All other attributes.
        """
        given = {
            "file": event.file,
            "line": event.line,
            "text": event.text,
            "means": signature.means,
            "advice": signature.advice,
            "events": (event,),
        }
        return cls(found=True, cause=signature.code, **{**given, **fields})

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        plain = ("found", "cause", "rank", "node", "file", "line", "text", "confidence", "advice")
        return {
            **{name: getattr(self, name) for name in plain},
            "victims": [victim.named for victim in self.victims],
            **{name: getattr(self, name) for name in ("reason", "means", "fatal")},
            "source": None if self.source is None else asdict(self.source),
            "pointers": [asdict(pointer) for pointer in self.pointers],
            "notes": [asdict(note) for note in self.notes],
            "read": {"files": self.files, "lines": self.lines},
        }
