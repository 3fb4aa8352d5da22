"""Who follows a job is woken by changes of its files, and misses none."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from amlstack.cli.watch import Watch

if TYPE_CHECKING:
    from pathlib import Path


def test_what_changed_since_the_look_is_told_at_once(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("one\n")
    with Watch() as watch:
        watch.cover([tmp_path])
        with log.open("a") as file:
            file.write("two\n")
        (tmp_path / "new").mkdir()
        assert watch.wait() == {"log.txt", "new"}


def test_a_change_wakes_who_waits(tmp_path: Path) -> None:
    with Watch() as watch:
        watch.cover([tmp_path])
        later = threading.Thread(target=(tmp_path / "made").touch)
        later.start()
        woken = None
        while woken is None:  # a busy machine may let the wait run out once
            woken = watch.wait()
        later.join()
    assert woken == {"made"}


def test_a_folder_that_is_made_anew_is_watched_again(tmp_path: Path) -> None:
    logs = tmp_path / "user_logs"
    with Watch() as watch:
        watch.cover([tmp_path, logs])  # the second is not there yet
        logs.mkdir()
        assert watch.wait() == {"user_logs"}
        watch.cover([tmp_path, logs])
        (logs / "a").touch()
        told = watch.wait()
        assert told is not None
        assert "a" in told
        (logs / "a").unlink()
        logs.rmdir()
        logs.mkdir()
        watch.cover([tmp_path, logs])
        (logs / "b").touch()
        told = watch.wait()
        assert told is not None
        assert {"b", "user_logs"} <= told


def test_without_inotify_it_is_looked_now_and_then(tmp_path: Path) -> None:
    with Watch() as watch:
        pass  # closed: as on a machine that has no instance left
    watch.cover([tmp_path])
    assert watch.wait() is None
