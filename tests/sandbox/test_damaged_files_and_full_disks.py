"""Tables and states that are damaged, disks that are full or read-only: one sentence, and always a way out."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from amlstack import engine
from amlstack.base import files
from amlstack.base import home as homes
from amlstack.cli.main import main
from amlstack.engine import EngineError
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.database import Database, StateError
from amlstack.sandbox.store.store import Store
from tests.support.running import ended_with_us

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.tools


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home that has tables with something in them."""
    home = tmp_path / "home"
    monkeypatch.setenv("AMLSTACK_HOME", str(home))
    homes.claim(home)
    with contextlib.closing(Store(home)) as store:
        store.database.check()
        store.set_quota({"westeurope": {}})
    with ended_with_us(home):
        yield home


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[3] ^= 0xFF
    file.write_bytes(data)


def cut(file: Path) -> None:
    os.truncate(file, 5000)


def overwrite_a_page(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096 : 4 * 4096] = b"\xa5" * (3 * 4096)
    file.write_bytes(data)


DAMAGES = (flip, cut, overwrite_a_page)
WAYS_OUT = (["sandbox", "reset", "--yes"], ["sandbox", "down", "--remove", "--yes"], ["down", "-y"])


@pytest.mark.parametrize(("damage", "way_out"), [*zip(DAMAGES, WAYS_OUT, strict=True)])
def test_damaged_tables_are_named_and_every_way_out_is_open(
    home: Path, capfd: pytest.CaptureFixture[str], damage: Callable[[Path], None], way_out: list[str]
) -> None:
    table = home / "sandbox" / "state.db"
    damage(table)
    with pytest.raises(daemon.SandboxError) as refused:
        daemon.up(home)
    assert str(refused.value).startswith(f"{table}, the tables of the sandbox, is damaged (")
    assert "`amlstack sandbox reset`" in str(refused.value)
    assert f"cp {table}.bak {table}" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert main(way_out) == 0
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err
    assert not table.exists()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda one: one.__name__)
def test_the_good_copy_is_kept_and_can_be_gone_on_from(home: Path, damage: Callable[[Path], None]) -> None:
    table = home / "sandbox" / "state.db"
    with contextlib.closing(Database(table)) as tables:
        tables.check()
    damage(table)
    with pytest.raises(StateError, match="is damaged"), contextlib.closing(Database(table)) as tables:
        tables.check()
    shutil.copy(f"{table}.bak", table)
    with contextlib.closing(Store(home)) as store:
        assert store.quota() == {"westeurope": {}}


