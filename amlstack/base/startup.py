"""The start of a process: Pulumi's messages without the SDK, no plugins of pydantic, and a rare search for cycles."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

RARELY = (200_000, 20, 100)
"""Thresholds for work that makes many objects which live to its end, and next to none that form cycles.

Looking for cycles after every few hundred objects, as Python does of itself, is a tenth of such work.
"""


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Inside, or in a function that this decorates, cycles are looked for rarely."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def leave_out_plugins() -> None:
    """Let pydantic take no plugins: to look for them, it reads what every installed package says of itself."""
    if "pydantic" not in sys.modules:
        none: Any = ModuleType("pydantic.plugin._loader")
        none.get_plugins = tuple
        sys.modules[none.__name__] = none


_PACKAGES = ("pulumi", "pulumi.runtime", "pulumi.runtime.proto")


def leave_out_sdk() -> None:
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
