"""Times as Azure's services write them."""

from __future__ import annotations

import datetime as dt


def iso(at: float) -> str:
    """Seconds since the epoch as ARM writes times: ``2026-01-31T12:00:00.123456Z``."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def with_offset(at: float) -> str:
    """Seconds since the epoch as Azure Machine Learning writes times: ``2026-01-31T12:00:00.1234560+00:00``."""
    return dt.datetime.fromtimestamp(at, dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%f0+00:00")
