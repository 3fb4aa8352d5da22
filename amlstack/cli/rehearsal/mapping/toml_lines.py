"""Lines of a TOML file, which its reader does not keep."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def line_of(lines: Sequence[str], key: str, after: int = 0) -> int | None:
    """Where a key is first written, 1-based: at the beginning of a line, in quotes or a table's brackets.

    Args:
        lines: The file's lines.
        key: The key.
        after: Lines to pass over.
    """
    start = re.compile(rf"""\s*\[*\s*(?:stand_in\s*\.\s*)?["']?{re.escape(key)}["']?\s*[\].=]""")
    return next((number for number, line in enumerate(lines, 1) if number > after and start.match(line)), None)
