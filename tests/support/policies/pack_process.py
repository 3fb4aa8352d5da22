"""The policy pack as a process, started as the engine starts it."""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


ENGINE = "127.0.0.1:1"  # the engine's address, which a pack needs only to log


@contextmanager
def started(command: list[str], cwd: Path, env: Mapping[str, str]) -> Iterator[str]:
    """The address of a running pack."""
    process = subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        port = process.stdout.readline().strip()
        if not port:
            pytest.fail(process.stderr.read())
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.communicate()
