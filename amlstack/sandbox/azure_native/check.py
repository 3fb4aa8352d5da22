"""Completes and checks inputs as azure-native does: names, location, required properties."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from amlstack.base import text
from amlstack.rpc import UNKNOWN, Failures
from amlstack.sandbox.azure_native.diff import RANDOMLY_NAMED
from amlstack.sandbox.azure_native.table import API_VERSION, SCOPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from amlstack.sandbox.azure_native.table import ResourceType

PROPOSE, ENFORCE, DISABLE = range(3)
"""Modes of ``pulumi:autonaming`` on the wire."""


def name(
    kind: ResourceType, logical: str, seed: bytes, old: Mapping[str, Any], proposal: tuple[int, str] | None
) -> dict[str, Any]:
    """The inputs that a resource gets whose program names none.

    Args:
        kind: The type.
        logical: The resource's name in the program.
        seed: Randomness of this resource from the engine; the same for preview and update.
        old: Its inputs so far: a name once given stays.
        proposal: Mode and name from the stack's ``pulumi:autonaming`` setting.
    """
    key = kind.autonamed
    if key in old:
        return {name: old[name] for name in (key, RANDOMLY_NAMED) if name in old}
    if proposal is not None:
        mode, proposed = proposal
        return {} if mode == DISABLE else {key: proposed, RANDOMLY_NAMED: True}
    if kind.nested:
        return {key: logical}
    suffix = hmac.new(seed, logical.encode(), hashlib.sha256).hexdigest()[:8]
    return {key: f"{logical}{suffix}", RANDOMLY_NAMED: True}


def location(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    config: Mapping[str, str],
    of_group: Callable[[str], str | None],
) -> Any:
    """Where a resource goes whose program does not say: as before, as the stack says, with its group, or nowhere."""
    group = new.get("resourceGroupName")
    if old.get("location"):
        return old["location"]
    if config.get("location"):
        return config["location"]
    if group is UNKNOWN:
        return UNKNOWN
    return of_group(group) if isinstance(group, str) else None


def failures(kind: ResourceType, inputs: Mapping[str, Any]) -> Failures:
    """What is missing, and what the type does not have."""
    found = Failures()
    for needed in dict.fromkeys((*kind.parameters, *kind.required)):
        if inputs.get(needed) is None:
            hint = (
                ". Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
                if needed == "location"
                else ""
            )
            found.add(needed, f"missing required property '{needed}'{hint}")
    for given in inputs:
        if given not in kind.inputs and given not in {API_VERSION, RANDOMLY_NAMED}:
            hint = text.hint(given, kind.inputs)
            found.add(given, f"'{given}' is no property of azure-native:{kind.token}.{hint}")
    for parameter in kind.parameters:
        value = inputs.get(parameter)
        if value is None or value is UNKNOWN:
            continue
        if not isinstance(value, str) or not value or ("/" in value and parameter not in SCOPES):
            found.add(parameter, f"'{parameter}' must be a name (a string without '/'), not {value!r}")
    return found
