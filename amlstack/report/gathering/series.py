"""Numbers over steps, read from what training scripts print or write. Streams; keeps a bounded number of points."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, BinaryIO

from amlstack.diagnose.reading.messages import counter
from amlstack.diagnose.reading.writers import strip
from amlstack.report.content import Series

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

MOST_POINTS = 1000
MOST_SERIES = 12
MOST_FORMS = 16
LONGEST = 4000
"""What is looked at of one line."""

_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf(?:inity)?)"
# The last word of a metric's name says what it is: train_loss, eval/accuracy, lr-AdamW.
_KINDS = r"loss|losses|accuracy|acc|perplexity|ppl|learning_rate|lr|grad_norm|tokens_per_second|samples_per_second"
_METRIC = re.compile(
    rf"(?<![\w./-])['\"]?(?P<name>(?:[A-Za-z][\w./-]{{0,40}}[_/. -])?(?:{_KINDS}))(?:\[[\w ]+\])?['\"]?"
    rf"\s{{0,4}}[:=]?\s{{0,8}}(?:tensor\()?['\"]?(?P<value>{_NUMBER})(?![\w.]*[A-Za-z(/])",
    re.IGNORECASE,
)
_WORTH = re.compile(rb"loss|acc|ppl|perplexity|lr\b|learning_rate|grad_norm|per_second", re.IGNORECASE)


@dataclass(slots=True)
class _Kept:
    """Points of one series: every n-th, n doubled whenever there are too many; the last one always."""

    axis: str
    points: list[tuple[float, float]] = field(default_factory=list)
    every: int = 1
    seen: int = 0
    last: tuple[float, float] | None = None

    def add(self, x: float, y: float) -> None:
        self.last = (x, y)
        if self.seen % self.every == 0:
            self.points.append((x, y))
            if len(self.points) > MOST_POINTS:
                self.points = self.points[::2]
                self.every *= 2
        self.seen += 1

    def all(self) -> tuple[tuple[float, float], ...]:
        """The points kept, and the last."""
        ends = [] if self.last is None or self.last in self.points[-1:] else [self.last]
        return (*self.points, *ends)


def from_log(path: Path, name: str, rank: int | None = None) -> tuple[Series, ...]:
    """The series that one log's lines print.

    Args:
        path: The log.
        name: As it is shown to the reader.
        rank: Of a log of several ranks, the one whose lines count; None for all lines.
    """
    try:
        with path.open("rb") as file:
            return from_lines(_parts(file), f"lines of {name}" + ("" if rank is None else f" by rank {rank}"), rank)
    except OSError:
        return ()


def from_lines(lines: Iterable[bytes], source: str, rank: int | None = None) -> tuple[Series, ...]:
    """The series that lines print; see `from_log`."""
    # Lines of different forms tell different things: steps, an epoch's mean, a summary at the end.
    kept: dict[str, dict[tuple[str, str], _Kept]] = {}
    for raw in lines:
        if not _WORTH.search(raw):
            continue
        line = strip(raw[:LONGEST].decode(errors="replace"))
        if rank is not None and line.rank is not None and line.rank != rank:
            continue
        axis, at = counter(line.text) or ("print", None)
        for metric, value, begin in metrics(line.text):
            forms = kept.setdefault(metric, {}) if metric in kept or len(kept) < MOST_SERIES else {}
            key = (axis, _form(line.text[:begin]))
            track = forms.setdefault(key, _Kept(axis)) if key in forms or len(forms) < MOST_FORMS else _Kept(axis)
            track.add(float(track.seen) if at is None else at, value)
    return tuple(_series(metric, _longest(forms.values()), source) for metric, forms in kept.items())


def metrics(text: str) -> Iterator[tuple[str, float, int]]:
    """Name, value and place of the metrics that a line prints, each name once."""
    seen = set()
    for found in _METRIC.finditer(text):
        name = re.sub(r"\s+", " ", found["name"]).strip()
        if name not in seen:
            seen.add(name)
            yield name, float(found["value"]), found.start()


def from_metrics(data: Any, source: str) -> tuple[tuple[Series, ...], tuple[tuple[str, str], ...]]:
    """Lists of numbers as series, other plain values as text, of the JSON that a script left at its end."""
    if not isinstance(data, dict):
        return (), ()
    series = [
        Series(str(name), tuple(enumerate(map(float, value))), "entry", source)
        for name, value in data.items()
        if isinstance(value, list) and value and all(_number(each) for each in value)
    ]
    plain = [(str(name), _text(value)) for name, value in data.items() if isinstance(value, str | int | float)]
    return tuple(series[:MOST_SERIES]), tuple(plain[:24])


def read_json(path: Path) -> Any:
    """A small JSON file's content; None when there is none or it is no JSON."""
    try:
        return json.loads(path.read_text()) if path.stat().st_size < 1 << 22 else None
    except (OSError, ValueError, RecursionError):
        return None


def from_logged(values: Mapping[str, Iterable[tuple[float, float]]], source: str) -> tuple[Series, ...]:
    """Series of metrics that a job logged to its run: name → pairs of step and value."""
    found = []
    for name, pairs in values.items():
        kept = _Kept("step")
        for index, (step, value) in enumerate(pairs):
            kept.add(step if step or not index else float(index), value)
        found.append(_series(name, kept, source))
    return tuple(found[:MOST_SERIES])


def _series(name: str, kept: _Kept, source: str) -> Series:
    points = kept.all()
    rises = all(before[0] <= after[0] for before, after in pairwise(points))
    if kept.axis == "print" or not rises or len({x for x, _ in points}) * 2 < len(points):
        # Counters that begin anew with each epoch, or stand still in it, make no axis: the lines themselves do.
        return Series(name, tuple((float(each * kept.every), y) for each, (_, y) in enumerate(points)), "print", source)
    return Series(name, points, kept.axis, source)


def _form(text: str) -> str:
    """What stays of a line's beginning when its numbers, bars and marks are gone."""
    return re.sub(r"[^A-Za-z]+", "", re.sub(r"\d[\d.eE+-]*", "", text[-200:]))


def _longest(forms: Iterable[_Kept]) -> _Kept:
    """The form with the most points; of two the one whose lines name a step, then the first."""
    return max(forms, key=lambda each: (each.seen, each.axis != "print"))


def _parts(file: BinaryIO) -> Iterator[bytes]:
    """Lines, those of progress bars apart; of an endless line pieces, so that memory stays bounded."""
    for line in iter(lambda: file.readline(1 << 16), b""):
        yield from line.rstrip(b"\r\n").split(b"\r")


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: float | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) and math.isfinite(value) else str(value)[:200]