@pytest.mark.parametrize(
    "verb", [["sandbox", "status"], ["sandbox", "evict", "x"], ["report", "x"], ["status", "--sandbox"]]
)
def test_no_verb_shows_a_traceback_of_damaged_tables(
    home: Path, capfd: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    flip(home / "sandbox" / "state.db")
    assert main(verb) in {1, 2}
    shown = capfd.readouterr()
    assert "is damaged" in shown.out + shown.err
    assert "Traceback" not in shown.out + shown.err


def too_much(tables: Database) -> None:
    with tables.transaction():
        tables.execute("INSERT INTO meta VALUES ('small', '1')")
        tables.execute("INSERT INTO big VALUES (?)", b"x" * 100_000)


def test_what_a_full_disk_does_not_take_is_taken_back_whole(home: Path) -> None:
    with contextlib.closing(Database(home / "sandbox" / "state.db")) as tables:
        tables.execute("CREATE TABLE big (content BLOB)")
        (pages,) = tables.all("PRAGMA page_count")[0]
        tables.execute(f"PRAGMA max_page_count={pages + 4}")
        with pytest.raises(StateError, match="the disk is full"):
            too_much(tables)
        assert tables.all("SELECT * FROM meta WHERE key = 'small'") == []
        with tables.transaction():
            tables.execute("INSERT INTO meta VALUES ('later', '1')")
        assert len(tables.all("SELECT * FROM meta WHERE key = 'later'")) == 1


@pytest.mark.parametrize("byte", [b"\xff", b"\xe4" * 400], ids=["one", "many"])
def test_a_text_of_the_tables_that_is_none_is_damage(home: Path, byte: bytes) -> None:
    with contextlib.closing(Database(home / "sandbox" / "state.db")) as tables:
        tables.execute("INSERT INTO meta VALUES ('flipped', CAST(? AS TEXT))", b"a" * 40 + byte + b"secret")
        with pytest.raises(StateError, match=r"is damaged \(") as refused:
            tables.all("SELECT * FROM meta")
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("verb", "code"),
    [
        (["sandbox", "status"], 1), (["sandbox", "evict", "x"], 1), (["report", "x"], 2), (["diagnose", "x"], 2),
        (["sandbox", "reset", "--yes"], 0), (["sandbox", "down", "--remove", "--yes"], 0), (["down", "-y"], 0),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("flipped", [("body", '{"a'), ("error", '{"kode": 1}')], ids=lambda one: one[0])
def test_a_record_that_is_not_what_was_stored_is_damage_with_a_way_out(
    home: Path, verb: list[str], code: int, flipped: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    with contextlib.closing(Store(home)) as store:
        store.jobs.add("/w", "x", {"properties": {}})
        store.database.execute(f"UPDATE jobs SET status = 'Running', {flipped[0]} = ?", flipped[1])
    assert main(verb) == code
    shown = capfd.readouterr()
    assert "Traceback" not in shown.out + shown.err
    if code:
        assert "a record is not what was stored" in " ".join((shown.out + shown.err).split())


def test_a_header_of_the_tables_that_is_wrong_is_damage(home: Path) -> None:
    table = home / "sandbox" / "state.db"
    data = bytearray(table.read_bytes())
    data[47] = 9  # the format of its schema, which is 1 to 4
    table.write_bytes(data)
    with pytest.raises(StateError, match=r"is damaged \(unsupported file format\)"):
        Database(table)


def test_other_errors_of_the_tables_stay_what_they_are(home: Path) -> None:
    with (
        contextlib.closing(Database(home / "sandbox" / "state.db")) as tables,
        pytest.raises(sqlite3.OperationalError, match="no such table"),
    ):
        tables.all("SELECT * FROM nowhere")


def test_nothing_is_begun_on_a_disk_without_room(
    home: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    usage = shutil.disk_usage(home)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    assert main(["sandbox", "up"]) == 1
    assert f"{home} lies on a disk with 1.0 MiB left; at least 32 MiB are needed" in capfd.readouterr().err
    assert main(["sandbox", "reset", "--yes"]) == 0


SMALL_DISK = """
set -e
mount -t tmpfs -o size=1m none "$1"
export AMLSTACK_HOME="$1/home"
set +e
"$2" -m amlstack.cli.main up --yes; echo "up $?"
"$2" -m amlstack.cli.main down --yes; echo "down $?"
"$2" -c 'import os, pathlib; from amlstack.base import home; home.claim(pathlib.Path(os.environ["AMLSTACK_HOME"]))'
mount -o remount,ro "$1"
for words in "up --yes" "sandbox up" "down --yes" "sandbox status"; do
  "$2" -m amlstack.cli.main $words; echo "read-only $words $?"
done
"""


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of verbs on a disk of 1 MiB, and on the same when it is read-only."""
    try:
        allowed = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        pytest.skip("this machine lets nobody mount a small disk in a namespace of its own (unshare -m)")
    place = tmp_path_factory.mktemp("disk")
    words = ["unshare", "-m", "bash", "-c", SMALL_DISK, "bash", str(place), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout + done.stderr


def test_a_full_disk_is_told_at_once_and_down_gets_out(small_disk: str) -> None:
    assert "lies on a disk with 1.0 MiB left" in small_disk
    assert "up 1\n" in small_disk
    assert "down 0\n" in small_disk


def test_a_read_only_home_is_a_sentence(small_disk: str) -> None:
    assert "Traceback" not in small_disk
    assert "Read-only file system. Name a folder that can be written, then run this again." in small_disk
    assert "read-only up --yes 1\n" in small_disk
    assert "read-only sandbox up 1\n" in small_disk
    assert "read-only sandbox status 0\n" in small_disk


def backend(folder: Path, **found: Any) -> Path:
    """A file backend with a stack ``s``: its state, the copy beside it, and the copies of each update."""
    stacks = folder / ".pulumi" / "stacks" / "project"
    kept = folder / ".pulumi" / "backups" / "project" / "s"
    stacks.mkdir(parents=True)
    kept.mkdir(parents=True)
    places = {
        "state": stacks / "s.json",
        "beside": stacks / "s.json.bak",
        "older": kept / "s.1.json",
        "newer": kept / "s.2.json",
    }
    for name, content in found.items():
        places[name].write_text(content)
    return stacks / "s.json"


def state(number: int) -> str:
    return json.dumps({"version": 3, "checkpoint": {"latest": {"number": number}}})


@pytest.mark.parametrize(
    ("found", "number"),
    [
        ({"beside": state(2), "newer": state(1)}, 2),
        ({"beside": "", "older": state(0), "newer": state(1)}, 1),
        ({"beside": state(2)[:20], "newer": "{}", "older": state(0)}, 0),
    ],
)
def test_a_state_that_is_cut_off_is_mended_from_the_latest_good_copy(
    tmp_path: Path, found: dict[str, str], number: int
) -> None:
    file = backend(tmp_path, state=state(3)[:30], **found)
    (told,) = engine.mend(tmp_path)
    assert "the state of the stack `s` could not be read (it ended after 30 bytes)" in told
    assert json.loads(file.read_text())["checkpoint"]["latest"]["number"] == number
    assert file.with_name("s.json.broken").read_text() == state(3)[:30]
    assert engine.mend(tmp_path) == ()


def test_a_state_without_a_good_copy_stays_and_is_named(tmp_path: Path) -> None:
    file = backend(tmp_path, state="{", beside="")
    with pytest.raises(EngineError, match=r"cannot be read .* and no copy of it can.*`amlstack down`"):
        engine.mend(tmp_path)
    assert file.read_text() == "{"


def test_a_file_is_written_whole_or_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    files.write_whole(file, "first", mode=0o640)
    files.write_whole(file, b"second")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("second", 0o640)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        files.write_whole(file, "third")
    assert file.read_text() == "second"
    assert list(tmp_path.iterdir()) == [file]


def test_what_others_may_read_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    homes.claim(home)
    file = backend(home / "pulumi", state=state(1), beside=state(0))
    outside = tmp_path / "outside"
    outside.write_text("")
    outside.chmod(0o644)
    (file.parent / "link").symlink_to(outside)
    homes.close(home)
    found = [path for path in (home / "pulumi", *(home / "pulumi").rglob("*")) if not path.is_symlink()]
    assert [path for path in found if path.stat().st_mode & 0o077] == []
    assert outside.stat().st_mode & 0o777 == 0o644
