"""``amlstack:data:Version``: a version of a data asset. What it says about its data never changes; its labels may."""

from __future__ import annotations

import re
from typing import Any, Final

from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    Call,
    Difference,
    Values,
    known,
    same_arm_id,
)
from amlstack.provider.types.versions import DeclaredVersions, declared_shape
from amlstack.rpc import ProviderError

_NAME = (re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"), "letters, digits, '-', '_' and '.', a letter or digit first")
_LABELS: Final = frozenset({"description", "tags", "properties", "isArchived"})
_SERVICE_S: Final = frozenset(
    {"provisioningState", "isAnonymous", "stage", "autoDeleteSetting", "intellectualProperty"}
)
"""What an answer has beside what was declared."""
_LONG: Final = re.compile(
    r"azureml://(?P<workspace>subscriptions/[^/]+/resourcegroups/[^/]+/(?:providers/[^/]+/)?workspaces/[^/]+)/datastores/",
    re.IGNORECASE,
)


class RegisteredData(DeclaredVersions):
    """Versions of data assets: adopted where they say the same, kept when they are not declared any more."""

    shape = declared_shape("amlstack:data:Version", _NAME)
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
    """What the service knows of a version and the declaration leaves open."""
    return {key: value for key, value in there.items() if key == "referencedUris" and key not in wanted}


def _fixed(body: dict[str, Any], data_id: str) -> dict[str, Any]:
    """What never changes of a version: type and address, the latter without the workspace that it lies in."""
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
