"""Return values of ``run()``: the number of items, and the lines for ``append_row_to``."""

from __future__ import annotations

import os
from typing import Any

DEFAULT_FILE = "parallel_run_step.txt"
"""Name of the file where ``append_row_to`` is a folder."""


def read(returned: Any) -> tuple[int, str]:
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


def write(place: str, texts: list[str]) -> None:
    """Puts what all mini-batches returned into the file, in their order."""
    file = os.path.join(place, DEFAULT_FILE) if os.path.isdir(place) else place
    os.makedirs(os.path.dirname(os.path.abspath(file)), exist_ok=True)
    with open(file, "w", encoding="utf-8") as opened:
        opened.writelines(texts)
