"""A code folder, an empty memory of scans, and which files are opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.snapshot import File, remembered
from tests.support.snapshot.remembered_scans import LATER, at

if TYPE_CHECKING:
    from io import FileIO
    from pathlib import Path


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is remembered, empty; small folders are remembered too, on whatever they lie."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("AMLSTACK_CACHE", str(cache))
    monkeypatch.setattr(remembered, "LEAST_FILES", 0)
    monkeypatch.setattr(remembered, "_kind", lambda place, mounts: "ext4")
    at(monkeypatch, LATER)
    return cache / "snapshots"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.py", "b.py", "c.bin", "sub/d.py"):
        (folder / name).write_text(f"content of {name}\n")
    return folder


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are opened, in order."""
    names: list[str] = []
    real = File.open

    def opened(file: File) -> FileIO:
        names.append(file.relative)
        return real(file)

    monkeypatch.setattr(File, "open", opened)
    return names
