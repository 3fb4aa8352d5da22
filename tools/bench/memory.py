"""The memory of a process that a benchmark does not start itself."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LANGUAGE = "pulumi-language-python-exec"


@contextmanager
def peak_of_program(home: str) -> Iterator[list[float]]:
    """GB that an engine's Python program had resident at most, the one entry of a list that is filled meanwhile.

    Args:
        home: `PULUMI_HOME` of the engine, which tells its program from that of another.
    """
    peaks = [0.0]
    over = threading.Event()
    own = f"PULUMI_HOME={home}"

    def watch() -> None:
        while not over.wait(0.2):
            peaks[0] = max(peaks[0], *(_peak(process, own) for process in Path("/proc").glob("[0-9]*")))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peaks
    finally:
        over.set()
        watcher.join()


def _peak(process: Path, own: str) -> float:
    try:
        if LANGUAGE not in (process / "cmdline").read_text() or own not in (process / "environ").read_text():
            return 0.0
        status = (process / "status").read_text()
    except (OSError, UnicodeDecodeError):
        return 0.0
    return next((int(line.split()[1]) / 1e6 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
