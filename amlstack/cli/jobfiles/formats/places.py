"""The path of a file in its repository, by which GitHub and SARIF name it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.base.findings import Finding


def repository(start: Path | None = None) -> Path | None:
    """The root of the git repository or worktree that a folder lies in, links resolved; None where it is in none.

    Args:
        start: The folder; the working folder when absent.
    """
    folder = (start or Path.cwd()).resolve()
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def root() -> Path:
    """What paths are shown from: the repository, else GitHub's workspace, else the working folder."""
    found = repository()
    if found is None and (workspace := os.environ.get("GITHUB_WORKSPACE")):
        found = Path(workspace).resolve()
    return found or Path.cwd().resolve()


def from_root(file: str, base: Path) -> str | None:
    """A file from a root on, with ``/``; None for one outside of it.

    Args:
        file: Its path, as a finding names it: absolute, or from the working folder on.
        base: The root, links resolved.
    """
    # The file's own name stays, also of a link: that is what the repository has.
    path = Path(os.path.abspath(file))  # noqa: PTH100 - resolve() would follow the link
    for candidate in (path, path.parent.resolve() / path.name):
        if candidate.is_relative_to(base):
            return candidate.relative_to(base).as_posix()
    return None


def located(findings: Iterable[Finding], folder: Path) -> tuple[Finding, ...]:
    """Findings whose files can be found from here: those on a stack's settings are named from its folder on.

    Args:
        findings: The findings.
        folder: The stack's.
    """

    def found(finding: Finding) -> Finding:
        if not finding.file or Path(finding.file).exists() or not (there := folder / finding.file).exists():
            return finding
        return replace(finding, file=str(there))

    return tuple(map(found, findings))
