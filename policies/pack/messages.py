"""Pulumi's messages without the SDK around them: importing all of it takes as long as the rest of the pack's start."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_PACKAGES = ("pulumi", "pulumi.runtime", "pulumi.runtime.proto")


def alone() -> None:
    """Let this process import modules of ``pulumi.runtime.proto`` without running the packages around them.

    For a process that is the pack and nothing else: the packages stay empty. Where the SDK is imported already, as
    when it starts the pack itself, or is not installed, nothing happens.
    """
    spec = None if "pulumi" in sys.modules else find_spec("pulumi")
    if spec is None or not spec.submodule_search_locations:
        return
    for name in _PACKAGES:
        empty = ModuleType(name)
        inner = name.split(".")[1:]
        empty.__path__ = [str(Path(place, *inner)) for place in spec.submodule_search_locations]
        sys.modules[name] = empty
