"""A report as one HTML file that needs nothing but itself: curves and ranks over time as SVG, and no script in it.

It is written whole or not at all, and never over a file that is something else.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.base.findings import sentence
from amlstack.report import logs
from amlstack.report.performance import SLOWER

if TYPE_CHECKING:
    from amlstack.diagnose import Diagnosis
    from amlstack.report.logs import Excerpt, LogPart, Phase, RankOutcome, Report, Series


class Safe(str):
    """Markup that `element` or `join` made."""

    __slots__ = ()


HTML_VOID = frozenset({"meta"})
VOID = HTML_VOID | {"polyline", "line"}
"""Elements without content; those of SVG are closed."""


def element(tag: str, /, *content: str | None, **attributes: str | float | bool | None) -> Safe:
    """One element.

    Args:
        tag: Its name.
        content: Texts, escaped here, and markup, taken as it is; None is nothing.
        attributes: ``class_`` is class, other underscores are hyphens; None and False leave an attribute out, True
            gives it without a value.
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value), quote=True)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Safe(f"<{tag}{given}>" if tag in HTML_VOID else f"<{tag}{given}/>")
    return Safe(f"<{tag}{given}>{join(*content)}</{tag}>")


def join(*content: str | None) -> Safe:
    """Texts and markup one after the other."""
    return Safe("".join(each if isinstance(each, Safe) else escape(each) for each in content if each is not None))


def section(name: str, title: str, *content: str | None, **attributes: str) -> Safe:
    """A part of the page under a heading; ``name`` is the heading's anchor."""
    return element("section", element("h2", title, id=name), *content, aria_labelledby=name, **attributes)


def facts(pairs: Iterable[tuple[str, str]]) -> Safe:
    """Names and values."""
    return element("dl", *(join(element("dt", name), element("dd", value)) for name, value in pairs), class_="facts")


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Safe:
    """A table that scrolls when it is too wide."""
    names = (element("th", name, scope="col") for name in head)
    lines = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element(
        "div", element("table", element("thead", element("tr", *names)), element("tbody", *lines)), class_="wide"
    )


WIDTH, HEIGHT = 1000, 300
TOGETHER = 4
"""Losses that share a chart: they have one unit."""
TABLE = 24
"""Rows of the table of numbers."""


def charts(report: Report) -> Safe | None:
    """The losses in one chart, each other series in its own."""
    if not report.series and not report.numbers:
        return None
    several = [each for each in report.series if len(each.points) > 1]
    losses = [each for each in several if each.loss]
    groups: list[list[Series]] = []
    for axis in dict.fromkeys(each.axis for each in losses):  # curves over different axes do not share one
        alike = [each for each in losses if each.axis == axis]
        groups += [alike[at : at + TOGETHER] for at in range(0, len(alike), TOGETHER)]
    groups += [[each] for each in several if not each.loss]
    once = [(each.name, logs.number(each.points[0][1])) for each in report.series if len(each.points) == 1]
    last = []
    for title, pairs in (("printed once", once), ("outputs/metrics.json", report.numbers)):
        if pairs:
            last += [element("h3", title), facts(pairs)]
    shown = element("div", *(_chart(group) for group in groups), class_="charts")
    return section("numbers", "Loss" if losses else "Numbers", shown, *last)


def _chart(group: Sequence[Series], caption: str = "") -> Safe:
    finite = [(x, y) for each in group for x, y in each.points if math.isfinite(y)]
    axis = group[0].axis
    names = caption or ", ".join(each.name for each in group)
    ends = "; ".join(_span(each) for each in group)
    if not finite:
        picture = element("p", "no finite number")
    else:
        left, right = min(x for x, _ in finite), max(x for x, _ in finite)
        low, high = min(y for _, y in finite), max(y for _, y in finite)
        lines = [line for index, each in enumerate(group) for line in _lines(each, index, (left, right), (low, high))]
        grid = (element("line", class_="grid", x1=0, x2=WIDTH, y1=y, y2=y) for y in (0, HEIGHT / 2, HEIGHT))
        picture = element(
            "div",
            element("span", logs.number(high), class_="top"),
            element("span", logs.number(low), class_="bottom"),
            element(
                "svg", *grid, *lines, viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", role="img",
                aria_label=f"{names} over {axis}s: {ends}", focusable="false",
            ),
            element("span", f"{axis} {logs.number(left)}", class_="left"),
            element("span", f"{axis} {logs.number(right)}", class_="right"),
            class_="chart",
        )  # fmt: skip
    legend = (
        element("li", element("span", class_=f"key s{index}", aria_hidden="true"), element("span", _span(each)))
        for index, each in enumerate(group)
    )
    sources = "; ".join(dict.fromkeys(each.source for each in group))
    return element(
        "figure",
        element("figcaption", names),
        picture,
        element("ul", *legend, class_="legend"),
        element("p", f"from {sources}", class_="quiet"),
        element("details", element("summary", "as numbers"), _numbers(group)),
    )


