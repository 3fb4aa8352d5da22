"""``amlstack:components:Version``: a component of a pipeline's own file, under the hash of its content."""

from __future__ import annotations

import re
from typing import Any

from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    Field,
    Services,
    Shape,
    Values,
    known,
    same_arm_id,
)
from amlstack.rpc import Failures, ProviderError

_NAME = (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"), "letters, digits, '-', '_' and '.'")
SHAPE = Shape(
    {
        "workspace": WORKSPACE_IN_ID,
        "name": Field(str, required=True, pattern=_NAME, in_id=True),
        "version": Field(str, required=True, pattern=_NAME, in_id=True),
        "body": Field(dict, required=True),
    }
)


class Components:
    """Registers component versions; their version is made from their content, so that whoever comes first will do."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Types; a component has a specification."""
        result = SHAPE.check(inputs, failures)
        body = result.get("body")
        if isinstance(body, dict) and known(body) and not body.get("componentSpec"):
            failures.add("body", "a component has a componentSpec")
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name, version or workspace is another component; what its version does not cover is a label."""
        replaces = [name for name in ("name", "version") if old.get(name) != new.get(name)]
        if not same_arm_id(old.get("workspace"), new.get("workspace")):
            replaces.append("workspace")
        return Difference(replaces=tuple(replaces))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists, else registers it."""
        if not known(inputs):
            return "", dict(inputs)  # only at preview
        name, version = inputs["name"], inputs["version"]
        component_id = f"{inputs['workspace']}/components/{name}/versions/{version}"
        state = {**inputs, "componentId": component_id}
        if call.preview:
            return "", state
        arm = self._services.arm
        try:
            if arm.get(component_id, allow=(404,)).status == 404:
                self._register(component_id, inputs["body"])
            else:
                self._services.host.status("already registered", call.urn)
        except ArmError as error:
            raise ProviderError(f"the component {name}:{version} could not be registered: {error}") from None
        return component_id, state

    def _register(self, component_id: str, body: dict[str, Any]) -> None:
        arm = self._services.arm
        try:
            arm.finish(arm.put(component_id, {"properties": body}), self._services.cancelled)
        except ArmError:
            # Another deployment may have registered the same content a moment ago; then all is well.
            if arm.get(component_id, allow=(404,)).status == 404:
                raise

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Whether it is still registered; one that is not, as its workspace may be, is so by the next ``up``."""
        try:
            gone = self._services.arm.get(resource_id, allow=(404,)).status == 404
        except ArmError as error:
            raise ProviderError(f"the component {resource_id} could not be read: {error}") from None
        return ("", {}) if gone else (resource_id, old)

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Nothing of a version can be edited."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Retained: other stacks and old runs refer to the same version."""
