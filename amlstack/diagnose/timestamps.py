"""Time stamps as logs write them, made comparable."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ISO = re.compile(
    r"(?P<y>20\d\d)[-/](?P<m>\d\d)[-/](?P<d>\d\d)[ T_](?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?"
    r"(?:Z|(?P<zone>[+-]\d\d:?\d\d))?"
)
# glog as torch and absl write it: no year.
_GLOG = re.compile(r"\b[EWIF](?P<m>\d{1,2}?)(?P<d>\d\d) (?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)\.(?P<f>\d{3,9})")
_CLOCK = re.compile(r"^\W{0,2}(?P<H>\d\d):(?P<M>\d\d):(?P<S>\d\d)(?:[.,](?P<f>\d{1,9}))?\b")
_EPOCH = re.compile(r"^\[(?P<s>1\d{9})\.(?P<f>\d{3,9})\]")


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment.

    Attributes:
        seconds: Seconds since 1970 (UTC when no zone was written), or since the year's or the day's begin.
        kind: What it is counted from: ``epoch``, ``year`` or ``day``.
    """

    seconds: float
    kind: str = "epoch"


def find(text: str) -> Stamp | None:
    """The first time stamp of a line."""
    if not any(mark in text for mark in (":", "[1")):
        return None
    if found := _ISO.search(text):
        return _iso(found)
    if found := _GLOG.search(text):
        day = _moment(1972, found)
        return None if day is None else Stamp((day - datetime(1972, 1, 1, tzinfo=UTC)).total_seconds(), "year")
    if found := _EPOCH.search(text):
        return Stamp(float(f"{found['s']}.{found['f']}"))
    if found := _CLOCK.search(text):
        seconds = int(found["H"]) * 3600 + int(found["M"]) * 60 + int(found["S"])
        return Stamp(seconds + float(f"0.{found['f'] or 0}"), "day")
    return None


def last(before: Iterable[str]) -> Stamp | None:
    """The last time stamp of the lines before an event, of which the nearest comes first."""
    for line in before:
        if stamp := find(line[:160]):
            return stamp
    return None


def comparable(stamps: list[Stamp]) -> list[float] | None:
    """The moments on one scale; None when they have none in common."""
    kinds = {stamp.kind for stamp in stamps}
    if len(kinds) == 1:
        return [stamp.seconds for stamp in stamps]
    if kinds == {"epoch", "year"}:
        return [stamp.seconds if stamp.kind == "year" else _within_year(stamp.seconds) for stamp in stamps]
    return None


def _iso(found: re.Match[str]) -> Stamp | None:
    moment = _moment(int(found["y"]), found)
    if moment is None:
        return None
    if zone := found["zone"]:
        digits = zone.replace(":", "")
        away = timedelta(hours=int(digits[1:3]), minutes=int(digits[3:]))
        if away < timedelta(hours=24):
            moment = moment.replace(tzinfo=timezone(-away if digits[0] == "-" else away))
    return Stamp(moment.timestamp())


def _moment(year: int, found: re.Match[str]) -> datetime | None:
    try:
        seconds = datetime(
            *(year, int(found["m"]), int(found["d"]), int(found["H"]), int(found["M"]), int(found["S"])), tzinfo=UTC
        )
    except ValueError:
        return None
    return seconds + timedelta(seconds=float(f"0.{found['f'] or 0}"))


def _within_year(seconds: float) -> float:
    moment = datetime.fromtimestamp(seconds, UTC)
    return (moment.replace(year=1972) - datetime(1972, 1, 1, tzinfo=UTC)).total_seconds()
