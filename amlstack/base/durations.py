"""Durations: of ISO 8601 as Azure takes them (no weeks, months or signs), and as people write them (``1h30m``)."""

from __future__ import annotations

import re

_FORM = re.compile(r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_SHORT = re.compile(r"(?=\d)(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m(?:in)?)?\s*(?:(\d+)s)?", re.IGNORECASE)
_UNITS = (86_400, 3_600, 60, 1)


def seconds(text: str) -> float | None:
    """The seconds of a duration such as ``PT10M`` or ``P1DT12H``; None for what is none."""
    found = _FORM.fullmatch(text)
    if found is None:
        return None
    return sum(float(part or 0) * unit for part, unit in zip(found.groups(), _UNITS, strict=True))


def whole_seconds(text: str) -> int | None:
    """The seconds of ``2h``, ``1h30m``, ``90s``, ``1d 12h`` or ``PT2H``; None for what is none, a bare number too.

    A bare number in quotes has no unit: it may mean seconds or minutes.
    """
    text = text.strip()
    if found := _SHORT.fullmatch(text):
        parts = found.groups()
        return sum(int(part or 0) * unit for part, unit in zip(parts, _UNITS, strict=True)) if any(parts) else None
    exact = seconds(text.upper())
    return int(exact) if exact is not None and exact.is_integer() else None


def iso(seconds: int) -> str:
    """Seconds in the shortest form: ``P1DT1H``."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    clock = "".join(f"{number}{unit}" for number, unit in ((hours, "H"), (minutes, "M"), (rest, "S")) if number)
    clock = clock or ("" if days else "0S")
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}"
