"""Rules that could not judge, as a value is missing: refused where it never becomes known here, else noted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from policies.evaluation.facts import AT_UP, UNREADABLE, Unknown
from policies.pack_rules import CHECKED_AT_UP, TEMPLATE_UNRESOLVED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.config import Config


def left_open(
    where: str, waits: Mapping[tuple[Unknown, ...], list[str]], config: Config
) -> tuple[list[Finding], tuple[Finding, ...]]:
    """What is refused because it never becomes known here, and what is only noted."""
    refused: list[Finding] = []
    notes: list[Finding] = []
    for unknown, codes in waits.items():
        if any(value.why == UNREADABLE for value in unknown):
            continue
        enabled = [code for code in dict.fromkeys(codes) if config.enabled(code)]
        final = any(value.unresolved for value in unknown)
        bound = [code for code in enabled if final and config.level(code) in {"mandatory", "remediate"}]
        if bound and config.enabled(TEMPLATE_UNRESOLVED.code):
            refused.append(_unresolved(where, unknown, bound))
        elif enabled:
            notes.append(_wait(where, unknown, enabled))
    return refused, tuple(notes)


def _unresolved(where: str, unknown: tuple[Unknown, ...], codes: list[str]) -> Finding:
    return Finding(
        TEMPLATE_UNRESOLVED.code,
        where,
        seen=" and ".join(f"{value.path} {value.why}" for value in unknown),
        rule=f"What is deployed is judged before it is deployed, and {_list(codes)} open here",
        remedy="Write the value out, once, or give it in the deployment's parameters",
    )


def _wait(where: str, unknown: tuple[Unknown, ...], codes: list[str]) -> Finding:
    later = all(value.why == AT_UP for value in unknown)
    return Finding(
        CHECKED_AT_UP.code,
        where,
        seen=" and ".join(f"{value.path} {value.why}" for value in unknown),
        rule=f"{_list(codes)} {'checked at up' if later else 'not decided here'}",
        remedy="" if later else "Write the value out to have it judged",
        level=Level.INFO,
    )


def _list(codes: list[str]) -> str:
    return f"{codes[0]} is" if len(codes) == 1 else f"{', '.join(codes[:-1])} and {codes[-1]} are"
