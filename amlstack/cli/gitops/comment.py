"""The comment of a pull request, made from the results of its checks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from amlstack.base import paths
from amlstack.base import text as text_module
from amlstack.cli.console import name_of

MOST: Final = 60_000
"""Characters of a comment. GitHub takes 65,536, Azure DevOps 150,000."""
FEW: Final = 25
"""So many lines of a list are shown; the rest is counted."""
_MARKUP: Final = re.compile(r"([\\`*_\[\]#|~])")
_LINK: Final = re.compile(r"(?:https?|ftp|mailto|xmpp):|\bwww(?=\.)", re.IGNORECASE)
"""A forge makes links of these by itself (github.github.com/gfm, "Autolinks (extension)", read 2026-11-24)."""
_MENTION: Final = re.compile(r"(?<!\w)@(?=\w)")


def plain(text: str) -> str:
    """A text on one line, as text: what would be markup is escaped, and `@name` calls nobody."""
    escaped = _MARKUP.sub(r"\\\1", " ".join(text_module.text(text).split()))
    escaped = escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINK.sub(lambda found: f"{found[0]}\u200c", _MENTION.sub("@\u200c", escaped))


def code(text: str) -> str:
    """A text on one line as code, which may stand in a table."""
    return f"`{' '.join(text_module.text(text).replace('`', chr(0x2BC)).split())}`".replace("|", "\\|")


def items(lines: Sequence[str]) -> Iterator[str]:
    """A list of a few lines, and how many more there are."""
    yield from (f"- {line}" for line in lines[:FEW])
    if len(lines) > FEW:
        yield f"- … and {len(lines) - FEW} more"


def folded(heading: str, lines: Sequence[str]) -> Iterator[str]:
    """Lines that open on a click."""
    yield from ("", f"<details><summary>{heading}</summary>", "", *items(lines), "", "</details>")


def _headed(heading: str, lines: Sequence[str]) -> Iterator[str]:
    yield from ("", f"**{heading}**", "", *items(lines))


def cut(text: str) -> str:
    """A text of at most so many characters, whole lines of it."""
    if len(text) <= MOST:
        return text
    return text[:MOST].rpartition("\n")[0] + "\n\n… the rest is in the artifacts.\n"


class ResultsError(Exception):
    """A file is not what a step writes; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one commit.

    Attributes:
        check: Of ``amlstack check --json``; None where it was not run.
        rehearsals: Job file → what ``amlstack rehearse --json`` printed.
        review: Of ``amlstack up --sandbox --json``; None where it was not run.
        preview: Of ``amlstack up --preview --json``; None where it was not run.
        guards: Of ``amlstack gitops guards``; None where it was not run.
    """

    check: Mapping[str, Any] | None
    rehearsals: Mapping[str, Mapping[str, Any]]
    review: Mapping[str, Any] | None
    preview: Mapping[str, Any] | None
    guards: Mapping[str, Any] | None = None


def read(folder: Path) -> Results:
    """Read ``check.json``, ``rehearsal/**/*.json``, ``review.json``, ``preview.json``, ``guards.json`` of a folder.

    The file of a rehearsal lies where its job file lies in the repository, with ``.json`` behind its name.

    Raises:
        ResultsError: The folder is missing, or a file holds something else.
    """
    if not folder.is_dir():
        raise ResultsError(f"There is no folder {folder} with results")
    below = folder / "rehearsal"
    rehearsals = {}
    for file in sorted(below.rglob("*.json")):
        if (content := _read(file)) is not None:
            rehearsals[str(file.relative_to(below)).removesuffix(".json")] = content
    review, preview, guards = (_read(folder / f"{name}.json") for name in ("review", "preview", "guards"))
    return Results(_read(folder / "check.json"), rehearsals, review, preview, guards)


def _read(file: Path) -> Mapping[str, Any] | None:
    """A JSON object; None where there is no file, or an empty one: its step ended before it could write."""
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ResultsError(f"{file} cannot be read: {error}") from None
    if not text.strip():
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ResultsError(f"{file} must be a JSON object as amlstack's verbs print it with `--json`")
    return content


def of_folder(stack: str, folder: Path | None) -> Mapping[str, Any] | None:
    """The cost as ``amlstack up --json`` has it; None where there is no such stack, or its settings are of no use.

    Args:
        stack: Its name; organization and project may stand before it.
        folder: The checkout; None for this one.
    """
    from amlstack.cli.stack import plan
    from infra.settings import read_file

    file = (paths.PROJECT if folder is None else folder) / f"Pulumi.{stack.rpartition('/')[2]}.yaml"
    if not file.is_file():
        return None
    settings = read_file(file).partial
    return None if settings is None else plan.costs_as_dict(plan.costs_of(settings))


GOOD, BAD, NONE, LOOK = "✅", "❌", "–", "⚠️"
_NOT_RUN: Final = f"{NONE} not run"


def marker(stack: str) -> str:
    """The first line of the comment, by which the one of a stack is found again; no reader sees it."""
    return f"<!-- amlstack: {stack} -->"


def text(stack: str, results: Results, before: Mapping[str, Any] | None, *, commit: str = "", link: str = "") -> str:
    """The whole comment as Markdown.

    Args:
        stack: Name of the real stack.
        results: What the steps have written.
        before: The cost of the stack's clusters without the pull request, as ``--json`` has it; None where the stack
            is new or its settings cannot be read.
        commit: The commit that was looked at.
        link: Where reports and logs are.
    """
    lines = [
        marker(stack),
        f"### Stack {code(stack)}: {_headline(results.preview)}",
        "",
        "| what | result |",
        "| --- | --- |",
        f"| check | {_or_not_run(_check, results.check)} |",
        f"| rehearsal of changed jobs | {_rehearsals(results.rehearsals, ran=results.check is not None)} |",
        f"| review stack on the sandbox | {_or_not_run(_review, results.review)} |",
        f"| preview of {code(stack)} | {_or_not_run(_preview, results.preview)} |",
        f"| policies | {_or_not_run(_policies, results.preview)} |",
        f"| the checks themselves | {_or_not_run(_guards, results.guards)} |",
        f"| nodes per hour, while idle | {_cost('idle_usd_per_hour', before, results.preview)} |",
        f"| nodes per hour, at most | {_cost('most_usd_per_hour', before, results.preview)} |",
        *_details(results),
        "",
        *_foot(commit, link),
    ]
    return cut("\n".join(lines) + "\n")


def _or_not_run(words: Callable[[Mapping[str, Any]], str], result: Mapping[str, Any] | None) -> str:
    return _NOT_RUN if result is None else words(result)


def _headline(preview: Mapping[str, Any] | None) -> str:
    if preview is None:
        return "no preview"
    if preview.get("exit_status"):
        return "the preview was refused"
    return counts(preview) or "nothing changes"


def counts(preview: Mapping[str, Any]) -> str:
    """``2 created, 1 replaced``; empty where no resource changes."""
    words = [plain(str(step["operation"])) for step in preview.get("plan") or ()]
    return ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))


def _check(check: Mapping[str, Any]) -> str:
    found = list(_findings(check))
    number = len(check.get("files") or ())
    of_files = f"{number} job file{'' if number == 1 else 's'}"
    return f"{GOOD if check.get('ok') else BAD} {of_files}: {_tally(found)}"


def _tally(found: Sequence[Mapping[str, Any]]) -> str:
    levels = [str(one.get("level")) for one in found]
    words = [("error", "error"), ("warning", "warning"), ("info", "note")]
    parts = [f"{n} {word}{'' if n == 1 else 's'}" for level, word in words if (n := levels.count(level))]
    return ", ".join(parts) or "nothing wrong"


def _findings(answer: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All findings of a check or a preview, each once."""
    seen = set()
    files = [found for file in answer.get("files") or () for found in file.get("findings") or ()]
    for one in (*(answer.get("findings") or ()), *files):
        key = tuple(str(one.get(name)) for name in ("code", "file", "line", "where", "message"))
        if key not in seen:
            seen.add(key)
            yield one


