"""A team's own facts beside the catalogue: sizes, prices, discounts and regions, in one YAML file of theirs.

The file is the one that ``AMLSTACK_CATALOGUE`` names, else ``catalogue.yaml`` in the project's folder if there is one.
It is read when the first question is asked of the catalogue; every process reads the same file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base import paths

if TYPE_CHECKING:
    from amlstack.base.findings import Finding

VARIABLE = "AMLSTACK_CATALOGUE"
NAME = "catalogue.yaml"


class OverlayError(ValueError):
    """The file is wrong; the message is for the user, a line for each thing that is.

    Attributes:
        findings: The same as values.
    """

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        """Put the findings into words."""
        super().__init__("\n".join(str(finding) for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Overlay:
    """The rows that the file adds.

    Attributes:
        sizes: Rows as in ``data/sizes.json``, complete; one of a known name goes before the catalogue's.
        prices: Rows with ``size``, ``usd``, ``region``, ``checked`` and ``source``, perhaps ``low_priority``, ``spot``.
        discounts: Name of a size or series, or ``*`` for all, in lower case → share of the list price to take off.
        regions: Regions that exist besides, as programs write them.
    """

    sizes: tuple[dict[str, Any], ...] = ()
    prices: tuple[dict[str, Any], ...] = ()
    discounts: Mapping[str, float] = field(default_factory=dict)
    regions: frozenset[str] = frozenset()

    def discount(self, size: str, series: str) -> float:
        """The share that is taken off a size's list price: the size's own, its series', or that of all."""
        for name in (size.lower(), series.lower(), "*"):
            if name in self.discounts:
                return self.discounts[name]
        return 0.0


@cache
def path() -> Path | None:
    """The file that is read; None when there is none. A process looks once: a check of a file asks nine times."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen).absolute()
    default = f"{paths.PROJECT}/{NAME}"
    return Path(default) if paths.is_file(default) else None


def current() -> Overlay:
    """The rows that the file adds; none where there is no file.

    Raises:
        OverlayError: The file cannot be read, or says something that is wrong.
    """
    return read(path())


@cache
def read(file: Path | None) -> Overlay:
    """The content of one file.

    Raises:
        OverlayError: It cannot be read, or says something that is wrong.
    """
    if file is None:
        return Overlay()
    from amlstack.catalog import overlay_file  # noqa: PLC0415 - YAML is loaded for those alone who have such a file

    found, findings = overlay_file.load(file)
    if findings:
        raise OverlayError(findings)
    return Overlay(**found)
