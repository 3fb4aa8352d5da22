"""Lines of progress with the time they came at: what long work prints while it goes on."""

from __future__ import annotations

import os
import sys
import time
from functools import cached_property
from typing import TYPE_CHECKING

from amlstack.cli.console import rewrite_line, say, style, tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from rich.console import Console

DOING = {
    "create": "creating", "update": "updating", "delete": "deleting", "replace": "replacing",
    "create-replacement": "creating", "delete-replaced": "deleting", "refresh": "refreshing",
}  # fmt: skip


_NEXT = "\n" + " " * 9
"""Before a text's further lines, which never look like lines of progress of their own."""

LOUD = frozenset({"updating", "destroying"})
"""What changes resources: previews and refreshes only look at them."""


INTERRUPTED = "Ctrl-C: nothing more is begun, and what is in flight ends. A second one ends it at once, unfinished"
"""What is printed when the engine has taken a Ctrl-C."""
_TAKEN = "^C received"


class Progress:
    """Says what happens, each line with the seconds since the start; on a terminal also in colour."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self._coming: list[str] = []
        self._phase = ""
        self._looked_at = 0
        self._is_open = False
        # Else as the stream is: colours for a terminal alone.
        self._coloured = False if os.environ.get("NO_COLOR") else True if os.environ.get("FORCE_COLOR") else None

    @cached_property
    def console(self) -> Console:
        """For what is more than lines: tables and boxes."""
        return tables(highlight=False, soft_wrap=True)

    def _line(self, mark: str, text: str, colour: str | None) -> None:
        elapsed = style(f"{time.monotonic() - self.start:5.1f}s", dim=True)
        shown = style(mark, colour) if colour else mark
        if self._is_open:
            rewrite_line()
            self._is_open = False
        say(f"{elapsed} {shown} {text.replace(chr(10), _NEXT)}", colours=self._coloured)

    def step(self, text: str) -> None:
        """A new piece of work begins."""
        self._line("·", text, "cyan")

    def done(self, text: str) -> None:
        """It ended well."""
        self._line("✓", text, "green")

    def fail(self, text: str) -> None:
        """It did not."""
        self._line("✗", text, "red")

    def note(self, text: str) -> None:
        """Something to know that is neither."""
        self._line(" ", text, None)

    def follow(self, *phases: str) -> Callable[[Mapping[str, Any]], None]:
        """The function to call with each event of the engine's next command.

        Args:
            phases: What the command does, one word after the other; in `LOUD` ones each resource has a line.
        """
        self._coming, self._phase, self._looked_at = list(phases), "", 0
        return self.event

    def event(self, event: Mapping[str, Any]) -> None:
        """One engine event, when it says something to a person: a resource's turn, a status line, a diagnostic."""
        if "preludeEvent" in event:
            self._phase = self._coming.pop(0) if self._coming else self._phase
            self.step(self._phase)
        elif "resourcePreEvent" in event and self._phase not in LOUD:
            self._looked_at += 1
            self._count()
        elif meta := (event.get("resourcePreEvent") or {}).get("metadata"):
            if (verb := DOING.get(meta["op"])) and not meta["type"].startswith(("pulumi:", "amlstack:infra:")):
                self.step(f"{verb} {name_of(meta['urn'])}")
        elif str((event.get("stdoutEvent") or {}).get("message", "")).lstrip().startswith(_TAKEN):
            self.note(INTERRUPTED)
        elif diagnostic := event.get("diagnosticEvent"):
            text = diagnostic["message"].strip()
            if text and (diagnostic.get("ephemeral") or diagnostic["severity"] == "info"):
                who = f"{name_of(diagnostic['urn'])}: " if diagnostic.get("urn") else ""
                for line in text.splitlines():
                    self.note(who + line)

    def _count(self) -> None:
        """Show the progress of a phase without lines of its own: on a terminal, one line written over and over."""
        if sys.stdout.isatty():
            elapsed = style(f"{time.monotonic() - self.start:5.1f}s", dim=True)
            count = f"{self._looked_at} resource{'' if self._looked_at == 1 else 's'}"
            rewrite_line()
            say(f"{elapsed} · {self._phase}: {count}", nl=False, colours=self._coloured)
            self._is_open = True


def name_of(urn: str) -> str:
    """``Compute a100`` of a URN: the last type and the name."""
    *_, kinds, name = urn.split("::")
    return f"{kinds.rsplit('$', 1)[-1].rsplit(':', 1)[-1]} {name}"
