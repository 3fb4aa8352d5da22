"""Versions that are registered once for each content: of environments, of components and of data assets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    Difference,
    InputField,
    InputShape,
    Resource,
    Values,
    changed_inputs,
    known,
    same_arm_id,
    shape_of,
)
from amlstack.rpc import ProviderError
from amlstack.run_identity import environment_version

if TYPE_CHECKING:
    from amlstack.rpc import Failures


class RegisteredVersions(Resource):
    """One type of versions.

    Attributes:
        noun: What it is called in messages.
        needs: Keys of the body of which there must be one, and the sentence for a body without them.
        replaced_by: Inputs whose edit makes another version.
    """

    noun: ClassVar[str]
    needs: ClassVar[tuple[tuple[str, ...], str]]
    replaced_by: ClassVar[tuple[str, ...]]

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:
        """ARM id of the version, its name in messages, and the outputs, from known inputs."""
        raise NotImplementedError

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types, and the keys that a body needs."""
        result = super().check(call, inputs, failures)
        body, (keys, sentence) = result.get("body"), self.needs
        if isinstance(body, dict) and known(body) and not any(body.get(key) for key in keys):
            failures.add("body", sentence)
        return result

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another name, content or workspace is another version; what it does not cover is a label."""
        return Difference(replaces=changed_inputs(self.replaced_by, old, new))

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
        """Find the registered version; the next ``up`` registers one that is gone, as its workspace may be."""
        try:
            return ("", {}) if self._is_missing(resource_id) else (resource_id, old)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {resource_id} could not be read: {error}") from None

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


_ENVIRONMENT_NAME = (
    re.compile(r"(?!AzureML)[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', and may not begin with AzureML, which is kept for curated environments",
)


class RegisteredEnvironments(RegisteredVersions):
    """Environments under the hash of their content: an image or a build, in the words of ARM."""

    shape = shape_of(
        "amlstack:environments:Version",
        {"workspace": WORKSPACE_IN_ID, "name": InputField(pattern=_ENVIRONMENT_NAME, in_id=True)},
        digests={"version": ("body",)},
    )
    noun = "environment"
    needs = ("image", "build"), "an environment names an image or a build"
    replaced_by = ("name", "body")

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:
        """Under the hash of the body."""
        version = environment_version(call.hashable(inputs, "body"))
        environment_id = f"{inputs['workspace']}/environments/{inputs['name']}/versions/{version}"
        return environment_id, str(inputs["name"]), {"environmentId": environment_id, "version": version}


_ANONYMOUS: Final = "azureml_anonymous"
"""A PUT of a version of this component answers with the id of another version (azure-sdk-assets, 2026-03-27)."""


class RegisteredComponents(DeclaredVersions):
    """Component versions; their version is made from their content, so that any deployment may register it."""

    shape = declared_shape(
        "amlstack:components:Version",
        (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"), "letters, digits, '-', '_' and '.'"),
    )
    noun = "component"
    needs = ("componentSpec",), "a component has a componentSpec"
    folder = "components"
    output = "componentId"

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Also that the service leaves the version as it is declared."""
        if str(inputs.get("name")).lower() == _ANONYMOUS:
            failures.add("name", f"Azure chooses the versions of {_ANONYMOUS} itself; take another name")
        return super().check(call, inputs, failures)


_DATA_NAME = (
    re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', a letter or digit first",
)
_LABELS: Final = frozenset({"description", "tags", "properties", "isArchived"})
_SERVICE_S: Final = frozenset(
    {"provisioningState", "isAnonymous", "stage", "autoDeleteSetting", "intellectualProperty"}
)
"""The keys that an answer has beside the declared ones."""
_LONG: Final = re.compile(
    r"azureml://(?P<workspace>subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+)/datastores/",
    re.IGNORECASE,
)


