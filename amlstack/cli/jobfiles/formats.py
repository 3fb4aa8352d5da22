"""Findings in the forms of CI: GitHub's annotations, SARIF, and lines beside the code."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import typer

from amlstack.base.findings import Finding, Level, in_file_order
from amlstack.cli.console import print_findings, print_json, say


class Format(StrEnum):
    """A form of output. Not every verb has each of them."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"
    SARIF = "sarif"
    NAMES = "names"
    STACKS = "stacks"


def chosen(name: str | None, *allowed: Format, as_json: bool = False) -> Format:
    """The form that a person asked for.

    Args:
        name: What `--format` got; None for nothing.
        allowed: The forms that there are here; the first is taken where nothing is asked for.
        as_json: Whether `--json` was given, another spelling of `--format json`.

    Raises:
        typer.BadParameter: There is no such form here, or two were asked for.
    """
    names = [str(one) for one in allowed]
    if name is not None and name.lower() not in names:
        raise typer.BadParameter(f"`--format` is one of {', '.join(names)} here, got `{name}`.")
    if name is None:
        return Format.JSON if as_json else allowed[0]
    asked = Format(name.lower())
    if as_json and asked is not Format.JSON:
        raise typer.BadParameter(
            f"`--json` is another spelling of `--format json`, and `--format {asked}` is asked for."
        )
    return asked


def repository(start: Path | None = None) -> Path | None:
    """The root of the git repository or worktree that a folder lies in, links resolved; None where it is in none.

    Args:
        start: The folder; the working folder when absent.
    """
    folder = (start or Path.cwd()).resolve()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def repository_root() -> Path:
    """The folder that paths are shown from: the repository, else GitHub's workspace, else the working folder."""
    found = repository()
    if found is None and (workspace := os.environ.get("GITHUB_WORKSPACE")):
        found = Path(workspace).resolve()
    return found or Path.cwd().resolve()


def from_root(file: str, base: Path) -> str | None:
    """A file from a root on, with ``/``; None for one outside of it.

    Args:
        file: Its path, as a finding names it: absolute, or from the working folder on.
        base: The root, links resolved.
    """
    # The file's own name stays, also of a link: that is what the repository has.
    path = Path(os.path.abspath(file))  # noqa: PTH100 - resolve() would follow the link
    for candidate in (path, path.parent.resolve() / path.name):
        if candidate.is_relative_to(base):
            return candidate.relative_to(base).as_posix()
    return None


def located(findings: Iterable[Finding], folder: Path) -> tuple[Finding, ...]:
    """Findings whose files can be found from here: those on a stack's settings are named from its folder on.

    Args:
        findings: The findings.
        folder: The stack's.
    """

    def found(finding: Finding) -> Finding:
        if not finding.file or Path(finding.file).exists() or not (there := folder / finding.file).exists():
            return finding
        return replace(finding, file=str(there))

    return tuple(map(found, findings))


def show(
    form: Format, findings: Iterable[Finding], folder: Path, fallback: str, *, category: str, closing: Sequence[str]
) -> None:
    """Print findings.

    Args:
        form: TEXT, GITHUB or SARIF.
        findings: In any order.
        folder: The stack's; files of its settings are named from it on.
        fallback: The file that SARIF shows a finding without one at.
        category: What was judged.
        closing: Lines of text after the findings; a log of SARIF has none.
    """
    if form is Format.TEXT:
        print_findings(findings)
        if closing:  # at once: each writing reaches the terminal
            say("\n".join(closing))
        return
    root, found = repository_root(), located(findings, folder)
    if form is Format.SARIF:
        print_json(log(found, root, fallback, category=category))
        return
    say("\n".join([*lines(found, root), *map(plain, closing)]), commands=True)