def _lines(series: Series, index: int, xs: tuple[float, float], ys: tuple[float, float]) -> list[Safe]:
    """One line per stretch without NaN; a stretch of one point is a short bar."""
    stretches: list[list[str]] = [[]]
    for x, y in series.points:
        if math.isfinite(y):
            stretches[-1].append(f"{_at(x, *xs) * WIDTH:.1f},{(1 - _at(y, *ys)) * HEIGHT:.1f}")
        elif stretches[-1]:
            stretches.append([])
    found = []
    for points in filter(None, stretches):
        if len(points) == 1:
            across, up = points[0].split(",")
            ends = (max(0.0, float(across) - 6), min(WIDTH, float(across) + 6))
            points[:] = [f"{end:.1f},{up}" for end in ends]
        found.append(element("polyline", class_=f"s{index}", points=" ".join(points)))
    return found


def _at(value: float, low: float, high: float) -> float:
    return 0.5 if high <= low else (value - low) / (high - low)


def _span(series: Series) -> str:
    first, last = series.points[0][1], series.points[-1][1]
    shown = logs.count(len(series.points), "point")
    return f"{series.name}: {logs.number(first)} → {logs.number(last)} ({shown})"


def _numbers(group: Sequence[Series]) -> Safe:
    rows = []
    for each in group:
        every = max(1, math.ceil(len(each.points) / TABLE))
        chosen = list(each.points[::every])
        if chosen[-1] != each.points[-1]:
            chosen.append(each.points[-1])
        rows += [(each.name, logs.number(x), logs.number(y)) for x, y in chosen]
    return table(("series", group[0].axis, "value"), rows)


MOST_RANKS = 512


def phases(report: Report) -> Safe | None:
    """The job's statuses, one bar each on a common axis."""
    if not report.phases:
        return None
    begin = report.phases[0].began
    end = max((phase.ended or report.made) for phase in report.phases)
    rows = [_phase(phase, begin, end, report) for phase in report.phases]
    axis = f"from {logs.moment(begin)}, {logs.duration(end - begin)} in all"
    return section("phases", "Phases", element("p", axis, class_="quiet"), element("ol", *rows, class_="bars"))


def ranks(report: Report) -> Safe | None:
    """Every rank from its start to its end, by node."""
    if not report.ranks:
        return None
    timed = [rank for rank in report.ranks if rank.began is not None]
    begin = min((rank.began for rank in timed if rank.began is not None), default=0.0)
    end = max((_end(rank, report) for rank in timed), default=0.0)
    culprit = None if report.verdict is None or not report.verdict.found else report.verdict.rank
    shown = report.ranks[:MOST_RANKS]
    nodes = list(dict.fromkeys(rank.node for rank in shown))
    groups = []
    for node in nodes:
        rows = [_rank(rank, (begin, end), report, culprit) for rank in shown if rank.node == node]
        groups.append(element("h3", "node unknown" if node is None else f"node {node}"))
        groups.append(element("ol", *rows, class_="bars"))
    axis = f"from {logs.moment(begin)}, {logs.duration(end - begin)} in all" if timed else "times are not known"
    more = f"; {len(report.ranks) - MOST_RANKS} more ranks are not shown" if len(report.ranks) > MOST_RANKS else ""
    return section("ranks", "Ranks", element("p", axis + more, class_="quiet"), *groups)


def steps(report: Report) -> Safe | None:
    """The time of a step on each rank as a bar, with those named that the others wait for."""
    source, of_rank = report.steps
    if not of_rank:
        return None
    took = {rank: statistics.median(values) for rank, values in list(of_rank.items())[:MOST_RANKS]}
    # Of two in the middle the quicker, so that one of two ranks can be the slow one.
    median, longest = statistics.median_low(took.values()), max(took.values())
    rows = []
    for rank, seconds in took.items():
        text, kind = f"{logs.number(seconds)} s, median of {len(of_rank[rank])}", "phase"
        if seconds > SLOWER * median > 0:
            text, kind = f"{text} · straggler: {seconds / median:.2g} times the median rank", "bad"
        rows.append(_row(f"rank {rank}", text, (0.0, seconds), (0.0, longest), kind))
    note = (
        f"From {source}; {logs.number(median)} s on the median rank. A time that ends after a collective is the same "
        "on all ranks, for they wait for the slowest: only one that ends before it names a straggler."
    )
    return section("steps", "Time of a step", element("p", note, class_="quiet"), element("ol", *rows, class_="bars"))


