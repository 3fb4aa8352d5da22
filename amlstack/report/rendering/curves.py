"""Series as line charts: inline SVG that stretches, with its numbers beside it as text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from amlstack.report import formats
from amlstack.report.rendering.elements import Safe, element, facts, section, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amlstack.report.content import Report, Series

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
    once = [(each.name, formats.number(each.points[0][1])) for each in report.series if len(each.points) == 1]
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
            element("span", formats.number(high), class_="top"),
            element("span", formats.number(low), class_="bottom"),
            element(
                "svg", *grid, *lines, viewBox=f"0 0 {WIDTH} {HEIGHT}", preserveAspectRatio="none", role="img",
                aria_label=f"{names} over {axis}s: {ends}", focusable="false",
            ),
            element("span", f"{axis} {formats.number(left)}", class_="left"),
            element("span", f"{axis} {formats.number(right)}", class_="right"),
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
    shown = formats.count(len(series.points), "point")
    return f"{series.name}: {formats.number(first)} → {formats.number(last)} ({shown})"


def _numbers(group: Sequence[Series]) -> Safe:
    rows = []
    for each in group:
        every = max(1, math.ceil(len(each.points) / TABLE))
        chosen = list(each.points[::every])
        if chosen[-1] != each.points[-1]:
            chosen.append(each.points[-1])
        rows += [(each.name, formats.number(x), formats.number(y)) for x, y in chosen]
    return table(("series", group[0].axis, "value"), rows)