def _rehearsals(rehearsals: Mapping[str, Mapping[str, Any]], *, ran: bool) -> str:
    if not rehearsals:
        return f"{NONE} no job changed" if ran else _NOT_RUN
    verdicts = [plain(str(one.get("verdict"))) for one in rehearsals.values()]
    parts = [f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts)]
    mark = BAD if "failed" in verdicts else GOOD if "completed" in verdicts else NONE
    return f"{mark} {', '.join(parts)}"


def _review(review: Mapping[str, Any]) -> str:
    jobs = review.get("jobs") or {}
    ended = ", ".join(f"{code(name)} {plain(str(record.get('status')))}" for name, record in jobs.items())
    if review.get("exit_status"):
        return f"{BAD} {ended or 'it did not come up'}"
    return f"{GOOD} up, {ended or 'no job'}"


def _preview(preview: Mapping[str, Any]) -> str:
    if preview.get("exit_status"):
        return f"{BAD} refused"
    return f"{GOOD} {counts(preview) or 'no resource changes'}"


def _policies(preview: Mapping[str, Any]) -> str:
    if "policies" not in preview:
        return _NOT_RUN
    levels = [str(one.get("enforcementLevel")) for one in preview["policies"]]
    violations, advice = levels.count("mandatory"), len(levels) - levels.count("mandatory")
    parts = [f"{violations} violation{'' if violations == 1 else 's'}"] if violations else ["no violation"]
    parts += [f"{advice} advisory"] if advice else []
    return f"{BAD if violations else GOOD} {', '.join(parts)}"


