"""Durations as Azure writes them (ISO 8601)."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)(?:\.\d+)?S)?)?"
)


def seconds(text: str) -> int | None:
    """The seconds of a duration such as ``PT10M`` or ``P1DT12H``; None for what is none."""
    found = _FORM.fullmatch(text.strip().upper())
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, rest = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest


def iso(minutes: int) -> str:
    """Minutes as Azure takes them, e.g. ``PT30M``."""
    return f"PT{minutes}M"
