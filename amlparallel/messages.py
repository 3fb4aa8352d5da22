"""Messages between the processes of a step, one JSON object a line, and the results of ``run()``."""

from __future__ import annotations

import json
import os
import select
import time
from io import BufferedIOBase
from typing import IO, Any, Dict, Union

Message = Dict[str, Any]


Stream = Union[IO[bytes], BufferedIOBase]


def send(stream: Stream, **message: Any) -> None:
    """Writes one."""
    stream.write(json.dumps(message).encode() + b"\n")
    stream.flush()


def receive(stream: Stream) -> Message | None:
    """Reads one; None where the other side has gone."""
    line = stream.readline()
    return json.loads(line) if line.endswith(b"\n") else None


class Timed:
    """Reads from a pipe, and waits no longer than it is asked to.

    Args:
        descriptor: The pipe's end; stays the caller's.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._heard = b""

    def receive(self, seconds: float) -> Message | None:
        """One message; None where the other side has gone.

        Raises:
            TimeoutError: None came in time.
        """
        until = time.monotonic() + seconds
        while b"\n" not in self._heard:
            if not select.select([self._descriptor], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError
            words = os.read(self._descriptor, 1 << 16)
            if not words:
                return None
            self._heard += words
        line, _, self._heard = self._heard.partition(b"\n")
        found: Message = json.loads(line)
        return found


DEFAULT_FILE = "parallel_run_step.txt"
"""Name of the file where ``append_row_to`` is a folder."""


def items_of(returned: Any) -> tuple[int, str]:
    """Number of items and their text, one line each; the rows of a DataFrame with blanks between the columns.

    Raises:
        TypeError: It is neither a DataFrame nor a list nor a tuple.
    """
    if hasattr(returned, "to_csv") and hasattr(returned, "columns"):
        return len(returned), str(returned.to_csv(sep=" ", header=False, index=False))
    if isinstance(returned, (str, bytes)) or not (hasattr(returned, "__len__") and hasattr(returned, "__iter__")):
        raise TypeError(f"run() must return a DataFrame, a list or a tuple; it returned {type(returned).__name__}")
    items = list(returned)
    return len(items), "".join(f"{item}\n" for item in items)


def write_results(place: str, texts: list[str]) -> None:
    """Puts what all mini-batches returned into the file, in their order."""
    file = os.path.join(place, DEFAULT_FILE) if os.path.isdir(place) else place
    os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
    with open(file, "w", encoding="utf-8") as opened:
        opened.writelines(texts)
