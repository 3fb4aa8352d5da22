"""The one place where verbs print and ask: nothing that comes from a job, a log or a service acts on a terminal there.

Findings are lines that an editor can jump to, and programs get JSON. All text goes through `say`, all JSON through
`print_json`, all tables through `tables`; a test holds that no other module of this room prints. Long work prints lines
of progress, and a person is asked before something is lost.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from amlstack.base import text as text_module
from amlstack.base.findings import Finding, Level, in_file_order

if TYPE_CHECKING:
    from rich.console import Console


_PRINTED: ContextVar[list[Finding] | None] = ContextVar("printed", default=None)

COLOURS = {Level.ERROR: "red", Level.WARNING: "yellow", Level.INFO: "cyan"}


_OURS = os.urandom(8).hex()
"""Marks our own colours in a text until it is printed: nobody else knows it."""
_STYLE = re.compile(rf"(\x1b{_OURS}\[[\d;]*m)")
_REWRITE = "\r\x1b[K"
"""To the beginning of the terminal's line, and empty it."""


def style(text: str, colour: str | None = None, *, bold: bool | None = None, dim: bool | None = None) -> str:
    """A text in a colour of ours, for `say`; what it contains is text all the same."""
    begin, _, end = typer.style("|", fg=colour, bold=bold, dim=dim).partition("|")
    return f"{begin}|{end}".replace("\x1b", f"\x1b{_OURS}").replace("|", text) if begin else text


def say(text: str, *, err: bool = False, nl: bool = True, colours: bool | None = None, commands: bool = False) -> None:
    """Print text: colours of `style` stay, whatever else a terminal or a CI's runner acts on is shown and does nothing.

    Args:
        text: Any number of lines, from the beginning of one on.
        err: To the standard error.
        nl: End the last line.
        colours: Whether to colour; as the stream is, when absent.
        commands: Whether its lines may be workflow commands, which are our own.
    """
    # Every second part is a mark of ours.
    parts = [
        part.replace(_OURS, "") if number % 2 else text_module.text(part)
        for number, part in enumerate(_STYLE.split(text))
    ]
    shown = text_module.without_commands("".join(parts), colons=not commands)
    typer.echo(shown, file=text_module.bare(sys.stderr if err else sys.stdout), nl=nl, color=colours)


def end(message: str, code: int = 2) -> NoReturn:
    """Ends the verb with a message for the user; the exit status 2 is that of wrong use."""
    say(message, err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def ended_by(*errors: type[Exception], code: int = 2) -> Iterator[None]:
    """Ends the verb where one of these errors comes up, with what it says."""
    try:
        yield
    except errors as error:
        end(str(error), code)


def print_json(value: Any) -> None:
    """Print JSON for a program."""
    shown = text_module.json_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))
    typer.echo(shown, file=text_module.bare(sys.stdout))


def rewrite_line() -> None:
    """Begin the terminal's last line anew."""
    text_module.bare(sys.stdout).write(_REWRITE)  # not through typer, which takes it for a colour


def tables(*, soft_wrap: bool = False, highlight: bool = True) -> Console:
    """For what is more than lines, tables and boxes: a console whose cells and texts are shown as `say` shows them."""
    from rich.console import Console
    from rich.segment import Segment

    class Shown(Console):
        def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
            for one in super().render(*args, **kwargs):
                yield one if one.control else Segment(text_module.text(one.text), one.style)

    return Shown(file=text_module.Shield(sys.stdout), soft_wrap=soft_wrap, highlight=highlight)  # type: ignore[arg-type]


@contextlib.contextmanager
def recorded_findings() -> Iterator[list[Finding]]:
    """A list to which every finding is added that is printed meanwhile: for a verb's JSON."""
    found: list[Finding] = []
    token = _PRINTED.set(found)
    try:
        yield found
    finally:
        _PRINTED.reset(token)


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell; what a heading row is, the caller styles."""
    rows = [[text_module.line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def print_findings(findings: Iterable[Finding], *, err: bool = False) -> None:
    """Print findings in the order of their files' lines: the place, then what was seen, the rule and the remedy.

    Those that say the same of several places are one, with the places above one another.
    """
    findings = tuple(findings)
    if (printed := _PRINTED.get()) is not None:
        printed += findings
    styled = {level: style(str(level), colour, bold=True) for level, colour in COLOURS.items()}
    alike: dict[tuple[Level, str, str], list[str]] = {}
    for finding in in_file_order(findings):
        place = ":".join(str(part) for part in (finding.file, finding.line, finding.column) if part is not None)
        parts = (text_module.line(place), styled[finding.level], text_module.line(finding.where))
        head = f"{': '.join(part for part in parts if part)} [{finding.code}]"
        alike.setdefault((finding.level, finding.code, finding.message), []).append(head)
    lines = []
    for (_, _, message), heads in alike.items():
        lines += [*heads, f"    {message}".replace("\n", "\n    ")]  # no line of it looks like another finding
    if lines:  # at once: each writing reaches the terminal
        say("\n".join(lines), err=err)


def difference(before: str, after: str, one: str, two: str) -> str:
    """A unified difference of two texts under their names."""
    import difflib

    return "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), one, two))


def tally(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``; ``nothing wrong`` for none."""
    counts = [(level, sum(finding.level is level for finding in findings)) for level in Level]
    names = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
    parts = [f"{count} {names[level]}{'' if count == 1 else 's'}" for level, count in counts if count]
    return ", ".join(parts) or "nothing wrong"


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before something is lost.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON to the standard output, and all else to the other.")]


def on_a_terminal() -> bool:
    """True where a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def confirmed(question: str) -> bool:
    """A person's answer; no answer (Ctrl-D) is a no.

    Raises:
        KeyboardInterrupt: Ctrl-C.
    """
    try:
        return typer.confirm(text_module.text(question), default=False)
    except typer.Abort as aborted:
        if isinstance(aborted.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        return False


def submission_confirmed(progress: Progress, question: str) -> bool:
    """Asks before something is submitted that costs something.

    Raises:
        typer.Exit: There is no terminal to ask on.
    """
    if not on_a_terminal():
        progress.fail("nothing was sent: there is no terminal to ask on. `--yes` submits without a question")
        raise typer.Exit(2)
    if confirmed(question):
        return True
    progress.note("nothing was sent")
    return False


def losses_confirmed(progress: Progress, home: Path, losses: Iterable[str], *, yes: bool) -> bool:
    """Names what is removed with a home, and asks on a terminal; a script is not asked. Nothing to lose is a yes."""
    lines = tuple(losses)
    if not lines:
        return True
    progress.step(f"with {home} these go:")
    for line in lines:
        progress.note(line)
    if yes or not on_a_terminal() or confirmed("Remove all this?"):
        return True
    progress.note("nothing was removed")
    return False


DOING = {
    "create": "creating", "update": "updating", "delete": "deleting", "replace": "replacing",
    "create-replacement": "creating", "delete-replaced": "deleting", "refresh": "refreshing",
}  # fmt: skip


_NEXT = "\n" + " " * 9
"""Before a text's further lines, which never look like lines of progress of their own."""

LOUD = frozenset({"updating", "destroying"})
"""These operations change resources; previews and refreshes only look at them."""


INTERRUPTED = "Ctrl-C: nothing more is begun, and what is in flight ends. A second one ends it at once, unfinished"
"""This line is printed when the engine has taken a Ctrl-C."""
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
