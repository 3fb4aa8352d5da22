"""Commands as a page prints them, typed into a terminal, by a person who agrees to what is asked."""

from __future__ import annotations

import os
import pty
import re
import select
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LIMIT = 900.0
"""Seconds after which a script that does not end is a failure, with what it printed."""
QUESTION = re.compile(rb"\[y/N\]: $")


def of_section(page: str, heading: str) -> list[str]:
    """The lines of the first ``sh`` block below a heading of a Markdown page."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert found, f"no commands below {heading}"
    return [line for line in found[1].splitlines() if line.strip()]


def typed(lines: list[str], folder: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Runs lines in one shell with a terminal, and agrees to every question; exit status and all that was printed.

    The shell ends at the first line that fails.
    """
    script = "set -eo pipefail\n" + "\n".join(lines)
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "-c", script], {**env, "TERM": "dumb", "PS1": ""})
    printed, end = bytearray(), time.monotonic() + LIMIT
    answered = 0
    try:
        while select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]:
            try:
                chunk = os.read(terminal, 65536)
            except OSError:  # the last of the terminal's processes has ended
                break
            if not chunk:
                break
            printed += chunk
            if QUESTION.search(printed, answered):
                answered = len(printed)
                os.write(terminal, b"y\n")
        else:
            os.kill(pid, 9)
    finally:
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), printed.decode(errors="replace").replace("\r\n", "\n")
