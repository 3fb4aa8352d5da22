"""Names in the two spellings of Azure ML: ``snake_case`` in its files, ``camelCase`` on its wire."""

from __future__ import annotations

import re

_WORD = re.compile(r"(.)([A-Z][a-z]+)")
_CAPITAL = re.compile(r"([a-z0-9])([A-Z])")


def snake(name: str) -> str:
    """``shmSize`` as ``shm_size``, ``AMLToken`` as ``aml_token``."""
    return _CAPITAL.sub(r"\1_\2", _WORD.sub(r"\1_\2", name)).lower()


def camel(name: str) -> str:
    """``shm_size`` as ``shmSize``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