def usage(report: Report) -> Safe | None:
    """The use of each node: the busiest nodes over time, all of them in a table."""
    if not report.usage:
        return None
    cells: dict[str, list[str]] = defaultdict(list)
    figures = []
    for measure, series in report.usage.items():
        busy = {each: statistics.fmean(y for _, y in each.points) for each in series}
        for each, mean in busy.items():
            cells[each.name].append(f"{logs.number(mean)} · {logs.number(max(y for _, y in each.points))}")
        figures.append(_chart(sorted(series, key=busy.__getitem__, reverse=True)[:TOGETHER], measure))
    rows = [(node, *each) for node, each in list(cells.items())[:MOST_RANKS]]
    shown = table(("mean · most", *report.usage), rows)
    return section("nodes", "Nodes", element("div", *figures, class_="charts"), shown)


def _phase(phase: Phase, begin: float, end: float, report: Report) -> Safe:
    last = phase.ended if phase.ended is not None else report.made
    lasted = logs.duration(last - phase.began) + ("" if phase.ended is not None else " so far")
    return _row(phase.name, lasted, (phase.began, last), (begin, end), "phase")


def _rank(rank: RankOutcome, axis: tuple[float, float], report: Report, culprit: int | None) -> Safe:
    outcome = logs.ended(rank.code, running=report.active)
    kind = "good" if rank.code == 0 else "stopped" if rank.stopped else "unknown" if rank.code is None else "bad"
    if rank.rank == culprit:
        kind = "culprit"
    elif rank.stopped:
        outcome = "stopped"
    where = f"rank {rank.rank}" + (f" · local {rank.local}" if rank.local is not None else "")
    victims = report.verdict.victims if report.verdict else ()
    if rank.code is None and not report.active and rank.rank in {each.rank for each in victims}:
        outcome = "ended by another"
    mark = " · first cause" if kind == "culprit" else ""
    if rank.began is None:
        return _row(where, outcome + mark, None, axis, kind)
    last = _end(rank, report)
    lasted = f" after {logs.duration(last - rank.began)}"
    return _row(where, outcome + lasted + mark, (rank.began, last), axis, kind)


def _end(rank: RankOutcome, report: Report) -> float:
    if rank.ended is not None:
        return rank.ended
    return report.made if report.active else (rank.began or 0.0)


def _row(label: str, outcome: str, stretch: tuple[float, float] | None, axis: tuple[float, float], kind: str) -> Safe:
    begin, end = axis
    span = end - begin
    bar = None
    if stretch is not None:
        first, last = stretch
        left = 0.0 if span <= 0 else (first - begin) / span * 100
        width = 100.0 if span <= 0 else (last - first) / span * 100
        bar = element("span", class_=f"bar {kind}", style=f"left:{left:.2f}%;width:{min(width, 100 - left):.2f}%")
    return element(
        "li",
        element("span", label, class_="label"),
        element("span", bar, class_="track" if bar is not None else "none", aria_hidden="true"),
        element("span", outcome, class_=f"outcome {kind}"),
    )


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
            phases(report),
            ranks(report),
            steps(report),
            usage(report),
            _children(report),
            charts(report),
            _logs(report),
            _outputs(report),
        ),
        element("footer", element("p", f"Made by {GENERATOR} on {logs.moment(report.made)}.")),
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
        element("p", sentence(verdict.means[:1].upper() + verdict.means[1:])) if verdict.means else None,
        element("pre", verdict.text, class_="quote") if verdict.text else None,
        element("p", element("b", "Do: "), verdict.advice) if verdict.advice else None,
        facts(rows),
    )


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
        element("span", f"{whose} · {logs.count(log.lines, 'line')}, {logs.size(log.size)}", class_="quiet"),
        element("span", tag, class_=f"tag {'bad' if tag == 'cause' else 'unknown'}") if tag else None,
    )
    shown: list[Safe] = []
    at = 1
    for part in log.parts:
        if part.first > at:
            shown.append(element("p", f"… {logs.count(part.first - at, 'line')} left out …", class_="gap"))
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
        size = "" if each.size is None else f" {logs.size(each.size)}"
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
        raise NotOursError(f"{path} is a folder. Name a file with --output.")
    if not path.parent.is_dir():
        raise NotOursError(f"There is no folder {path.parent} to write {path.name} into.")
    if path.exists() and not force and not _ours(path):
        message = f"{path} is there and is no report. Name another file with --output, or overwrite it with --force."
        raise NotOursError(message)
    write_whole(path, page.encode(errors="replace"), mode=0o644)


def _ours(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'content="{GENERATOR}"'.encode() in file.read(HEAD)
