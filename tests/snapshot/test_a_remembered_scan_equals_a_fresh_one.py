"""A remembered scan equals a fresh one: after every change, and whatever became of the record."""

from __future__ import annotations

import os
import shutil
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlstack.snapshot import File, remembered, scan
from amlstack.snapshot.walk import FileState
from tests.support.examples import examples
from tests.support.snapshot.remembered_scans import LATER, at, same

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO
    from pathlib import Path


def next_tick(folder: Path) -> None:
    """Returns when what is written has another change time than what was written before."""
    probe = folder.parent / "tick"
    probe.write_text("")
    before = probe.stat().st_ctime_ns
    for number in count():
        probe.write_text(str(number))
        if probe.stat().st_ctime_ns != before:
            return


def edit(path: Path) -> None:
    """Other content of the same size, with the old modification time."""
    before = path.stat()
    path.write_text(path.read_text().swapcase())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap(one: Path, other: Path) -> None:
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def renamed_over(folder: Path) -> None:
    before = (folder / "a.py").stat()
    (folder / "new").write_text("CONTENT OF a.py\n")
    os.utime(folder / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "new").rename(folder / "a.py")


def linked_hard(folder: Path) -> None:
    (folder / "b.py").unlink()
    (folder / "b.py").hardlink_to(folder / "a.py")


def written_through_a_hard_link(folder: Path) -> None:
    (folder / "e.py").hardlink_to(folder / "a.py")
    edit(folder / "e.py")


def linked(folder: Path) -> None:
    (folder / "b.py").unlink()
    (folder / "b.py").symlink_to("a.py")


def link_led_elsewhere(folder: Path) -> None:
    (folder / "link").symlink_to("a.py")
    same(folder)
    (folder / "link").unlink()
    (folder / "link").symlink_to("b.py")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edit of the same size, time restored": lambda folder: edit(folder / "a.py"),
    "rename over": renamed_over,
    "swap": lambda folder: swap(folder / "a.py", folder / "b.py"),
    "swap of folders": lambda folder: (shutil.copytree(folder / "sub", folder / "sub2"), edit(folder / "sub2/d.py"),
                                       swap(folder / "sub", folder / "sub2")),
    "hard link": linked_hard,
    "write through a hard link": written_through_a_hard_link,
    "link": linked,
    "link led elsewhere": link_led_elsewhere,
    "mode": lambda folder: (folder / "a.py").chmod(0o600),
    "touch": lambda folder: os.utime(folder / "a.py", (1, 1)),
    "removal": lambda folder: (folder / "a.py").unlink(),
    "addition": lambda folder: (folder / "z.py").write_text("z"),
    "ignore file": lambda folder: (folder / ".amlignore").write_text("a.py\n"),
    "secret": lambda folder: (folder / "a.py").write_text("AKIA0123456789ABCDEF"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_remembered_scan_equals_a_fresh_one_after_a_change(
    memory: Path, code: Path, change: Callable[[Path], object]
) -> None:
    same(code)
    next_tick(code)
    change(code)
    same(code)
    same(code)


EDITS = st.lists(
    st.tuples(st.sampled_from(["write", "edit", "swap", "remove", "touch", "link", "scan"]), st.integers(0, 3)),
    max_size=8,
)


@settings(max_examples=examples(0.25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_a_remembered_scan_equals_a_fresh_one_after_any_changes(
    memory: Path, tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, int]]
) -> None:
    folder = tmp_path_factory.mktemp("any") / "code"
    folder.mkdir()
    files = [folder / f"f{number}" for number in range(4)]
    for file in files:
        file.write_text(f"first {file.name}")
    same(folder)
    for kind, number in edits:
        next_tick(folder)
        file, other = files[number], files[(number + 1) % 4]
        if kind == "write":
            file.unlink(missing_ok=True)
            file.write_text(f"again {file.name}")
        elif kind == "link":
            file.unlink(missing_ok=True)
            if other.exists() and not other.is_symlink():
                file.symlink_to(other.name)
        elif kind == "swap" and file.exists() and other.exists():
            swap(file, other)
        elif kind == "remove" and not any(each.is_symlink() for each in files):
            file.unlink(missing_ok=True)
        elif kind == "edit" and file.exists():
            edit(file)
        elif kind == "touch" and file.exists():
            os.utime(file, (number, number))
        elif kind == "scan":
            same(folder)
    same(folder)


def test_an_unchanged_file_is_not_read_again(memory: Path, code: Path, reads: list[str]) -> None:
    first = scan(code)
    reads.clear()
    assert scan(code) == first
    assert reads == []
    next_tick(code)
    edit(code / "a.py")
    assert scan(code).digests["a.py"] != first.digests["a.py"]
    assert reads.count("a.py") == 2, "for its own digest, and with all others for the content hash"
    assert reads.count("b.py") == 1


def test_a_file_younger_than_the_grain_is_read_again(
    memory: Path, code: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, 0)
    same(code)
    reads.clear()
    scan(code)
    assert sorted(reads) == ["a.py", "b.py", "c.bin", "sub/d.py"]


def test_an_edit_within_the_grain_is_seen(memory: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's clock stands still: after an edit of the same size, the file's state is the same."""
    still = (code / "a.py").stat().st_ctime_ns

    def state(kind: type[FileState], status: os.stat_result) -> FileState:
        return FileState(status.st_size, still, still, status.st_ino, status.st_dev)

    monkeypatch.setattr(FileState, "from_stat", classmethod(state))
    at(monkeypatch, 0)
    before = same(code)
    edit(code / "a.py")
    after = same(code)
    assert (after.files, after.hash != before.hash) == (before.files, True)


def test_a_known_file_that_is_written_to_while_others_are_read_is_read_again(
    memory: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(code)
    next_tick(code)
    edit(code / "a.py")
    real, pending = File.open, [code / "b.py"]

    def opened(file: File) -> FileIO:
        if file.relative == "a.py" and pending:
            edit(pending.pop())
        return real(file)

    monkeypatch.setattr(File, "open", opened)
    found, fresh = scan(code), scan(code, remember=False)
    assert not pending
    assert (found.hash, found.digests) == (fresh.hash, fresh.digests)


def test_a_modification_time_in_the_future_is_not_trusted(memory: Path, code: Path, reads: list[str]) -> None:
    os.utime(code / "a.py", (2**33, 2**33))
    scan(code)
    reads.clear()
    scan(code)
    assert reads == ["a.py"]


def test_nothing_is_trusted_while_the_clock_is_set_back(
    memory: Path, code: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(code)
    reads.clear()
    at(monkeypatch, LATER - 3_600_000_000_000)
    same(code)
    assert set(reads) == {"a.py", "b.py", "c.bin", "sub/d.py"}


def test_nothing_is_remembered_on_a_file_system_that_is_not_known(
    memory: Path, code: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "_kind", lambda place, mounts: "nfs4")
    scan(code)
    reads.clear()
    scan(code)
    assert len(reads) == 4


def test_the_kind_of_a_file_system_is_that_of_the_folder_it_is_mounted_on() -> None:
    mounts = {"/": "ext4", "/home/a b": "nfs4"}
    assert remembered._kind("/home/a b/c/d", mounts) == "nfs4"
    assert remembered._kind("/home/x", mounts) == "ext4"
    assert remembered._mounts()["/proc"] == "proc"
