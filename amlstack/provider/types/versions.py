"""Versions of assets: immutable, adopted where they exist, shared by stacks, retained when they are deleted here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    InputField,
    InputShape,
    Services,
    Values,
    known,
    same_arm_id,
    shape_of,
)
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    import re

    from amlstack.rpc import Failures


class RegisteredVersions:
    """One type of versions.

    Attributes:
        shape: Its inputs.
        noun: What it is called in messages.
        needs: Keys of the body of which there must be one, and the sentence for a body without them.
        replaced_by: Inputs whose edit makes another version.
    """

    shape: ClassVar[InputShape]
    noun: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], str]]
    replaced_by: ClassVar[tuple[str, ...]]

    def __init__(self, services: Services) -> None:
        self._services = services

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:
        """ARM id of the version, its name in messages, and the outputs, from known inputs."""
        raise NotImplementedError

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:  # noqa: ARG002
        """Types, and the keys that a body needs."""
        result = self.shape.check(inputs, failures)
        body, (keys, sentence) = result.get("body"), self.needs
        if isinstance(body, dict) and known(body) and not any(body.get(key) for key in keys):
            failures.add("body", sentence)
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name, content or workspace is another version; what it does not cover is a label."""
        replaces = [name for name in self.replaced_by if old.get(name) != new.get(name)]
        if not same_arm_id(old.get("workspace"), new.get("workspace")):
            replaces.append("workspace")
        return Difference(replaces=tuple(replaces))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists, else registers it."""
        if not known(inputs):
            return "", dict(inputs)  # only at preview
        version_id, name, outputs = self.place(call, inputs)
        state = {**inputs, **outputs}
        if call.preview:
            return "", state
        try:
            if self._is_missing(version_id):
                self._register(version_id, inputs["body"])
            else:
                self._services.host.status("already registered", call.urn)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {name} could not be registered: {error}") from None
        return version_id, state

    def read(self, call: Call, resource_id: str, inputs: Values, old: Values) -> tuple[str, Values]:  # noqa: ARG002
        """Whether it is still registered; one that is not, as its workspace may be, is so by the next ``up``."""
        try:
            return ("", {}) if self._is_missing(resource_id) else (resource_id, old)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {resource_id} could not be read: {error}") from None

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Nothing of a version can be edited."""
        return {**old, **new}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:
        """Retained: other stacks and old runs refer to the same version."""

    def _register(self, version_id: str, body: dict[str, Any]) -> None:
        arm = self._services.arm
        try:
            arm.finish(arm.put(version_id, {"properties": body}), self._services.cancelled)
        except ArmError:
            # Another deployment may have registered the same content a moment ago; then all is well.
            if self._is_missing(version_id):
                raise

    def _is_missing(self, version_id: str) -> bool:
        return self._services.arm.get(version_id, allow=(404,)).status == 404


class DeclaredVersions(RegisteredVersions):
    """Versions whose name and version are both declared.

    Attributes:
        folder: What ARM calls their collection in a workspace: ``components``.
        output: Output that has the ARM id.
    """

    replaced_by = ("name", "version")
    folder: ClassVar[str]
    output: ClassVar[str]

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:  # noqa: ARG002
        """Under the name and version that are declared."""
        name, version = inputs["name"], inputs["version"]
        version_id = f"{inputs['workspace']}/{self.folder}/{name}/versions/{version}"
        return version_id, f"{name}:{version}", {self.output: version_id}


def declared_shape(token: str, pattern: tuple[re.Pattern[str], str]) -> InputShape:
    """Inputs of such a type.

    Args:
        token: The type.
        pattern: What its name and its version must look like.
    """
    named = InputField(pattern=pattern, in_id=True)
    return shape_of(token, {"workspace": WORKSPACE_IN_ID, "name": named, "version": named})
