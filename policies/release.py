"""Which version of the pack this is."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path


@cache
def version() -> str:
    """The version in PulumiPolicy.yaml, which the official CLI reads by itself."""
    text = (Path(__file__).resolve().parent / "PulumiPolicy.yaml").read_text(encoding="utf-8")
    found = re.search(r"^version:\s*(\S+)", text, re.MULTILINE)
    return found[1] if found else "0.0.0"
