"""Findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

Form and escapes: docs.github.com, "Workflow commands for GitHub Actions", and `ActionCommand.cs` of actions/runner,
which reads them. A step shows at most ten annotations of a kind (docs.github.com, "Usage limits"; both read 2026-11).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Level, in_file_order
from amlstack.cli.jobfiles.formats.places import from_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from amlstack.base.findings import Finding

SHOWN: Final = 10
"""Annotations of one kind that a step shows; what comes after them is dropped."""
COMMANDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "notice"}
_IN_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def data(text: str) -> str:
    """A text after the second ``::`` of a workflow command."""
    return text.translate(_IN_DATA)


def value(text: str) -> str:
    """The value of a property of a workflow command."""
    return text.translate(_IN_PROPERTIES)


def plain(text: str) -> str:
    """A text as one line of a log that the runner takes for no command, in today's form or the older one."""
    line = " ".join(text.split())
    return f"· {line}".replace("##[", "# #[")


def command(finding: Finding, root: Path) -> str:
    """One finding as a workflow command.

    Args:
        finding: The finding.
        root: What its file is named from; one outside of it is named in the message.
    """
    place = from_root(finding.file, root) if finding.file else None
    properties = {"file": place, "line": finding.line, "col": finding.column} if place else {}
    if finding.line is None:
        properties.pop("col", None)
    given = {**{key: each for key, each in properties.items() if each is not None}, "title": finding.code}
    words = ",".join(f"{key}={value(str(each))}" for key, each in given.items())
    outside = finding.file if finding.file and place is None else None
    head = ": ".join(part for part in (outside, finding.where) if part)
    return f"::{COMMANDS[finding.level]} {words}::{data(f'{head}: {finding.message}' if head else finding.message)}"


def lines(findings: Iterable[Finding], root: Path) -> Iterator[str]:
    """What a step prints: what GitHub shows of each kind, and then the rest, counted, as text in a folded group.

    Args:
        findings: In any order.
        root: What files are named from.
    """
    ordered = in_file_order(findings)
    rest: list[Finding] = []
    for level, name in COMMANDS.items():
        of_kind = [finding for finding in ordered if finding.level is level]
        yield from (command(finding, root) for finding in of_kind[:SHOWN])
        if more := of_kind[SHOWN:]:
            rest += more
            plural = "" if len(more) == 1 else "s"
            yield f"{len(more)} more {name}{plural}: of each kind GitHub shows {SHOWN} in a step, and the log has all"
    if rest:
        yield "::group::Findings that GitHub does not show beside the code"
        yield from (plain(f"{finding.level}: {finding}") for finding in rest)
        yield "::endgroup::"
