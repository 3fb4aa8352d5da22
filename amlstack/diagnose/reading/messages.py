"""Messages of several lines: an exception's goes on until something else begins, Open MPI's stand between rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.diagnose.signatures import EventRole, hedged, match

if TYPE_CHECKING:
    from amlstack.diagnose.signatures import Signature

MOST_LINES = 30
"""Lines that a message has at most."""
RULE = "-" * 74
"""What Open MPI puts above and below its messages."""
_NEXT = re.compile(
    r"^(?:\W{0,2}(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|NOTICE|FATAL)\b|\[[EWIF][\d \]]|[EWIF]\d{4} "
    r"|[=\-*_+]{5,}|Traceback\b|Exception (?:ignored|in thread)|Exception raised from|Process \w+-\d+:|frame #"
    r"|srun:|slurmstepd:|wandb:|Killed\b|terminate called|Killing subprocess|During handling|The above exception"
    r"|\[?20\d\d[-/]\d\d|\[?\d\d:\d\d:\d\d|\d+%\||\w+@|[\w.-]+:\d+:\d+ \[)"
)
"""How a line begins that is no part of the message before it: a prefix, a header, a table."""


@dataclass(slots=True)
class MessageReader:
    """The message of one writer's last exception.

    Attributes:
        at: Which event it belongs to; None when no message is open.
        left: Lines that it may still have.
        dated: A time stood before its first line, so that one before another line does not begin another message.
    """

    at: int | None = None
    left: int = 0
    dated: bool = False

    def begin(self, at: int, *, dated: bool) -> None:
        """An exception's first line was read."""
        self.at, self.left, self.dated = at, MOST_LINES, dated

    def feed(self, text: str, *, dated: bool) -> bool:
        """Takes a line of the same writer; whether it is a part of the message."""
        if self.at is None:
            return False
        self.left -= 1
        if self.left < 0 or (dated and not self.dated) or _NEXT.match(text):
            self.at = None
            return False
        return True


def better(than: Signature, text: str) -> tuple[Signature, dict[str, str]] | None:
    """What a line of a message shows more exactly than its first one; None when it does not."""
    found = match(text)
    if found is None:
        return None
    signature = found[0]
    if signature.role is EventRole.VICTIM:
        return found if than.depth <= 1 and signature.kind != "stop" else None
    if signature.role is not EventRole.CULPRIT or hedged(text, signature):
        return None
    return found if signature.depth > than.depth else None


@dataclass(slots=True)
class BlockReader:
    """Reads what stands between two rules of Open MPI, whose sentences are broken into lines.

    Attributes:
        open: A rule has come, and the next one has not.
        begin: The line of its first text.
    """

    open: bool = False
    begin: int = 0
    _texts: list[str] = field(default_factory=list)

    def feed(self, text: str, number: int) -> tuple[int, str] | None:
        """Takes a line; the number of its first line and the whole text of a block that ends with this one."""
        bare = text.strip()
        if len(bare) == len(RULE) and bare == RULE:
            done = (self.begin, " ".join(self._texts)) if self.open and self._texts else None
            # The end of one is not the beginning of the next: each has two rules.
            self.open, self._texts = done is None, []
            return done
        if self.open and bare:
            if not self._texts:
                self.begin = number
            self._texts.append(bare)
            if len(self._texts) > MOST_LINES:
                self.open, self._texts = False, []
        return None
