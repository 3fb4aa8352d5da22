"""The managed network of a workspace.

``amlstack:network:Isolation`` decides which isolation the workspace gets, before it is written. Only Azure knows what a
workspace has, and it takes no step back. So the answer is asked for at preview: what cannot be is refused before
anything is changed, and what the settings leave open stays as it is on a workspace that exists.

``amlstack:network:Managed``: its outbound rules, and its provisioning before any cluster. The settings are the whole
list of rules: one that somebody has added elsewhere goes with the next ``up``. Rules are written one after the other,
as Azure works on one network; provisioning takes tens of minutes and shows its progress.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from amlstack.provider import resource
from amlstack.provider.arm import ArmClient, ArmError, InterruptedWaitError, Response, pause
from amlstack.provider.resource import Call, Difference, InputField, Resource, Values
from amlstack.rpc import UNKNOWN, ErrorCode, ProviderError

OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"
STRICTER: Final = (OFF, OPEN, APPROVED)
"""The modes, each stricter than the one before."""

USER_DEFINED: Final = "userdefined"
_READ_ONLY: Final = frozenset({"category", "status", "errorInformation", "parentRuleNames", "fqdns", "sparkStatus"})


@dataclass(frozen=True, slots=True)
class LiveNetwork:
    """The managed network of a workspace that exists.

    Attributes:
        mode: Its isolation, `OFF` where Azure says nothing.
        active: Whether it has been provisioned.
    """

    mode: str
    active: bool


def read_network(arm: ArmClient, workspace: str) -> LiveNetwork | None:
    """The managed network of a workspace; None where there is no such workspace.

    Raises:
        ArmError: The workspace could not be read.
    """
    answer = arm.get(workspace, allow=(404,))
    if answer.status == 404:
        return None
    found = _object(_object(answer.body.get("properties")).get("managedNetwork"))
    status = str(_object(found.get("status")).get("status") or "")
    return LiveNetwork(str(found.get("isolationMode") or OFF), status.lower() == "active")


def read_computes(arm: ArmClient, workspace: str) -> tuple[str, ...]:
    """Names of the computes of a workspace."""
    return tuple(str(one.get("name")) for one in arm.rows(f"{workspace}/computes"))


def read_rules(arm: ArmClient, workspace: str) -> dict[str, dict[str, Any]]:
    """The outbound rules that users have made, by name: what Azure ML makes itself is left out."""
    found = {}
    for one in arm.rows(f"{workspace}/outboundRules"):
        properties = _object(one.get("properties"))
        if str(properties.get("category") or USER_DEFINED).lower() == USER_DEFINED:
            found[str(one.get("name"))] = properties
    return found


def same_rule(declared: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """True where a rule says what it is to say: Azure adds to it, and writes ids and tags in letters of its own."""
    return all(_same(value, found.get(name)) for name, value in declared.items() if name not in _READ_ONLY)


def _same(declared: Any, found: Any) -> bool:
    if isinstance(declared, dict):
        return isinstance(found, dict) and same_rule(declared, found)
    if isinstance(declared, str) and isinstance(found, str):
        return declared.replace(" ", "").lower() == found.replace(" ", "").lower()
    return declared == found or (declared is False and found is None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_WORDS = {OFF: "off", OPEN: "allow_internet_outbound", APPROVED: "only_approved"}


class Isolations(Resource):
    """Reads what the workspace has, and answers what it is to have."""

    shape = resource.shape_of(
        "amlstack:network:Isolation", {"workspace": resource.WORKSPACE_IN_ID, "wanted": InputField(choices=STRICTER)}
    )
    refused_import = "the isolation of a workspace is not imported: declare it"

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Judge a new request now, by the state of the workspace; it is changed nowhere but there."""
        before = old_inputs or old
        names = resource.changed_inputs(("wanted", "given", "excluded"), before, new)
        if names and resource.known(new):
            self._decided(call, new, preview=True)
        return Difference(updates=names)

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """The mode."""
        return ("" if call.preview else str(inputs["workspace"])), self._state(call, inputs)

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:
        """The isolation that the workspace has; without a workspace the next ``up`` decides it anew."""
        super().read(call, resource_id, inputs, old)
        found = read_network(self._services.arm, resource_id)
        return ("", {}) if found is None else (resource_id, {**old, "mode": found.mode})

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The mode."""
        return self._state(call, new)

    def _state(self, call: Call, inputs: Values) -> Values:
        if call.preview and not resource.known(inputs):
            return {**inputs, "mode": UNKNOWN}
        mode = self._decided(call, inputs, preview=call.preview)
        return {**inputs, "mode": UNKNOWN if mode is None else mode}

    def _decided(self, call: Call, inputs: Values, *, preview: bool) -> str | None:
        """The mode; None at a preview that could not ask."""
        workspace = str(inputs["workspace"])
        arm = self._services.arm
        try:
            found = read_network(arm, workspace)
            mode = decide(
                found, str(inputs["wanted"]), given=bool(inputs["given"]), excluded=inputs.get("excluded") or ()
            )
            if found is not None and found.mode == OFF and mode != OFF and (names := read_computes(arm, workspace)):
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
            self._host.info(text, call.urn)
            return None
        if found is not None and (found.mode, mode) == (OPEN, APPROVED):
            self._host.warning(
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


ACTIVE: Final = "Active"
BUSY: Final = 409
_AGAIN: Final = 10.0
"""Seconds until the next look while another operation works on the network."""


class ManagedNetworks(Resource):
    """Makes the network be as declared, and ready."""

    shape = resource.shape_of("amlstack:network:Managed", {"workspace": resource.WORKSPACE_IN_ID})
    refused_import = "a managed network is not imported: declare it"

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """The rules that are declared anew, and those that the network itself has otherwise.

        A workspace that is written whole may bring back rules that it had when it was last read.
        """
        before = old_inputs or old
        if not resource.same_arm_id(before.get("workspace"), new.get("workspace")):
            return Difference(replaces=("workspace",))
        rules, former = _rules(new), _rules(before)
        names = [f"rules.{name}" for name in {**former, **rules} if former.get(name) != rules.get(name)]
        names += ["mode"] if before.get("mode") != new.get("mode") else []
        if not names and resource.known(new) and new["mode"] != OFF:
            try:
                names = list(self._drift(str(new["workspace"]), rules))
            except ArmError as error:
                self._host.warning(f"the managed network could not be read: {error}", call.urn)
        return Difference(updates=tuple(names))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Rules first, so that provisioning makes their endpoints; a network that is there is taken as it is."""
        if call.preview or not resource.known(inputs):
            return "", {**inputs, "status": UNKNOWN}
        return str(inputs["workspace"]), self._converged(call, inputs)

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:
        """Read the provisioned network; its rules are compared with what is declared at every preview."""
        super().read(call, resource_id, inputs, old)
        found = read_network(self._services.arm, resource_id)
        if found is None:
            return "", {}
        status = ACTIVE if found.active else "Inactive"
        return resource_id, {**old, "status": OFF if found.mode == OFF else status}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The same as at first: each step looks at what there is."""
        return {**new, "status": UNKNOWN} if call.preview or not resource.known(new) else self._converged(call, new)

    def _converged(self, call: Call, inputs: Values) -> Values:
        if inputs["mode"] == OFF:
            return {**inputs, "status": OFF}
        workspace = str(inputs["workspace"])
        try:
            self._write(call, workspace, _rules(inputs))
            self._provision(call, workspace)
        except InterruptedWaitError:
            raise ProviderError(
                "interrupted while the managed network was being made; Azure goes on, and the next `up` waits for it",
                ErrorCode.CANCELLED,
            ) from None
        return {**inputs, "status": ACTIVE}

    def _drift(self, workspace: str, rules: dict[str, Any]) -> list[str]:
        found = read_rules(self._services.arm, workspace)
        names = [name for name, rule in rules.items() if name not in found or not same_rule(rule, found[name])]
        names += [name for name in found if name not in rules]
        return [f"rules.{name}" for name in names]

    def _write(self, call: Call, workspace: str, rules: dict[str, Any]) -> None:
        found = read_rules(self._services.arm, workspace)
        for number, (name, rule) in enumerate(rules.items(), 1):
            if name not in found or not same_rule(rule, found[name]):
                which = f"rule {number} of {len(rules)}"  # names may be secret, if all of the rules are
                self._host.status(f"writing {which}", call.urn)
                path = f"{workspace}/outboundRules/{name}"
                self._finish(call, self._patiently(call, "PUT", path, {"properties": rule}), which)
        for name in found:
            if name not in rules:
                self._host.info(f"rule {name} is not declared and is removed", call.urn)
                path = f"{workspace}/outboundRules/{name}"
                self._finish(call, self._patiently(call, "DELETE", path, None), f"rule {name}")

    def _provision(self, call: Call, workspace: str) -> None:
        while not self._is_active(workspace):
            self._host.status("provisioning the managed network", call.urn)
            path = f"{workspace}/provisionManagedNetwork"
            answer = self._services.arm.request("POST", path, body={"includeSpark": False}, allow=(BUSY,))
            if answer.status == BUSY:
                self._host.status("provisioning: Azure is at work on the network already", call.urn)
                pause(answer.delay or _AGAIN, self._services.cancelled)
                continue
            self._finish(call, answer, "provisioning")
            if not self._is_active(workspace):
                raise ProviderError(
                    "Azure has ended provisioning, and the managed network is not active. `up` again goes on; "
                    "`az ml workspace show --query managed_network` shows its rules with their errors"
                )

    def _is_active(self, workspace: str) -> bool:
        found = read_network(self._services.arm, workspace)
        if found is None:
            raise ProviderError(f"the workspace {workspace} does not exist", ErrorCode.NOT_FOUND)
        return found.active

    def _patiently(self, call: Call, method: str, path: str, body: Any) -> Response:
        """A request that is asked again while Azure works on the network."""
        while True:
            answer = self._services.arm.request(
                method, path, body=body, allow=(BUSY, *((404,) if body is None else ()))
            )
            if answer.status != BUSY:
                return answer
            self._host.status("waiting: Azure is at work on the network", call.urn)
            pause(answer.delay or _AGAIN, self._services.cancelled)

    def _finish(self, call: Call, answer: Response, what: str) -> None:
        started = time.monotonic()

        def say() -> None:
            minutes = int(time.monotonic() - started) // 60
            about = " (about 30 minutes at first, 10 more with a firewall)" if what == "provisioning" else ""
            self._host.status(f"{what}: {minutes} min so far{about}", call.urn)

        self._services.arm.finish(answer, self._services.cancelled, on_wait=say)


def _rules(values: Values) -> dict[str, Any]:
    rules = values.get("rules")
    return rules if isinstance(rules, dict) else {}
