"""pydantic's errors in settings as findings, and the paths of settings in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from amlstack.base import models
from infra.settings.model import Settings
from infra.settings.stackfile import NAMESPACE, Loc

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from amlstack.base.findings import Finding

EXPLAINER = models.Explainer(
    Settings, models.Codes("setting-missing", "setting-unknown", "setting-refused", "setting-value")
)


def dotted(loc: Loc) -> str:
    """``amlstack:clusters[0].nodes.max`` of ``("clusters", 0, "nodes", "max")``."""
    return f"{NAMESPACE}:{models.where(loc)}"


def describe(error: ErrorDetails) -> Finding:
    """One of pydantic's errors as a finding, its place not yet in a file."""
    loc, seen = EXPLAINER.written(error["loc"]), error.get("input")
    if error["type"] == "string_pattern_mismatch" and loc[-1] == "public_key":
        error = {**error, "input": f"{str(seen)[:11]}…"}  # what was meant as a public key may be the private one
    found = EXPLAINER.finding(error)
    return replace(found, where=dotted(loc), remedy=found.remedy or _idle_remedy(loc, seen))


def _idle_remedy(loc: Loc, seen: Any) -> str:
    """Seconds and shorthands are what people write for a duration: the same as ISO 8601."""
    if loc[-2:] != ("nodes", "idle") or not isinstance(seen, str | int):
        return ""
    text = str(seen).strip().lower()
    if text.isdigit():
        return f"For {text} seconds write PT{text}S"
    number, unit = text[:-1], text[-1:]
    return f"Write PT{number}{unit.upper()}" if number.isdigit() and unit in "hms" else ""
