"""The page: one HTML file that needs nothing but itself, with no script in it.

It is written whole or not at all, and never over a file that is something else.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.report import content, drawings
from amlstack.report.drawings import Safe, element, facts, join, section, table

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.diagnose import Diagnosis
    from amlstack.report.content import Excerpt, LogPart, Report

GENERATOR = "amlstack report"
"""The page's generator; a file without it is never overwritten unasked."""
# Even if a text of a log became markup, nothing could run or be fetched.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def render(report: Report) -> str:
    """The whole page."""
    style = resources.files("amlstack.report").joinpath("style.css").read_text()
    title = f"{report.title} · {report.status or 'logs'} · run report"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="generator", content=GENERATOR),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Safe(style)),
    )
    body = element(
        "body",
        _header(report),
        element(
            "main",
            _verdict(report),
            _facts(report),
            section("compared", "Side by side", table(report.compared[0], report.compared[1:]))
            if report.compared
            else None,
            drawings.phases(report),
            drawings.ranks(report),
            _children(report),
            drawings.charts(report),
            _logs(report),
            _outputs(report),
        ),
        element("footer", element("p", f"Made by {GENERATOR} on {content.moment(report.made)}.")),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _header(report: Report) -> Safe:
    kind = {"Completed": "good", "Failed": "bad", "Canceled": "stopped"}.get(report.status, "unknown")
    state = f"{report.status}, so far" if report.active else report.status
    notes = [element("p", note, class_="note") for note in report.notes]
    running = "The job has not ended: this page is what was known when it was made. Make it again for more."
    return element(
        "header",
        element("p", "Run report", class_="quiet"),
        element("h1", report.title),
        element("p", element("span", state, class_=f"status {kind}")) if state else None,
        element("p", running, class_="note") if report.active else None,
        *notes,
    )


def _verdict(report: Report) -> Safe | None:
    if report.verdict is None and not report.error:
        return None
    verdict = report.verdict
    service = element("p", element("b", "The service says: "), report.error) if report.error else None
    title = "What ended it" if verdict is None or verdict.fatal else "What is wrong"
    shown = None if verdict is None else _cause(verdict, {each.name for each in report.excerpts})
    return section("verdict", title, shown, service, class_="verdict")


def _cause(verdict: Diagnosis, shown: set[str]) -> Safe:
    who = [] if verdict.rank is None else [("rank", str(verdict.rank))]
    who += [] if verdict.node is None else [("node", verdict.node)]
    place = f"{verdict.file}:{verdict.line}" if verdict.file else ""
    linked = element("a", place, href="#cause") if verdict.found and verdict.file in shown else element("span", place)
    victims = [f"rank {each.rank}" if each.rank is not None else str(each.named) for each in verdict.victims]
    more = f" and {len(victims) - 24} more" if len(victims) > 24 else ""
    rows: list[tuple[str, str]] = [
        *who,
        *([("where", linked)] if place else []),
        *([("code", str(verdict.source))] if verdict.source is not None else []),
        *([("victims", ", ".join(victims[:24]) + more)] if victims else []),
        ("how sure", f"{verdict.confidence}: {verdict.reason}"),
    ]
    rows += [("besides", f"{note.code}: {note.text}") for note in verdict.notes if note.code != verdict.cause][:4]
    return join(
        element("p", verdict.cause or "not in these logs", class_="cause"),
        element("p", _sentence(verdict.means)) if verdict.means else None,
        element("pre", verdict.text, class_="quote") if verdict.text else None,
        element("p", element("b", "Do: "), verdict.advice) if verdict.advice else None,
        facts(rows),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _facts(report: Report) -> Safe | None:
    if not report.facts:
        return None
    pairs = ((name, element("code", value) if name == "command" else value) for name, value in report.facts)
    return section("declared", "Declared", facts(pairs))


def _children(report: Report) -> Safe | None:
    if not report.children:
        return None
    drawn = list(dict.fromkeys(name for each in report.children for name in each.values))
    metric = [report.metric] if report.metric else []
    head = ("step or trial", "job", "status", *drawn, *metric)
    rows = (
        (
            f"{each.place} (best)" if each.best else each.place,
            each.job,
            each.status,
            *(each.values.get(name, "") for name in drawn),
            *([each.metric or "none"] if metric else []),
        )
        for each in report.children
    )
    return section("children", "Steps and trials", table(head, rows))


def _logs(report: Report) -> Safe | None:
    if not report.excerpts:
        return None
    opened = next((each.name for each in report.excerpts if "cause" in each.marks.values()), report.excerpts[0].name)
    return section("logs", "Logs", *(_log(each, opened=each.name == opened) for each in report.excerpts))


def _log(log: Excerpt, *, opened: bool) -> Safe:
    whose = "" if log.rank is None else f" · rank {log.rank}"
    tag = "cause" if "cause" in log.marks.values() else ("ended by another" if log.marks else "")
    summary = element(
        "summary",
        element("span", log.name, class_="name"),
        element("span", f"{whose} · {content.count(log.lines, 'line')}, {content.size(log.size)}", class_="quiet"),
        element("span", tag, class_=f"tag {'bad' if tag == 'cause' else 'unknown'}") if tag else None,
    )
    shown: list[Safe] = []
    at = 1
    for part in log.parts:
        if part.first > at:
            shown.append(element("p", f"… {content.count(part.first - at, 'line')} left out …", class_="gap"))
        shown.append(_part(part, log))
        at = part.after
    if not log.lines:
        shown = [element("p", "empty", class_="gap")]
    return element("details", summary, *shown, class_="log", open=opened)


def _part(part: LogPart, log: Excerpt) -> Safe:
    rows: list[str] = []
    for number, line in enumerate(part.lines, part.first):
        kind = log.marks.get(number)
        text = join(element("span", str(number), class_="n", aria_hidden="true"), line or " ")
        if kind is None:
            rows.append(element("span", text, class_="l"))
        else:
            rows.append(element("mark", text, class_=f"l {kind}", id="cause" if kind == "cause" else None))
    label = f"{log.name}, from line {part.first}"
    return element("pre", *rows, class_="lines", tabindex="0", role="region", aria_label=label)


def _outputs(report: Report) -> Safe | None:
    if not report.outputs:
        return None
    rows = []
    for each in report.outputs:
        size = "" if each.size is None else f" {content.size(each.size)}"
        rows.append(element("li", element("code", each.name), element("span", size, class_="quiet")))
    return section("outputs", "Outputs", element("ul", *rows, class_="files"))


HEAD = 4096


class NotOursError(Exception):
    """The path holds something that this program did not write; the message says what to do."""


def write(path: Path, page: str, *, force: bool = False) -> None:
    """Writes a page.

    Args:
        path: Where to.
        page: The whole of it.
        force: Overwrite whatever file is there.

    Raises:
        NotOursError: Something else is there, or no folder to write into.
        OSError: It cannot be written.
    """
    if path.is_dir():
        message = f"{path} is a folder. Name a file with --output."
        raise NotOursError(message)
    if not path.parent.is_dir():
        message = f"There is no folder {path.parent} to write {path.name} into."
        raise NotOursError(message)
    if path.exists() and not force and not _ours(path):
        message = f"{path} is there and is no report. Name another file with --output, or overwrite it with --force."
        raise NotOursError(message)
    write_whole(path, page.encode(errors="replace"), mode=0o644)


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'content="{GENERATOR}"'.encode() in file.read(HEAD)