def _guards(guards: Mapping[str, Any]) -> str:
    counted = (
        (len(guards["kept"]), "guard", "changed"),
        (len(guards["asked_for"]), "exception", "asked for"),
        (len(guards["seen"]), "part", "brought along"),
    )
    parts = [f"{number} {what}{'' if number == 1 else 's'} {done}" for number, what, done in counted if number]
    if number := len(guards["in_force"]):
        parts.append(f"{number} exception{'' if number == 1 else 's'} in force")
    mark = LOOK if guards["kept"] or guards["asked_for"] or guards["seen"] else GOOD
    return f"{mark} {', '.join(parts) or 'unchanged'}"


def _of_guards(guards: Mapping[str, Any]) -> Iterator[str]:
    """The files that decide about the checks, and the changes of them, for whoever approves."""
    for heading, lines in (
        ("Guards that this changes; the checks ran with those of the base", map(code, guards["kept"])),
        ("Exceptions that this asks for; none of them counted", map(plain, guards["asked_for"])),
        ("Parts of the checks that ran as this has them", map(code, guards["seen"])),
    ):
        if found := list(lines):
            yield from _headed(heading, found)
    if in_force := [plain(line) for line in guards["in_force"]]:
        yield from folded(f"Exceptions in force: {len(in_force)}", in_force)


def _cost(which: str, before: Mapping[str, Any] | None, preview: Mapping[str, Any] | None) -> str:
    after = (preview or {}).get("cost")
    was, will = _usd(before, which), _usd(after, which)
    return will if was == will else f"{was} → {will}"


def _usd(cost: Mapping[str, Any] | None, which: str) -> str:
    """An amount; where it is not known, nodes and sizes, which say as much as there is."""
    if cost is None:
        return "nothing yet"
    if (value := cost.get(which)) is not None:
        return f"{value:,.2f} USD"
    nodes = "min" if which.startswith("idle") else "max"
    unknown = [one for one in cost.get("clusters") or () if one.get(which) is None]
    return "unknown: " + ", ".join(
        f"{plain(str(one['nodes'][nodes]))} × {code(str(one['size']))} without a price" for one in unknown
    )


