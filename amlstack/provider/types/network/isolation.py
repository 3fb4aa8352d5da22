"""``amlstack:network:Isolation``: decides which isolation the workspace gets, before it is written.

Only Azure knows what a workspace has, and it takes no step back. So the answer is asked for at preview: what cannot be
is refused before anything is changed, and what the settings leave open stays as it is on a workspace that exists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    InputField,
    Services,
    Values,
    known,
    same_arm_id,
    shape_of,
)
from amlstack.provider.types.network import live
from amlstack.provider.types.network.live import APPROVED, OFF, OPEN, STRICTER
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from amlstack.provider.types.network.live import LiveNetwork

SHAPE = shape_of("amlstack:network:Isolation", {"workspace": WORKSPACE_IN_ID, "wanted": InputField(choices=STRICTER)})
_WORDS = {OFF: "off", OPEN: "allow_internet_outbound", APPROVED: "only_approved"}


class Isolations:
    """Reads what the workspace has, and answers what it is to have."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Types."""
        return SHAPE.check(inputs, failures)

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Judge a new request now, by the state of the workspace; it is changed nowhere but there."""
        before = old_inputs or old
        names = [name for name in ("wanted", "given", "excluded") if before.get(name) != new.get(name)]
        if not same_arm_id(before.get("workspace"), new.get("workspace")):
            names.append("workspace")
        if names and known(new):
            self._decided(call, new, preview=True)
        return Difference(updates=tuple(names))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """The mode."""
        return ("" if call.preview else str(inputs["workspace"])), self._state(call, inputs)

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """The isolation that the workspace has; without a workspace the next ``up`` decides it anew."""
        if not old:
            raise ProviderError("the isolation of a workspace is not imported: declare it")
        found = live.network(self._services.arm, resource_id)
        return ("", {}) if found is None else (resource_id, {**old, "mode": found.mode})

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The mode."""
        return self._state(call, new)

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """The network goes with its workspace."""

    def _state(self, call: Call, inputs: Values) -> Values:
        if call.preview and not known(inputs):
            return {**inputs, "mode": UNKNOWN}
        mode = self._decided(call, inputs, preview=call.preview)
        return {**inputs, "mode": UNKNOWN if mode is None else mode}

    def _decided(self, call: Call, inputs: Values, *, preview: bool) -> str | None:
        """The mode; None at a preview that could not ask."""
        workspace = str(inputs["workspace"])
        arm = self._services.arm
        try:
            found = live.network(arm, workspace)
            mode = decide(
                found, str(inputs["wanted"]), given=bool(inputs["given"]), excluded=inputs.get("excluded") or ()
            )
            if found is not None and found.mode == OFF and mode != OFF and (names := live.computes(arm, workspace)):
                raise ProviderError(
                    f"the workspace has no managed network, and computes: {', '.join(sorted(names))}. Azure turns a "
                    "managed network on only where there is no compute. Take the clusters out of the settings and run "
                    f"`up`; then write isolation: {_WORDS[mode]} and put them back",
                    ErrorCode.FAILED_PRECONDITION,
                )
        except ArmError as error:
            if not preview:
                raise
            text = f"what isolation the workspace has cannot be asked, so `up` decides: {error}"
            self._services.host.info(text, call.urn)
            return None
        if found is not None and (found.mode, mode) == (OPEN, APPROVED):
            self._services.host.warning(
                "isolation goes from allow_internet_outbound to only_approved, from which there is no way back; one "
                "page of Azure's documentation says that it can, another that it cannot be changed so",
                call.urn,
            )
        return mode


def decide(found: LiveNetwork | None, wanted: str, *, given: bool, excluded: Sequence[str] = ()) -> str:
    """The mode that a workspace gets.

    Args:
        found: What it has; None where there is no workspace yet.
        wanted: What the stack asks for.
        given: The settings say so themselves.
        excluded: What of the stack cannot be in a managed network, a sentence each.

    Raises:
        ProviderError: Azure takes no such step, or the stack cannot be in that network.
    """
    mode = wanted if found is None or given else found.mode
    if found is not None and STRICTER.index(mode) < _rank(found.mode):
        back = f"isolation cannot go from {_word(found.mode)} to {_word(mode)}: Azure takes no step back"
        remedy = f"Write isolation: {_word(found.mode)}, or give the workspace another name to make a new one"
        raise ProviderError(f"{back}. {remedy}", ErrorCode.FAILED_PRECONDITION)
    if mode != OFF and excluded:
        raise ProviderError(
            f"the workspace has a managed network ({_word(mode)}), and {'; '.join(excluded)}. All nodes are in that "
            "network and in the workspace's region",
            ErrorCode.FAILED_PRECONDITION,
        )
    return mode


def _rank(mode: str) -> int:
    """A mode that is not known is taken for the strictest: it cannot be left."""
    return STRICTER.index(mode) if mode in STRICTER else len(STRICTER)


def _word(mode: str) -> str:
    return _WORDS.get(mode, mode)
