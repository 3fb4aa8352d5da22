"""``amlstack:environments:Version``: an environment whose version is its content."""

from __future__ import annotations

import re

from amlstack.provider.resource import (
    WORKSPACE_IN_ID,
    Call,
    InputField,
    Values,
    shape_of,
)
from amlstack.provider.types.versions import RegisteredVersions
from amlstack.run_identity import environment_version

_NAME = (
    re.compile(r"(?!AzureML)[A-Za-z0-9][A-Za-z0-9_.-]{0,254}"),
    "letters, digits, '-', '_' and '.', and may not begin with AzureML, which is kept for curated environments",
)


class RegisteredEnvironments(RegisteredVersions):
    """Environments under the hash of their content: an image or a build, in the words of ARM."""

    shape = shape_of(
        "amlstack:environments:Version",
        {"workspace": WORKSPACE_IN_ID, "name": InputField(pattern=_NAME, in_id=True)},
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