def _details(results: Results) -> Iterator[str]:
    preview, check = results.preview or {}, results.check or {}
    wrong = [_finding(one) for one in (*_findings(check), *_findings(preview)) if one.get("level") == "error"]
    wrong += [_policy(one) for one in preview.get("policies") or () if one.get("enforcementLevel") == "mandatory"]
    if error := str(preview.get("error") or ""):
        wrong += [plain(line) for line in error.splitlines() if line.strip()]
    wrong += [line for file, one in results.rehearsals.items() for line in _failures(file, one)]
    if error := str((results.review or {}).get("error") or ""):
        wrong += [f"review stack: {plain(error)}"]
    if wrong:
        yield from _headed("What is wrong", list(dict.fromkeys(wrong)))
    yield from _of_guards(results.guards) if results.guards else ()
    steps = [
        f"{plain(str(step['operation']))}: {code(name_of(str(step['urn'])))}{_properties(step)}"
        for step in preview.get("plan") or ()
    ]
    if steps:
        yield from folded(f"Changes: {counts(preview)}", steps)
    rehearsed = [line for file, one in results.rehearsals.items() for line in _rehearsed(file, one)]
    if rehearsed:
        yield from folded("Rehearsals, and what they say nothing about", rehearsed)
    hints = [_finding(one) for one in (*_findings(check), *_findings(preview)) if one.get("level") != "error"]
    known = {str(one.get("code")) for one in (*_findings(check), *_findings(preview))}
    advice = [one for one in preview.get("policies") or () if one.get("enforcementLevel") != "mandatory"]
    hints += [_policy(one) for one in advice if str(one.get("policyName")) not in known]
    if hints:
        yield from folded("Warnings and advice", list(dict.fromkeys(hints)))


def _properties(step: Mapping[str, Any]) -> str:
    return f" ({', '.join(code(str(name)) for name in step['properties'])})" if step.get("properties") else ""


def _finding(one: Mapping[str, Any]) -> str:
    place = ":".join(str(one[part]) for part in ("file", "line") if one.get(part))
    head = " ".join(code(part) for part in (place, str(one.get("where") or "")) if part)
    return f"{head} {plain(str(one.get('message')))} ({code(str(one.get('code')))})".strip()


def _policy(one: Mapping[str, Any]) -> str:
    urn = str(one.get("resourceUrn") or "")
    about = f"{code(name_of(urn))} " if urn.count("::") >= 2 else ""
    name = str(one.get("policyName"))
    return f"{about}{plain(str(one.get('message')).strip().removesuffix(f' [{name}]'))} ({code(name)})"


def _failures(file: str, one: Mapping[str, Any]) -> Iterator[str]:
    if one.get("verdict") != "failed":
        return
    for job in one.get("jobs") or ():
        if job.get("status") != "Completed":
            diagnosis = job.get("diagnosis") or {}
            why = diagnosis.get("text") or job.get("error") or one.get("error") or "no reason was recorded"
            yield f"{code(file)}: {code(str(job.get('name')))} {plain(str(job.get('status')))}: {plain(str(why))}"
    if not one.get("jobs"):
        yield f"{code(file)}: {plain(str(one.get('error') or 'it failed'))}"


def _rehearsed(file: str, one: Mapping[str, Any]) -> Iterable[str]:
    jobs = one.get("jobs") or ()
    if not jobs:
        why = one.get("error") or "; ".join(str(each.get("message")) for each in one.get("findings") or ())
        return [f"{code(file)} {plain(str(one.get('verdict')))}: {plain(str(why or 'no reason was recorded'))}"]
    return [
        f"{code(file)}: {code(str(job.get('name')))} {plain(str(job.get('status')))}, {_scale(job)}"
        + "".join(f"; not shown: {plain(str(each))}" for each in job.get("unproven") or ())
        for job in jobs
    ]


def _scale(job: Mapping[str, Any]) -> str:
    """``2 × 8 as 2 × 2`` of its largest part."""
    parts = [each for each in job.get("scaled") or () if each.get("declared")]
    if not parts:
        return "as declared"
    largest = max(parts, key=lambda each: each["declared"][0] * each["declared"][1])
    declared, started = (" × ".join(plain(str(each)) for each in largest[key]) for key in ("declared", "started"))
    return f"{declared} ranks" if declared == started else f"{declared} ranks as {started}"


def _foot(commit: str, link: str) -> Iterator[str]:
    parts = [f"commit {commit[:12]}"] if commit else []
    parts += [f"[reports, logs and results]({link})"] if link else []
    if parts:
        yield f"<sub>{' · '.join(parts)}</sub>"
