"""Where a secret is on this machine: ``env:VARIABLE``, a variable of this process's environment."""

from __future__ import annotations

import re

_FROM = re.compile(r"env:(?P<variable>[A-Za-z_][A-Za-z0-9_]*)\Z")


def is_place(value: object) -> bool:
    """Whether a value is ``env:VARIABLE``."""
    return isinstance(value, str) and _FROM.match(value) is not None
