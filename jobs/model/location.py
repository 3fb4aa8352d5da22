"""Where a job was written: for resolving its relative paths and for placing findings."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - pydantic reads the annotations of a Source
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.base.findings import Finding

Place = tuple[str, int | None, int | None]
"""The path as the file itself spells it, line and column."""


def _nowhere(where: str) -> Place:
    return where, None, None


_RESTS_ON = {
    "environment-incomplete": "environment",
    "input-undefined": "inputs",
    "output-undefined": "outputs",
    "pipeline-empty": "jobs",
}
"""Findings of plans that only follow when a key of the file could not be read."""


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a job.

    Attributes:
        file: Name of the file for messages; None for a job that was made in memory.
        base: Folder that relative paths start from.
        place: From a path in the job (`nodes`) to the path, line and column in the file
            (`resources.instance_count`, 12, 3).
        unreadable: Keys in the file whose values could not be read; the reader's findings say so.
    """

    file: str | None = None
    base: Path = field(default_factory=Path)
    place: Callable[[str], Place] = field(default=_nowhere, compare=False)
    unreadable: frozenset[tuple[str, ...]] = frozenset()

    def locate(self, finding: Finding) -> Finding:
        """The finding with its place in the file."""
        where, line, column = self.place(finding.where)
        return finding.changed(
            where=where,
            file=finding.file or self.file,
            line=finding.line or line,
            column=finding.column or column,
        )

    def explains(self, finding: Finding) -> bool:
        """Whether a finding only follows from an error that the reader of the file has found."""
        key = _RESTS_ON.get(finding.code)
        return any(path == (key,) or path[0] == key in {"environment", "jobs"} for path in self.unreadable)
