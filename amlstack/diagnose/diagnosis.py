"""A diagnosis and its text for a terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    """The place to look next: a rank, a node, a line."""

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
        ranks: Several ranks that share it, where none alone is to blame.
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
    ranks: tuple[int, ...] = ()
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
            "advice": signature.advised(
                "\n".join((event.shown, *(each.text for each in fields.get("events", ())[1:])))
            ),
            "events": (event,),
        }
        return cls(found=True, cause=signature.code, **{**given, **fields})

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        plain = ("found", "cause", "rank", "node", "file", "line", "text", "confidence", "advice")
        return {
            **{name: getattr(self, name) for name in plain},
            "ranks": list(self.ranks),
            "victims": [victim.named for victim in self.victims],
            **{name: getattr(self, name) for name in ("reason", "means", "fatal")},
            "source": None if self.source is None else asdict(self.source),
            "pointers": [asdict(pointer) for pointer in self.pointers],
            "notes": [asdict(note) for note in self.notes],
            "read": {"files": self.files, "lines": self.lines},
        }


WIDTH = 110


def listed(ranks: Sequence[int]) -> str:
    """Nothing, ``rank 3``, ``ranks 1, 2 and 4 more``."""
    if not ranks:
        return ""
    shown = f"rank{'' if len(ranks) == 1 else 's'} " + ", ".join(str(rank) for rank in ranks[:12])
    return shown if len(ranks) <= 12 else f"{shown} and {len(ranks) - 12} more"


def headline(verdict: Diagnosis) -> str:
    """The verdict in one line."""
    if not verdict.found:
        where = f"; look at rank {verdict.rank}" if verdict.rank is not None else ""
        return f"not in these logs: {verdict.reason}{where}" if verdict.fatal else f"no failure: {verdict.reason}"
    who = listed(verdict.ranks if verdict.rank is None else (verdict.rank,))
    at = "" if verdict.node is None else (f" on node {verdict.node}" if who else f"node {verdict.node}")
    return f"{verdict.cause}: " + (f"{who}{at}: " if who or at else "") + verdict.means


def report(verdict: Diagnosis) -> str:
    """The verdict, its evidence, the victims and what to do."""
    lines = [headline(verdict)]
    if verdict.text is not None:
        lines += ["", f"  {verdict.file}:{verdict.line}", _indented(verdict.text)]
    if verdict.source is not None:
        lines.append(f"    at {verdict.source}")
    for event in verdict.events[1:]:
        lines += [f"  {event.file}:{event.line}", _indented(event.text)]
    for pointer in verdict.pointers[:4]:
        if pointer.file:
            who = "" if pointer.rank is None else f"rank {pointer.rank}, "
            lines += [f"  also: {who}{pointer.file}:{pointer.line} ({pointer.code})", _indented(pointer.text)]
    if verdict.victims:
        lines += ["", _wrapped(f"victims, not causes: {_victims(verdict.victims)}")]
    for note in verdict.notes:
        if note.code != verdict.cause:
            lines += ["", _wrapped(f"besides ({note.code}): {note.text} [{note.file}:{note.line}]")]
    lines += ["", _wrapped(f"do: {verdict.advice}")] if verdict.advice else [""]
    lines.append(_wrapped(f"confidence: {verdict.confidence}, because {verdict.reason}"))
    files = "1 file" if verdict.files == 1 else f"{verdict.files} files"
    lines.append(f"read: {files}, {verdict.lines} lines")
    return "\n".join(lines)


def _victims(victims: tuple[Victim, ...]) -> str:
    shown = [f"rank {each.rank}" if each.rank is not None else str(each.named) for each in victims[:16]]
    more = len(victims) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "") + f" ({_short(victims[0].text)})"


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"


def _indented(text: str) -> str:
    return f"    {text[:300]}"


def _wrapped(text: str) -> str:
    return fill(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
