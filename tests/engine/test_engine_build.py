"""Without a release the engine is built, once, and whatever ends a build leaves no half of one."""

from __future__ import annotations

import fcntl
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.engine.engine_machine import PINNED

if TYPE_CHECKING:
    from tests.support.engine.engine_machine import Machine

pytestmark = pytest.mark.tools  # each builds an engine, with a stand-in for go


def test_without_release_the_engine_is_built_once_and_then_needs_no_go(machine: Machine) -> None:
    machine.install_go()
    assert machine.found() == ("build", PINNED)
    assert sorted(machine.builds) == ["pulumi", "pulumi-language-python"]
    (machine.root / "bin" / "go").unlink()
    done = machine.run()
    assert (done.returncode, done.stderr) == (0, "")
    assert len(machine.builds) == 2


def test_a_cached_engine_on_path_keeps_its_true_source(machine: Machine) -> None:
    machine.install_go()
    machine.environ["PATH"] = f"{machine.run().stdout.strip()}:{machine.root / 'bin'}"
    assert machine.found() == ("build", PINNED)


def test_an_engine_that_lost_a_file_is_made_again(machine: Machine) -> None:
    machine.install_go()
    folder = Path(machine.run().stdout.strip())
    (folder / "pulumi").unlink()
    assert machine.found() == ("build", PINNED)
    assert len(machine.builds) == 4


def test_two_at_once_build_once(machine: Machine) -> None:
    machine.install_go()
    gate = machine.root / "gate"
    os.mkfifo(gate)
    machine.environ["FAKE_GO_GATE"] = str(gate)
    # The gate opens when the first build has started; it has a byte for each of its two parts.
    with machine.start() as first, gate.open("wb", buffering=0) as through:
        machine.environ.pop("FAKE_GO_GATE")
        with machine.start() as second:
            assert second.stderr is not None
            while "waiting for it" not in (line := second.stderr.readline()):
                assert line, "the second one did not wait"
            through.write(b"..")
            answers = {one.communicate()[0] for one in (first, second)}
            assert (first.returncode, second.returncode) == (0, 0)
    assert len(answers) == 1
    assert sorted(machine.builds) == ["pulumi", "pulumi-language-python"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_build_that_is_ended_leaves_no_half_engine_and_the_next_one_cleans_up(
    machine: Machine, number: signal.Signals
) -> None:
    machine.install_go()
    gate = machine.root / "gate"
    os.mkfifo(gate)
    machine.environ["FAKE_GO_GATE"] = str(gate)
    with machine.start() as process, gate.open("w"):
        process.send_signal(number)
        process.communicate()
    assert process.returncode != 0
    assert [name for name in machine.cached if not name.endswith(".tmp")] == []
    if number is not signal.SIGKILL:
        assert machine.cached == []

    machine.environ.pop("FAKE_GO_GATE")
    assert machine.found() == ("build", PINNED)
    assert len(machine.cached) == 1


def test_the_lock_of_a_dead_process_does_not_block(machine: Machine) -> None:
    machine.install_go()
    machine.run()
    (lock,) = machine.root.glob("cache/engine/.*build*.lock")
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free: the file alone is no lock


def test_no_go_names_what_is_missing_and_every_way_out(machine: Machine) -> None:
    done = machine.run()
    assert done.returncode == 1
    for words in ("not found on PATH", "apt-get install golang", "Pulumi CLI, 3.230 or newer", "get.pulumi.com"):
        assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_go_without_toolchain_download_is_refused_by_its_version(machine: Machine) -> None:
    machine.install_go()
    machine.environ["FAKE_GO_VERSION"] = "go1.19.8"
    done = machine.run()
    assert done.returncode == 1
    assert "is go1.19.8; building the engine needs Go 1.21 or newer" in done.stderr
    assert machine.builds == []


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("x: verifying module: checksum mismatch", "was refused"),
        ("write /tmp/x: no space left on device", "disk is full"),
        ("dial tcp: lookup proxy.golang.org: no such host", "Set GOPROXY"),
        ("internal compiler error", "Run again"),
    ],
)
def test_a_failed_build_shows_its_last_words_and_a_remedy(machine: Machine, complaint: str, remedy: str) -> None:
    machine.install_go()
    machine.environ["FAKE_GO_FAILS"] = complaint
    done = machine.run()
    assert done.returncode == 1
    assert complaint in done.stderr
    assert remedy in done.stderr
    assert machine.cached == []
