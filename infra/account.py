"""The subscription and tenant of the stack: names and ids are made from them before anything exists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Account:
    """A subscription in its tenant."""

    subscription: str
    tenant: str


def resolve(config: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Account, tuple[Finding, ...]]:
    """Look up the account as azure-native does: its configuration first, then the environment.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        environ: Environment variables.

    Returns:
        The account, with an id of zeros for what was not found, and a finding on each of those.
    """
    found: list[Finding] = []
    ids = []
    for word, what in (("subscription", "subscription"), ("tenant", "tenant")):
        key, upper = f"azure-native:{word}Id", word.upper()
        value = (config.get(key) or environ.get(f"ARM_{upper}_ID") or environ.get(f"AZURE_{upper}_ID") or "").strip()
        ids.append(value if _UUID.fullmatch(value) else _NOBODY)
        if not _UUID.fullmatch(value):
            seen = f"the {what} id is `{value}`" if value else f"no {what} is named"
            rule = "Names and ids are made from it before anything exists; it is a UUID"
            remedy = f"`pulumi config set {key} …`, or set ARM_{upper}_ID; `az account show` prints it"
            found.append(Finding("account", key, seen, rule, remedy))
    return Account(*ids), tuple(found)
