"""Phases and ranks as bars over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.report import formats
from amlstack.report.rendering.elements import Safe, element, section

if TYPE_CHECKING:
    from amlstack.report.content import Phase, RankOutcome, Report

MOST_RANKS = 512


def phases(report: Report) -> Safe | None:
    """The job's statuses, one bar each on a common axis."""
    if not report.phases:
        return None
    begin = report.phases[0].began
    end = max((phase.ended or report.made) for phase in report.phases)
    rows = [_phase(phase, begin, end, report) for phase in report.phases]
    axis = f"from {formats.moment(begin)}, {formats.duration(end - begin)} in all"
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
    axis = f"from {formats.moment(begin)}, {formats.duration(end - begin)} in all" if timed else "times are not known"
    more = f"; {len(report.ranks) - MOST_RANKS} more ranks are not shown" if len(report.ranks) > MOST_RANKS else ""
    return section("ranks", "Ranks", element("p", axis + more, class_="quiet"), *groups)


def _phase(phase: Phase, begin: float, end: float, report: Report) -> Safe:
    last = phase.ended if phase.ended is not None else report.made
    lasted = formats.duration(last - phase.began) + ("" if phase.ended is not None else " so far")
    return _row(phase.name, lasted, (phase.began, last), (begin, end), "phase")


def _rank(rank: RankOutcome, axis: tuple[float, float], report: Report, culprit: int | None) -> Safe:
    outcome = formats.ended(rank.code, running=report.active)
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
    lasted = f" after {formats.duration(last - rank.began)}"
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
