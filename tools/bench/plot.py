"""The plot of a run: a bar for each figure that has an anchor, as long as their ratio on a logarithmic scale."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from measure import Row
    from pages import Report

LINE, LABELS, BARS, EDGE = 22, 520, 380, 90
# A hundredth of the anchor to three times the anchor.
LEAST, MOST = 0.01, 3.0
COLOURS = {True: "#2e7d32", False: "#c62828", None: "#607d8b"}


def as_svg(report: Report) -> str:
    """Draw a report; a bar that ends left of the line is smaller than its anchor. No script, no font, no other file."""
    lines: list[str] = []
    y = LINE * 2
    for section in report.sections:
        rows = [row for row in section.rows if row.ratio]
        if rows:
            y += LINE
            lines.append(f'<text x="8" y="{y}" font-weight="bold">{escape(section.title)}</text>')
            for row in rows:
                y += LINE
                lines.extend(_bar(row, y))
    width, height, one = LABELS + BARS + EDGE, y + LINE, LABELS + _length(1.0)
    head = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
    ends = f'y1="{LINE * 1.5}" y2="{height}"'
    key = "figure by its anchor, logarithmic; green: goal reached, red: missed, grey: no goal"
    return "\n".join(
        [
            f'<svg {head} font-family="sans-serif" font-size="12">',
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            f'<text x="8" y="{LINE}">{escape(report.machine)} {key}</text>',
            f'<line x1="{one:.1f}" x2="{one:.1f}" {ends} stroke="#000000" stroke-dasharray="3 3"/>',
            *lines,
            "</svg>\n",
        ]
    )


def _bar(row: Row, y: int) -> Iterator[str]:
    ratio = row.ratio or 1.0
    what = f"{row.what} / {row.anchor}".replace("`", "")
    shown = what if len(what) <= 84 else f"{what[:83]}…"
    length = _length(ratio)
    yield f'<text x="{LABELS - 8}" y="{y}" text-anchor="end" font-size="11">{escape(shown)}</text>'
    yield f'<rect x="{LABELS}" y="{y - 11}" width="{length:.1f}" height="13" fill="{COLOURS[row.met]}"/>'
    yield f'<text x="{LABELS + length + 6:.1f}" y="{y}" font-size="11">{ratio:.3g}</text>'


def _length(ratio: float) -> float:
    place = math.log(min(max(ratio, LEAST), MOST) / LEAST) / math.log(MOST / LEAST)
    return BARS * max(place, 0.005)
