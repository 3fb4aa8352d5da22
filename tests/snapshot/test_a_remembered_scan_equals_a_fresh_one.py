"""What a scan takes from memory is what it would have read: after every change, and whatever became of the memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlstack.base.paths import PROJECT
from amlstack.snapshot import File, own_code, remembered, scan
from amlstack.snapshot.walk import FileState

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import FileIO

    from amlstack.snapshot import Snapshot

LATER = 10_000_000_000
"""Nanoseconds by which the clock of a scan is ahead, so that files written just now are old enough."""


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


def at(monkeypatch: pytest.MonkeyPatch, ahead: int) -> None:
    """Sets the clock of scans, in nanoseconds from the machine's."""
    clock = time.time_ns
    monkeypatch.setattr(remembered, "now", lambda: clock() + ahead)


def next_tick(folder: Path) -> None:
    """Returns when what is written has another change time than what was written before."""
    probe = folder.parent / "tick"
    probe.write_text("")
    before = probe.stat().st_ctime_ns
    for number in count():
        probe.write_text(str(number))
        if probe.stat().st_ctime_ns != before:
            return


def same(folder: Path) -> Snapshot:
    """A scan with memory, which must find what one without it finds."""
    fresh = scan(folder, remember=False)
    found = scan(folder)
    assert found == fresh
    return found


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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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

    monkeypatch.setattr(FileState, "of", classmethod(state))
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


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def one_digit(path: Path) -> None:
    """Still JSON, with another digest in it."""
    head, _, body = path.read_bytes().partition(b"\n")
    value = json.loads(body)
    rows = value["files"].values() if isinstance(value, dict) else [value]
    for row in rows:
        row[:] = ["0" * 64 if isinstance(each, str) and len(each) == 64 else each for each in row]
    path.write_bytes(head + b"\n" + json.dumps(value).encode())


def of_another_version(path: Path) -> None:
    path.write_bytes(b"x" + path.read_bytes())


def writable_for_others(path: Path) -> None:
    one = path.read_bytes()
    path.write_bytes(one)
    path.chmod(0o666)


@pytest.mark.parametrize("damage", [emptied, cut, one_digit, of_another_version, Path.unlink, writable_for_others])
def test_a_damaged_memory_counts_as_none(
    memory: Path, code: Path, reads: list[str], damage: Callable[[Path], object]
) -> None:
    scan(code)
    for path in memory.iterdir():
        damage(path)
    reads.clear()
    same(code)
    assert reads.count("a.py") == 2, "once by the fresh scan and once by the other"
    reads.clear()
    scan(code)
    assert reads == [], "it is written again"


def test_the_memory_is_private_and_lies_in_no_folder_that_is_scanned(
    memory: Path, code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(code)
    assert memory.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in memory.iterdir())
    monkeypatch.setenv("AMLSTACK_CACHE", str(code / "cache"))
    scan(code)
    assert not (code / "cache").exists()


def test_a_memory_that_cannot_be_written_costs_nothing(
    memory: Path, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "file"))
    same(code)


def test_what_was_not_used_for_longest_goes_first(
    memory: Path, code: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan(code)
    old = list(memory.iterdir())
    for path in old:
        os.utime(path, (1, 1))
    monkeypatch.setattr(remembered, "_MOST_BYTES", sum(path.stat().st_size for path in old))
    other = tmp_path / "other"
    other.mkdir()
    (other / "other.py").write_text("")
    scan(other)
    left = set(memory.iterdir())
    assert len(left.difference(old)) == 2
    assert len(left) < 4, "one of the older ones at least has gone"


def test_a_small_folder_is_not_remembered(memory: Path, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "LEAST_FILES", 500)
    scan(code)
    assert not memory.exists()


def test_packages_beside_the_folder_are_told_apart(memory: Path, code: Path, tmp_path: Path) -> None:
    package = tmp_path / "beside"
    package.mkdir()
    (package / "__init__.py").write_text("")
    for _ in range(2):
        assert scan(code, (package,)) == scan(code, (package,), remember=False)
        assert scan(code) == scan(code, remember=False)


def test_the_code_of_a_run_is_the_same_from_memory(
    memory: Path, code: Path, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (code / "job.py").write_text("from jobs import Job\n\njob = Job(command='python a.py')\n")
    (code / "notes.yml").write_text("command: a\nenvironment: b\n")

    def own(command: str) -> Any:
        return own_code(scan(code), declared_in=(code / "job.py",), commands=(command,))

    first = own("python a.py")
    reads.clear()
    assert own("python a.py") == first
    assert reads == []
    other = own("python a.py --config notes.yml")
    assert other.hash != first.hash
    monkeypatch.setattr(remembered, "LEAST_FILES", 500)
    assert own("python a.py") == first
    assert own("python a.py --config notes.yml") == other


def test_two_processes_at_once_find_the_same(memory: Path, code: Path, tmp_path: Path) -> None:
    for number in range(600):
        (code / f"m{number}.py").write_text(f"m = {number}\n")
    wanted = scan(code, remember=False).hash
    program = (
        "import sys, pathlib\n"
        "from amlstack.snapshot import remembered, scan\n"
        f"clock = remembered.now; remembered.now = lambda: clock() + {LATER}\n"
        "remembered._kind = lambda place, mounts: 'ext4'\n"
        "print({scan(pathlib.Path(sys.argv[1])).hash for _ in range(5)})\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(code)], stdout=subprocess.PIPE, text=True, cwd=PROJECT)
        for _ in range(2)
    ]
    for process in running:
        printed, _ = process.communicate()
        assert printed == f"{{'{wanted}'}}\n"
    assert {path.name[:3] for path in memory.iterdir()}.isdisjoint({"tmp"})
