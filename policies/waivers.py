"""Exceptions: who may break which rule on what, why, and until when."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from amlstack.base.findings import Finding
from policies.pack_rules import EXCEPTION_EXPIRED

FIELDS = ("rule", "resource", "owner", "reason", "expires")

SCHEMA: dict[str, Any] = {
    "type": "array",
    "description": "Exceptions from rules.",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": list(FIELDS),
        "properties": {field: {"type": "string", "minLength": 1} for field in FIELDS},
    },
}


@dataclass(frozen=True, slots=True)
class Waiver:
    """One exception.

    Attributes:
        rule: Code of the rule.
        resource: Pattern (``*``, ``?``) over a resource's name or its URN.
        owner: Who answers for it.
        reason: Why it was granted.
        expires: Last day on which it counts.
    """

    rule: str
    resource: str
    owner: str
    reason: str
    expires: date

    def covers(self, code: str, name: str, urn: str) -> bool:
        """True where it speaks about this rule on this resource, expired or not."""
        return self.rule == code and (fnmatchcase(name, self.resource) or fnmatchcase(urn, self.resource))

    def counts_on(self, on: date) -> bool:
        """True where it has not expired yet."""
        return on <= self.expires

    def finding(self) -> Finding:
        """That it has expired."""
        return Finding(
            EXCEPTION_EXPIRED.code,
            f"exceptions[{self.rule} on {self.resource}]",
            seen=f"The exception of {self.owner} from {self.rule} expired on {self.expires.isoformat()}",
            rule="An exception ends on the day that was agreed",
            remedy="Remove it, or renew it with a new day",
        )


def read(entries: Any, codes: frozenset[str]) -> tuple[Waiver, ...]:
    """The exceptions of the configuration.

    Args:
        entries: The entries under ``exceptions``.
        codes: Codes of the rules that there are.

    Raises:
        ValueError: An entry lacks a field, names no rule, or has no ISO date; the message is for its writer.
    """
    if entries is not None and not isinstance(entries, list | tuple):
        raise ValueError(f"exceptions is a list, not {entries!r}.")
    return tuple(_waiver(index, entry, codes) for index, entry in enumerate(entries or ()))


def meant(code: str, codes: Collection[str]) -> str:
    """The rules that an unknown code may stand for, as a sentence; else where they are listed."""
    words = code.lower().replace("_", "-")
    close = difflib.get_close_matches(words, sorted(codes), n=3, cutoff=0.6)
    best = [one for one in close if difflib.SequenceMatcher(None, one, words).ratio() > 0.85] or close
    return f"Did you mean {' or '.join(f'`{one}`' for one in best)}?" if best else "`amlstack policy list` lists them."


def _waiver(index: int, entry: Any, codes: frozenset[str]) -> Waiver:
    where = f"exceptions[{index}]"
    given = {field: str(entry.get(field) or "").strip() for field in FIELDS} if isinstance(entry, Mapping) else {}
    missing = [field for field in FIELDS if not given.get(field)]
    if missing:
        raise ValueError(f"{where} lacks {', '.join(missing)}. An exception has {', '.join(FIELDS)}.")
    if given["rule"] not in codes:
        raise ValueError(f"{where}: there is no rule {given['rule']!r}. {meant(given['rule'], codes)}")
    try:
        expires = date.fromisoformat(given["expires"])
    except ValueError:
        raise ValueError(f"{where}: {given['expires']!r} is no day. Write it like 2026-12-31.") from None
    return Waiver(given["rule"], given["resource"], given["owner"], given["reason"], expires)
