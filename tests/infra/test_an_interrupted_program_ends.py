"""After Ctrl-C the program leaves registrations that nobody answers; after an error it waits for those under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

HOST = """\
import asyncio, sys
from concurrent.futures import ThreadPoolExecutor
from infra.components.registration import leave_at_once

loop, executor = asyncio.new_event_loop(), ThreadPoolExecutor()
loop.set_default_executor(executor)

def register(gate):
    sys.stdout.writelines(["registering\\n"])
    sys.stdout.flush()
    open(gate).read()
    sys.stdout.writelines(["registered\\n"])

async def program(gate, how):
    leave_at_once()
    registration = loop.run_in_executor(None, register, gate)
    if how == "fails":
        raise ValueError("another registration has failed")
    await registration

try:
    loop.run_until_complete(program(*sys.argv[1:]))
except Exception:
    sys.stdout.writelines(["failed\\n"])
finally:
    executor.shutdown(wait=True)
"""


@pytest.mark.parametrize("how", ["is interrupted", "fails"])
def test_a_registration_is_waited_for_after_an_error_and_not_after_ctrl_c(how: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    command = [sys.executable, "-c", HOST, str(gate), how]
    environ = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if how == "fails":
        gate.write_text("answered")
    else:
        assert process.stdout is not None
        assert process.stdout.readline() == "registering\n"
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    if how == "fails":
        assert (process.returncode, sorted(out.splitlines())) == (0, ["failed", "registered", "registering"]), err
    else:
        assert (process.returncode, out) == (130, ""), err
