"""The memory of scans on disk: damaged, private, bounded, used for large folders and by several processes at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.snapshot import own_code, remembered, scan
from tests.support.snapshot.remembered_scans import LATER, same

if TYPE_CHECKING:
    from collections.abc import Callable


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-40])


def one_digit(path: Path) -> None:
    """Still JSON, with another digest in it."""
    head, _, body = path.read_bytes().partition(b"\n")
    path.write_bytes(head + b"\n" + re.sub(rb'"[0-9a-f]{64}"', b'"' + b"0" * 64 + b'"', body))


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


def test_packages_beside_the_folder_are_distinguished(memory: Path, code: Path, tmp_path: Path) -> None:
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