class RegisteredData(DeclaredVersions):
    """Versions of data assets: adopted where they say the same, kept when they are not declared any more."""

    shape = declared_shape("amlstack:data:Version", _DATA_NAME)
    noun = "data asset"
    needs = ("dataUri",), "a data asset has a dataUri"
    folder = "data"
    output = "dataId"

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:
        """Another name, version or workspace is another version; labels are edited; anything else is refused.

        Raises:
            ProviderError: A version that is registered would say something else about its data.
        """
        found = super().diff(call, resource_id, old_inputs, old, new)
        before, after = old.get("body"), new.get("body")
        if found.replaces or before == after or not isinstance(before, dict) or not isinstance(after, dict):
            return found
        if known(before, after) and _fixed(before, resource_id) != _fixed(after, resource_id):
            raise ProviderError(_changed(f"{new['name']}:{new['version']}", before, after, resource_id))
        return Difference(updates=("body",))

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Adopts the version that exists and says the same, with the labels that are declared; else registers it."""
        if not known(inputs) or call.preview:
            return super().create(call, inputs)
        data_id, name, outputs = self.place(call, inputs)
        try:
            answer = self._services.arm.get(data_id, allow=(404,))
            if answer.status == 404:
                self._register(data_id, inputs["body"])
                return data_id, {**inputs, **outputs}
            there, wanted = dict(answer.body["properties"]), dict(inputs["body"])
            if _fixed(there, data_id) != _fixed({**_undeclared(there, wanted), **wanted}, data_id):
                raise ProviderError(_changed(name, there, wanted, data_id))
            self._services.host.status("already registered", call.urn)
            if there.get("isArchived") or any(there.get(key) != wanted.get(key) for key in _LABELS & wanted.keys()):
                self._label(data_id, there, wanted)
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {name} could not be registered: {error}") from None
        return data_id, {**inputs, **outputs}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:
        """Its labels."""
        state = {**old, **new}
        if call.preview or old.get("body") == new.get("body"):
            return state
        try:
            there = self._services.arm.get(resource_id).body["properties"]
            self._label(resource_id, there, new["body"])
        except ArmError as error:
            raise ProviderError(f"the {self.noun} {resource_id} could not be changed: {error}") from None
        return state

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """Kept, and its data with it: runs refer to it."""
        name, version = old.get("name"), old.get("version")
        self._services.host.info(
            f"{name}:{version} stays as long as its workspace, and its data stay where they are: runs may refer to it. "
            f"`az ml data archive --name {name} --version {version}` hides it from lists",
            call.urn,
        )

    def _label(self, data_id: str, there: dict[str, Any], wanted: dict[str, Any]) -> None:
        """A version as it is, with the labels that are declared, back in the lists."""
        body = {key: value for key, value in there.items() if key not in _SERVICE_S and value is not None}
        # A description that is left out of a PUT may stay.
        bare = {"description": "", "tags": {}} if there.get("description") else {"tags": {}}
        labels = {**bare, **{key: value for key, value in wanted.items() if key in _LABELS}}
        arm = self._services.arm
        arm.finish(arm.put(data_id, {"properties": {**body, **labels, "isArchived": False}}), self._services.cancelled)


def _undeclared(there: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The properties of a version that the service knows and the declaration leaves open."""
    return {key: value for key, value in there.items() if key == "referencedUris" and key not in wanted}


def _fixed(body: dict[str, Any], data_id: str) -> dict[str, Any]:
    """The unchanging part of a version: type and address, the latter without the workspace that it lies in."""
    fixed = {key: value for key, value in body.items() if key not in _LABELS | _SERVICE_S and value is not None}
    return {**fixed, "dataUri": _short(str(fixed.get("dataUri")), data_id)}


def _short(uri: str, data_id: str) -> str:
    """Azure answers with the long form of an address in the version's own workspace."""
    found = _LONG.match(uri)
    if found is None:
        return uri.rstrip("/")
    own, named = (
        re.sub("/providers/[^/]+", "", each) for each in ("/".join(data_id.split("/")[1:9]), found["workspace"])
    )
    short = f"azureml://datastores/{uri[found.end() :]}" if same_arm_id(own, named) else uri
    return short.rstrip("/")


def _changed(name: str, before: dict[str, Any], after: dict[str, Any], data_id: str) -> str:
    one, other = _fixed(before, data_id), _fixed(after, data_id)
    keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
    different = ", ".join(f"{key} {one.get(key)!r} and not {other.get(key)!r}" for key in keys)
    return f"{name} is registered with {different}, and a registered version never changes. Write another `version`"
