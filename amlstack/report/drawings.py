"""The drawings of a report, as SVG: curves, and the ranks over time; and the elements of HTML."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from amlstack.report import content

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from amlstack.report.content import Phase, RankOutcome, Report, Series


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
        "div",
        element("table", element("thead", element("tr", *names)), element("tbody", *lines)),
        class_="wide",
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
    once = [(each.name, content.number(each.points[0][1])) for each in report.series if len(each.points) == 1]
    last = []
    for title, pairs in (("printed once", once), ("outputs/metrics.json", report.numbers)):
        if pairs:
            last += [element("h3", title), facts(pairs)]
    shown = element("div", *(_chart(group) for group in groups), class_="charts")
    return section("numbers", "Loss" if losses else "Numbers", shown, *last)


def _chart(group: Sequence[Series]) -> Safe:
    finite = [(x, y) for each in group for x, y in each.points if math.isfinite(y)]
    axis = group[0].axis
    names = ", ".join(each.name for each in group)
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
            element("span", content.number(high), class_="top"),
            element("span", content.number(low), class_="bottom"),
            element(
                "svg", *grid, *lines, viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", role="img",
                aria_label=f"{names} over {axis}s: {ends}", focusable="false",
            ),
            element("span", f"{axis} {content.number(left)}", class_="left"),
            element("span", f"{axis} {content.number(right)}", class_="right"),
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
    shown = content.count(len(series.points), "point")
    return f"{series.name}: {content.number(first)} → {content.number(last)} ({shown})"


def _numbers(group: Sequence[Series]) -> Safe:
    rows = []
    for each in group:
        every = max(1, math.ceil(len(each.points) / TABLE))
        chosen = list(each.points[::every])
        if chosen[-1] != each.points[-1]:
            chosen.append(each.points[-1])
        rows += [(each.name, content.number(x), content.number(y)) for x, y in chosen]
    return table(("series", group[0].axis, "value"), rows)


MOST_RANKS = 512


def phases(report: Report) -> Safe | None:
    """The job's statuses, one bar each on a common axis."""
    if not report.phases:
        return None
    begin = report.phases[0].began
    end = max((phase.ended or report.made) for phase in report.phases)
    rows = [_phase(phase, begin, end, report) for phase in report.phases]
    axis = f"from {content.moment(begin)}, {content.duration(end - begin)} in all"
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
    axis = f"from {content.moment(begin)}, {content.duration(end - begin)} in all" if timed else "times are not known"
    more = f"; {len(report.ranks) - MOST_RANKS} more ranks are not shown" if len(report.ranks) > MOST_RANKS else ""
    return section("ranks", "Ranks", element("p", axis + more, class_="quiet"), *groups)


def _phase(phase: Phase, begin: float, end: float, report: Report) -> Safe:
    last = phase.ended if phase.ended is not None else report.made
    lasted = content.duration(last - phase.began) + ("" if phase.ended is not None else " so far")
    return _row(phase.name, lasted, (phase.began, last), (begin, end), "phase")


def _rank(rank: RankOutcome, axis: tuple[float, float], report: Report, culprit: int | None) -> Safe:
    outcome = content.ended(rank.code, running=report.active)
    kind = "good" if rank.code == 0 else "stopped" if rank.stopped else "unknown" if rank.code is None else "bad"
    if rank.rank == culprit:
        kind = "culprit"
    elif rank.stopped:
        outcome = "stopped"
    where = f"rank {rank.rank}" + (f" · local {rank.local}" if rank.local is not None else "")
    if rank.code is None and not report.active and rank.rank in _victims(report):
        outcome = "ended by another"
    mark = " · first cause" if kind == "culprit" else ""
    if rank.began is None:
        return _row(where, outcome + mark, None, axis, kind)
    last = _end(rank, report)
    lasted = f" after {content.duration(last - rank.began)}"
    return _row(where, outcome + lasted + mark, (rank.began, last), axis, kind)


def _victims(report: Report) -> set[int | None]:
    return set() if report.verdict is None else {each.rank for each in report.verdict.victims}


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
