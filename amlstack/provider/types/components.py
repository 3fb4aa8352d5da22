"""``amlstack:components:Version``: a component of a pipeline's own file, under the hash of its content."""

from __future__ import annotations

import re

from amlstack.provider.types.versions import DeclaredVersions, declared_shape


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