SHOWN: Final = 10
"""Annotations of one kind that a step shows; what comes after them is dropped."""
COMMANDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "notice"}
_IN_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
"""For a text after the second ``::`` of a workflow command."""
_IN_PROPERTIES: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})
"""For the value of a property of a workflow command."""


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
    words = ",".join(f"{key}={str(each).translate(_IN_PROPERTIES)}" for key, each in given.items())
    outside = finding.file if finding.file and place is None else None
    head = ": ".join(part for part in (outside, finding.where) if part)
    text = f"{head}: {finding.message}" if head else finding.message
    return f"::{COMMANDS[finding.level]} {words}::{text.translate(_IN_DATA)}"


def lines(findings: Iterable[Finding], root: Path) -> Iterator[str]:
    """The lines that a step prints: those GitHub shows of each kind, then the rest, counted, in a folded group.

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


SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT: Final = "%SRCROOT%"
FINGERPRINT: Final = "amlstackFinding/v1"
LEVELS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.INFO: "note"}
_ENFORCED: Final = {"mandatory": "error", "advisory": "warning", "disabled": "none"}


def log(findings: Iterable[Finding], root: Path, fallback: str, *, category: str = "check") -> dict[str, Any]:
    """The log of one run.

    Args:
        findings: In any order.
        root: What files are named from, links resolved.
        fallback: The file that a finding without one is shown at.
        category: What was judged; two runs of one category replace each other where results are kept.
    """
    from amlstack import __version__

    ordered = in_file_order(findings)
    by_code: dict[str, list[Finding]] = {}
    for finding in ordered:
        by_code.setdefault(finding.code, []).append(finding)
    codes = list(by_code)
    numbers: dict[str, int] = {}
    results = []
    for finding in ordered:
        uri = _uri(finding.file or fallback, root)
        named = _identity(finding, uri)
        numbers[named] = numbers.get(named, 0) + 1
        results.append(_result(finding, codes.index(finding.code), uri, f"{named}:{numbers[named]}"))
    driver = {
        "name": "amlstack",
        "semanticVersion": __version__,
        "rules": [_rule(code, of_code[0]) for code, of_code in by_code.items()],
    }
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"amlstack/{category}/"},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {ROOT: {"uri": f"{root.as_uri().rstrip('/')}/"}},
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _uri(file: str, root: Path) -> dict[str, str]:
    """An artifact's location: from the root on, or absolute for a file outside of it."""
    place = from_root(file, root)
    if place is not None:
        return {"uri": quote(place), "uriBaseId": ROOT}
    return {"uri": Path(file).absolute().as_uri()}


def _result(finding: Finding, index: int, uri: Mapping[str, str], fingerprint: str) -> dict[str, Any]:
    region: dict[str, int] = {"startLine": finding.line or 1}
    if finding.line and finding.column:
        region["startColumn"] = finding.column
    location: dict[str, Any] = {"physicalLocation": {"artifactLocation": dict(uri), "region": region}}
    if finding.where:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.where}]
    text = f"{finding.where}: {finding.message}" if finding.where else finding.message
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.level],
        "message": {"text": text},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint},
    }


def _identity(finding: Finding, uri: Mapping[str, str]) -> str:
    """Of the same finding after lines were added above it, and after its value became another wrong one."""
    what = finding.where or finding.seen
    return hashlib.sha256("\0".join((finding.code, uri["uri"], what)).encode()).hexdigest()[:32]


def _rule(code: str, example: Finding) -> dict[str, Any]:
    """The properties of a rule: for the policy pack's rules all of them, for others those that findings give."""
    from policies.config import ALL

    known = next((rule for rule in ALL if rule.code == code), None)
    if known is None:
        title = what = example.rule or example.seen
        level, tags = LEVELS[example.level], ["azure-machine-learning"]
        more = f"{what} {example.remedy}".strip() + f"\n\ndocs/reference/findings.md, {code}"
    else:
        title, what = known.title, known.words.what
        level, tags = _ENFORCED[known.level], ["azure-machine-learning", "policy"]
        more = f"{what}\n\n{known.words.why}\n\nExamples, settings: docs/reference/policies.md, {code}"
    return {
        "id": code,
        "shortDescription": {"text": title},
        "fullDescription": {"text": what},
        "help": {"text": more},
        "defaultConfiguration": {"level": level},
        "properties": {"tags": tags},
    }
