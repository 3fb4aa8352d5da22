"""Pulumi's messages without the SDK around them.

Measured on two loaded cores, three starts each: with these empty packages the pack's imports take 0.14 s of CPU and
0.43 s in all, with the whole SDK 0.30 s and 1.02 s. The engine starts the pack and every provider in each command.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

_PACKAGES = ("pulumi", "pulumi.runtime", "pulumi.runtime.proto")


def alone() -> None:
    """Let this process import modules of ``pulumi.runtime.proto`` without running the packages around them.

    For a process that is a plugin and nothing else: the packages stay empty. Where the SDK is imported already, as
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
