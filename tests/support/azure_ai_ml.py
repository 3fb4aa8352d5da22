"""Modules of azure-ai-ml, imported when a test first needs them: a process that only collects tests needs none."""

from __future__ import annotations

import importlib
import warnings
from typing import Any


def module(name: str) -> Any:
    """A module under ``azure.ai.ml``, its import's warnings apart: its dependencies deprecate each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"azure.ai.ml.{name}")
