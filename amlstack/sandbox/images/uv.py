"""Runs uv, and passes on what it does line by line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.sandbox.runner import process_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amlstack.sandbox.images.standins import StandIn

KEEP = 20
"""Lines of uv's output that an error quotes."""
_SHOWN = ("Downloading", "Resolved", "Prepared", "Installed", "Building", "Bytecode")


class ImageBuildError(Exception):
    """uv is missing or could not build the environment; the message says why."""


def run(
    standin: StandIn, words: Sequence[str], status: Callable[[str], None], variables: Mapping[str, str] | None = None
) -> list[str]:
    """Runs uv with these words, and with these variables besides its own; its output line by line.

    Raises:
        ImageBuildError: It did not end with 0; the message quotes its last lines.
    """
    environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    started = subprocess.Popen(
        [_find(), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env=environ
        | {"NO_COLOR": "1"}
        | dict(standin.compiled.environment if standin.compiled else ())
        | dict(variables or {}),
        preexec_fn=process_tree.die_with_parent,  # noqa: PLW1509 - nothing between fork and exec but one system call
    )
    lines: list[str] = []
    try:
        assert started.stdout is not None  # noqa: S101 - a pipe was asked for
        for raw in started.stdout:
            line = raw.strip()
            if line:
                lines.append(line)
            if line.startswith(_SHOWN):
                status(f"{standin.name}: {line}")
        code = started.wait()
    except BaseException:
        started.kill()
        started.wait()
        raise
    finally:
        if started.stdout is not None:
            started.stdout.close()
    if code != 0:
        quoted = "\n".join(lines[-KEEP:])
        message = f"The environment {standin.name} could not be built: uv ended with {code}.\n{quoted}"
        raise ImageBuildError(message)
    return lines


def _find() -> str:
    beside = Path(sys.executable).parent / "uv"
    found = str(beside) if beside.is_file() else shutil.which("uv")
    if not found:
        message = f"uv is neither at {beside} nor on PATH; `make venv` installs it into the project's environment."
        raise ImageBuildError(message)
    return found
