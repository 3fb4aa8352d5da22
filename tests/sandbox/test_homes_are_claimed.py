"""The sandbox's home: a folder of others is neither used nor removed, and of our own only what a sandbox wrote goes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from amlstack.base import home as homes
from amlstack.cli.main import main
from amlstack.sandbox.server import daemon
from amlstack.sandbox.store.store import Holdings, Store, find_holdings

WORKSPACE = "/subscriptions/s/resourceGroups/rehearsal/providers/Microsoft.MachineLearningServices/workspaces/w"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that AMLSTACK_HOME names; it does not exist."""
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write(folder: Path, *files: str) -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text("precious")


def content(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "files",
    [("thesis.txt",), ("sandbox/notes.txt", "pulumi/mine.txt"), ("sandbox.lock", "other.txt"), ("sandbox.lock",)],
    ids=["unknown file", "known names alone prove nothing", "lock beside an unknown file", "a lock with content"],
)
@pytest.mark.parametrize(
    "verb", [("up",), ("down",), ("down", "--yes"), ("sandbox", "up"), ("sandbox", "reset"), ("sandbox", "serve")]
)
def test_a_folder_of_others_is_refused_and_left_as_it_is(
    files: tuple[str, ...], verb: tuple[str, ...], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write(folder, *files)
    before = content(folder)

    code = main(verb)

    seen = "".join(capfd.readouterr())
    assert content(folder) == before
    assert code == 1
    assert "Set AMLSTACK_HOME to a new or empty folder" in seen


def test_a_home_that_is_a_file_is_refused_in_one_line(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder.write_text("precious")

    assert main(["up"]) == 1

    assert f"{folder} cannot be used: Not a directory." in capfd.readouterr().out
    assert folder.read_text() == "precious"


@pytest.mark.parametrize("link", [False, True], ids=["named", "behind a link"])
def test_a_home_in_shared_memory_is_refused_since_nodes_do_not_see_it(
    link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    home = Path("/dev/shm/amlstack-nobody-makes-this")
    if link:
        (tmp_path / "link").symlink_to("/dev/shm")
        home = tmp_path / "link" / home.name
    monkeypatch.setenv("AMLSTACK_HOME", str(home))

    assert main(["sandbox", "up"]) == 1

    assert "Set AMLSTACK_HOME to a folder on a disk" in "".join(capfd.readouterr())
    assert not home.exists()


def test_several_processes_claim_a_new_home_together(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: homes.claim(folder), range(8)))

    assert homes.is_ours(folder)
    assert [path.name for path in folder.iterdir()] == [homes.MARKER]
    assert homes.remove(folder) == ()
    assert not folder.exists()


def test_a_home_that_another_process_claims_meanwhile_is_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = homes._entries

    def claimed_by_another(home: Path) -> list[str]:
        monkeypatch.setattr(homes, "_entries", look)
        homes.claim(home)
        (home / homes.LOCK).touch()
        return look(home)

    monkeypatch.setattr(homes, "_entries", claimed_by_another)

    homes.claim(folder)

    assert homes.is_ours(folder)


def test_only_what_a_sandbox_writes_is_removed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    homes.claim(folder)
    write(folder, "sandbox/serve.log", "pulumi/state", "notes.txt")
    elsewhere = folder.parent / "elsewhere"
    write(elsewhere, "big.bin")
    (folder / "pulumi-home").symlink_to(elsewhere)

    assert main(["down"]) == 0

    assert f"{folder} stays with what no sandbox wrote: notes.txt" in capfd.readouterr().out
    assert set(content(folder)) == {homes.MARKER, "notes.txt"}
    assert content(elsewhere) == {"big.bin": "precious"}
    homes.check(folder)  # it is ours still: the next `up` may use it


def test_a_folder_that_somebody_else_made_stays_empty(folder: Path) -> None:
    folder.mkdir()
    homes.claim(folder)
    write(folder, "sandbox/serve.log")

    assert homes.remove(folder) == ()

    assert list(folder.iterdir()) == []


def test_what_would_be_lost_is_counted_and_named(folder: Path) -> None:
    assert find_holdings(folder) == Holdings()
    homes.claim(folder)
    store = Store(folder)
    for number in range(7):
        store.jobs.add(WORKSPACE, f"job-{number}", {"properties": {}})
        if number < 6:
            store.jobs.move(f"job-{number}", "Completed")
    store.close()
    write(folder, "sandbox/mounts/account/blobs/checkpoints/gpt/ckpt.pt", "sandbox/mounts/account/blobs/x/ckpt.pt")

    lines = list(find_holdings(folder).lines())

    assert lines == [
        "1 run under way, cancelled: job-6",
        "6 runs with record, logs and outputs: job-1, job-2, job-3, job-4, job-5 and 1 more",
        "2 files in mounted outputs, 0.0 MB (checkpoints lie there): account/blobs/checkpoints/gpt, account/blobs/x",
    ]


@pytest.mark.parametrize(
    ("terminal", "answer", "words", "gone"),
    [
        (True, False, (), False),
        (True, True, (), True),
        (True, False, ("--yes",), True),
        (False, False, (), True),
    ],
    ids=["no", "yes", "not asked", "from a script"],
)
@pytest.mark.parametrize("verb", [("down",), ("sandbox", "reset"), ("sandbox", "down", "--remove")])
def test_what_is_lost_is_asked_about_on_a_terminal(
    *,
    terminal: bool,
    answer: bool,
    words: tuple[str, ...],
    gone: bool,
    verb: tuple[str, ...],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked: list[str] = []
    monkeypatch.setattr("amlstack.cli.console.on_a_terminal", lambda: terminal)

    def given(question: str) -> bool:
        asked.append(question)
        return answer

    monkeypatch.setattr("amlstack.cli.console.confirmed", given)
    homes.claim(folder)
    write(folder, "sandbox/mounts/account/blobs/checkpoints/ckpt.pt")

    code = main([*verb, *words])

    assert "1 file in mounted outputs" in capfd.readouterr().out
    assert (folder / "sandbox").exists() is not gone
    assert code == (0 if gone else 1)
    assert bool(asked) is (terminal and not words)
    assert daemon.down(folder) == 0
