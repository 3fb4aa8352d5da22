"""``amlstack:components:Version``: a component of a pipeline's own file, under the hash of its content."""

from __future__ import annotations

import re

from amlstack.provider.resource import WORKSPACE_IN_ID, Call, InputField, InputShape, Values
from amlstack.provider.types.versions import RegisteredVersions

_NAME = (re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}"), "letters, digits, '-', '_' and '.'")


class RegisteredComponents(RegisteredVersions):
    """Component versions; their version is made from their content, so that any deployment may register it."""

    shape = InputShape(
        {
            "workspace": WORKSPACE_IN_ID,
            "name": InputField(str, required=True, pattern=_NAME, in_id=True),
            "version": InputField(str, required=True, pattern=_NAME, in_id=True),
            "body": InputField(dict, required=True),
        }
    )
    noun = "component"
    needs = ("componentSpec",), "a component has a componentSpec"
    replaced_by = ("name", "version")

    def place(self, call: Call, inputs: Values) -> tuple[str, str, Values]:  # noqa: ARG002
        """Under the name and version that are declared."""
        name, version = inputs["name"], inputs["version"]
        component_id = f"{inputs['workspace']}/components/{name}/versions/{version}"
        return component_id, f"{name}:{version}", {"componentId": component_id}
