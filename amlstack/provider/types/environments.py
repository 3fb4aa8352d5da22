"""``amlstack:environments:Version``: an environment whose version is its content."""

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
from amlstack.run_identity import environment_version

_NAME = (
    re.compile(r"(?!AzureML)[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', and may not begin with AzureML, which is kept for curated environments",
)
SHAPE = Shape(
    {
        "workspace": WORKSPACE_IN_ID,
        "name": Field(str, required=True, pattern=_NAME, in_id=True),
        "body": Field(dict, required=True),
    },
    digests={"version": ("body",)},
)


class Environments:
    """Registers environments under the hash of their content; immutable, shared by stacks, retained when deleted."""

    shape = SHAPE

    def __init__(self, services: Services) -> None:
        self._services = services

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Types; an environment is an image or a build, in the words of ARM."""
        result = SHAPE.check(inputs, failures)
        body = result.get("body")
        if isinstance(body, dict) and known(body) and not (body.get("image") or body.get("build")):
            failures.add("body", "an environment names an image or a build")
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name, content or workspace is another version."""
        replaces = [name for name in ("name", "body") if old.get(name) != new.get(name)]
        if not same_arm_id(old.get("workspace"), new.get("workspace")):
            replaces.append("workspace")
        return Difference(replaces=tuple(replaces))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists with this content, else registers it."""
        if not known(inputs):
            return "", dict(inputs)  # only at preview
        body: dict[str, Any] = inputs["body"]
        version = environment_version(call.hashable(inputs, "body"))
        environment_id = f"{inputs['workspace']}/environments/{inputs['name']}/versions/{version}"
        state = {**inputs, "environmentId": environment_id, "version": version}
        if call.preview:
            return "", state
        arm = self._services.arm
        try:
            if arm.get(environment_id, allow=(404,)).status == 404:
                self._register(environment_id, body)
            else:
                self._services.host.status("already registered", call.urn)
        except ArmError as error:
            raise ProviderError(f"the environment {inputs['name']} could not be registered: {error}") from None
        return environment_id, state

    def _register(self, environment_id: str, body: dict[str, Any]) -> None:
        arm = self._services.arm
        try:
            arm.finish(arm.put(environment_id, {"properties": body}), self._services.cancelled)
        except ArmError:
            # Another deployment may have registered the same content a moment ago; then all is well.
            if arm.get(environment_id, allow=(404,)).status == 404:
                raise

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Whether it is still registered; one that is not, as its workspace may be, is so by the next ``up``."""
        try:
            gone = self._services.arm.get(resource_id, allow=(404,)).status == 404
        except ArmError as error:
            raise ProviderError(f"the environment {resource_id} could not be read: {error}") from None
        return ("", {}) if gone else (resource_id, old)

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Nothing of a version can be edited."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Retained: other stacks and old runs refer to the same version."""
