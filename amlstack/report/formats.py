"""Numbers, times and signals as a reader likes them."""

from __future__ import annotations

import math
import signal
from datetime import UTC, datetime


def moment(seconds: float) -> str:
    """``2026-11-21 14:02:07 UTC``."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def duration(seconds: float) -> str:
    """``0.02 s``, ``47 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s" if seconds >= 0.005 else "0 s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: int) -> str:
    """Bytes with a unit: ``512 B``, ``3.4 KiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def number(value: float) -> str:
    """Five digits at most."""
    return f"{value:.5g}" if math.isfinite(value) else str(value)


def ended(code: int | None, *, running: bool) -> str:
    """How a process ended."""
    if code is None:
        return "running" if running else "end unknown"
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def count(amount: int, what: str) -> str:
    """``1 line``, ``2 lines``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"
