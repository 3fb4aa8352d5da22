"""azure-ai-ml in tests: its modules, and scripts of ours that use it in a process of their own."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

POLLS = {"AZUREML_RUN_POLLING_INTERVAL_MIN": "1", "AZUREML_RUN_POLLING_INTERVAL_MAX": "1"}
"""Seconds between two looks at a run. With none between them, looking takes more CPU time than the run itself."""


def module(name: str) -> Any:
    """A module under ``azure.ai.ml``, imported when a test first needs it, its dependencies' mutual warnings apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"azure.ai.ml.{name}")


def told(
    script: str, *words: str | Path, environ: Mapping[str, str], given: str | None = None, cwd: Path | None = None
) -> Any:
    """The last line, JSON, that a script of tests/support/sandbox prints; it takes seconds to import the client."""
    path = PROJECT / "tests" / "support" / "sandbox" / f"{script}.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(path), *map(str, words)],
        input=given,
        cwd=cwd,
        env={**os.environ, **POLLS, "PYTHONPATH": str(PROJECT), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().rsplit("\n", 1)[-1])
