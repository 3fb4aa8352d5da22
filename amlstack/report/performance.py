"""Nodes and ranks of a run beside each other: what the nodes used, and how long a step took on each rank."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from amlstack.diagnose.events import comparable, find_stamp
from amlstack.diagnose.reading.messages import counter
from amlstack.report.logs import NUMBER, Excerpt, Series, read_json
from amlstack.sandbox.runner.usage import FILE

_MEASURES = (("CPU, cores", 1.0), ("memory, GiB", 2.0**30), ("GPU memory, GiB", 2.0**10))
_SAMPLES = "samples of /proc while the job ran; memory that processes share counts in each of them"
SLOWER = 1.2
"""A rank whose step takes more than this multiple of the median is a straggler."""
_STEP, _UNIT = "(?:step|iter|iteration|batch|it)", r"(?P<{}>ms|s|secs?|seconds)"
_TIME = re.compile(
    rf"(?<![\w.])(?:{_STEP}[ _-]?time|time[ _/](?:per[ _])?{_STEP})(?:[ _]?\(?{_UNIT.format('before')}\)?)?['\"]?"
    rf"\s{{0,3}}[:=]?\s{{0,4}}(?P<value>{NUMBER})(?:\s?{_UNIT.format('after')}\b)?"
    rf"|(?P<rate>{NUMBER})\s?{_UNIT.format('each')}/{_STEP}\b",
    re.IGNORECASE,
)


def usage(folder: Path) -> dict[str, tuple[Series, ...]]:
    """The use of a sandbox job's nodes over time, by measure; empty where nothing was sampled."""
    points: dict[str, dict[str, list[tuple[float, float]]]] = {name: defaultdict(list) for name, _ in _MEASURES}
    began = None
    try:
        lines = (folder / FILE).read_text().splitlines()
    except (OSError, ValueError):
        return {}
    for line in lines:
        at, node, *values = line.split(",")
        for (name, unit), value in zip(_MEASURES, values, strict=False):
            try:
                began = float(at) if began is None else began
                point = (float(at) - began, float(value) / unit)
            except ValueError:  # not known, or cut off
                continue
            points[name][f"node {node}"].append(point)
    return {
        name: tuple(Series(node, tuple(pairs), "second", _SAMPLES) for node, pairs in sorted(of_node.items()))
        for name, of_node in points.items()
        if of_node
    }


def bandwidth(folder: Path) -> Iterator[tuple[str, str]]:
    """The verdict of ``amlnode bandwidth`` in this job: its measurement against the expectation of the size."""
    found = read_json(folder / "outputs" / "bandwidth.json")
    if isinstance(found, dict) and isinstance(verdict := found.get("verdict"), dict):
        slow = found.get("slow")
        more = f"; {slow.get('text')}" if isinstance(slow, dict) else ""
        yield "all-reduce", f"{verdict.get('state')}: {verdict.get('text')}{more}"


def steps(excerpts: Sequence[Excerpt]) -> tuple[str, dict[int, list[float]]]:
    """Times of a step that ranks print themselves, else those between stamped lines with a counter of steps."""
    ways = (("times that each rank prints", _printed), ("times of each rank's lines", _between))
    found: dict[int, list[float]] = {}
    for source, values_of in ways:
        for log in excerpts:
            values = list(values_of([line for part in log.parts for line in part.lines]))
            if log.rank is not None and len(values) > len(found.get(log.rank, ())):
                found[log.rank] = values
        if found:
            return source, dict(sorted(found.items()))
    return "", {}


def _printed(lines: Iterable[str]) -> Iterator[float]:
    for line in lines:
        if (found := _TIME.search(line)) is not None:
            seconds = float(found["value"] or found["rate"])
            milli = "ms" in (found["before"] or found["after"] or found["each"] or "").lower()
            if math.isfinite(seconds):
                yield seconds / 1000 if milli else seconds


def _between(lines: Iterable[str]) -> Iterator[float]:
    marks = []
    for line in lines:
        at, stamp = counter(line), find_stamp(line[:160])
        if at is not None and at[0] != "epoch" and stamp is not None:
            marks.append((at[1], stamp))
    for (before, then), (after, now) in pairwise(marks):
        moments = comparable([then, now])
        if after > before and moments is not None and moments[1] >= moments[0]:
            yield (moments[1] - moments[0]) / (after - before)
