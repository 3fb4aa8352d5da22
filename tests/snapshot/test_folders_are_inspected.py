"""A look at a code folder without hashing it finds what a scan finds, within its bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack import snapshot
from amlstack.base.findings import Level
from amlstack.snapshot import folder as folder_module
from amlstack.snapshot import walk

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOKEN = 'KEY = "AKIA' + 'IOSFODNN7EXAMPLE"\n'


def test_an_inspection_finds_what_a_scan_finds(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "aws.py").write_text(TOKEN)
    (tmp_path / ".env").write_text("A=1\n")
    with (tmp_path / "data.bin").open("wb") as file:
        file.truncate(walk.LARGE_FILE)
    found, scanned = snapshot.inspect(tmp_path), snapshot.scan(tmp_path)
    assert set(found.findings) == set(scanned.findings)
    assert {each.code for each in found.findings} == {"git-folder-in-code", "secret-in-code", "large-file-in-code"}
    assert (found.files, found.bytes) == (len(scanned.files), scanned.bytes)


def test_an_inspection_and_a_scan_refuse_the_same_folder(tmp_path: Path) -> None:
    (tmp_path / "away").symlink_to("/etc/passwd")
    found, scanned = snapshot.inspect(tmp_path), snapshot.scan(tmp_path)
    assert [each.code for each in found.findings] == [each.code for each in scanned.findings] == ["link-leaves-folder"]


def test_an_empty_folder_is_a_finding_unless_something_travels_along(tmp_path: Path) -> None:
    assert [each.code for each in snapshot.inspect(tmp_path).findings] == ["code-folder-empty"]
    assert snapshot.inspect(tmp_path, accompanied=True).findings == ()


def test_many_files_that_are_large_together_are_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "LARGE_FOLDER", 3000)
    for number in range(4):
        (tmp_path / f"{number}.bin").write_bytes(bytes(1000))
    (found,) = snapshot.inspect(tmp_path).findings
    assert (found.code, found.level) == ("large-code-folder", Level.WARNING)
    assert found.seen == "The code folder sends 4 files of 4 kB together"


def test_what_the_bounds_leave_out_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MOST_BYTES", 1)
    (tmp_path / "a.py").write_text("a = 1\n")
    (tmp_path / "b.py").write_text(f"b = 1  # longer than the other one\n{TOKEN}")
    (note,) = snapshot.inspect(tmp_path).findings
    assert (note.code, note.level) == ("code-partly-read", Level.INFO)
    assert note.seen == "1 of the code folder's 2 files were searched for secrets by name only"
    monkeypatch.setattr(folder_module, "MOST_FILES", 1)
    (note,) = snapshot.inspect(tmp_path).findings
    assert note.seen == "Only the first 1 files of the code folder were looked at"


def test_files_that_a_scan_remembers_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from amlstack.snapshot import remembered

    monkeypatch.setattr(remembered, "LEAST_FILES", 1)
    monkeypatch.setattr(remembered, "GRAIN", -(10**15))
    monkeypatch.setattr(remembered, "_kind", lambda place, mounts: "ext4")
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "aws.py").write_text(TOKEN)
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    scanned = snapshot.scan(folder)
    monkeypatch.setattr(folder_module, "_head", lambda _: b"")
    assert snapshot.inspect(folder).findings == scanned.findings
    assert scanned.findings
