"""``amlstack:network:Managed``: the outbound rules of the managed network, and its provisioning before any cluster.

The settings are the whole list of rules: one that somebody has added elsewhere goes with the next ``up``. Rules are
written one after the other, as Azure works on one network; provisioning takes tens of minutes and shows its progress.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from amlstack.provider.arm import ArmError, InterruptedWaitError, pause
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    Services,
    Values,
    known,
    same_arm_id,
    shape_of,
)
from amlstack.provider.types.network import live
from amlstack.provider.types.network.live import OFF
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError

if TYPE_CHECKING:
    from amlstack.provider.arm import Response

SHAPE = shape_of("amlstack:network:Managed", {"workspace": WORKSPACE_IN_ID})
ACTIVE: Final = "Active"
BUSY: Final = 409
_AGAIN: Final = 10.0
"""Seconds until the next look while another operation works on the network."""


class ManagedNetworks:
    """Makes the network be as declared, and ready."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services
        self._host = services.host

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Types."""
        return SHAPE.check(inputs, failures)

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """The rules that are declared anew, and those that the network itself has otherwise.

        A workspace that is written whole may bring back rules that it had when it was last read.
        """
        before = old_inputs or old
        if not same_arm_id(before.get("workspace"), new.get("workspace")):
            return Difference(replaces=("workspace",))
        rules, former = _rules(new), _rules(before)
        names = [f"rules.{name}" for name in {**former, **rules} if former.get(name) != rules.get(name)]
        names += ["mode"] if before.get("mode") != new.get("mode") else []
        if not names and known(new) and new["mode"] != OFF:
            try:
                names = list(self._drift(str(new["workspace"]), rules))
            except ArmError as error:
                self._host.warning(f"the managed network could not be read: {error}", call.urn)
        return Difference(updates=tuple(names))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Rules first, so that provisioning makes their endpoints; a network that is there is taken as it is."""
        if call.preview or not known(inputs):
            return "", {**inputs, "status": UNKNOWN}
        return str(inputs["workspace"]), self._converged(call, inputs)

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Read the provisioned network; its rules are compared with what is declared at every preview."""
        if not old:
            raise ProviderError("a managed network is not imported: declare it")
        found = live.network(self._services.arm, resource_id)
        if found is None:
            return "", {}
        status = ACTIVE if found.active else "Inactive"
        return resource_id, {**old, "status": OFF if found.mode == OFF else status}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The same as at first: each step looks at what there is."""
        return {**new, "status": UNKNOWN} if call.preview or not known(new) else self._converged(call, new)

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Network and rules go with the workspace."""

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
        found = live.rules(self._services.arm, workspace)
        names = [name for name, rule in rules.items() if name not in found or not live.same(rule, found[name])]
        names += [name for name in found if name not in rules]
        return [f"rules.{name}" for name in names]

    def _write(self, call: Call, workspace: str, rules: dict[str, Any]) -> None:
        found = live.rules(self._services.arm, workspace)
        for number, (name, rule) in enumerate(rules.items(), 1):
            if name not in found or not live.same(rule, found[name]):
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
        found = live.network(self._services.arm, workspace)
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
