"""Where the files of a sandbox lie; apart from the tables, which whoever only looks for a file need not load."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def folder(home: Path) -> Path:
    """``<home>/sandbox``: everything of one sandbox."""
    return home / "sandbox"


def job_folder(home: Path, job: str) -> Path:
    """``<home>/sandbox/jobs/<table key of the job>``; made by the runner."""
    return folder(home) / "jobs" / job
