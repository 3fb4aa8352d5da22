"""Files of a job on this machine are its owner's alone, and nobody else can foresee their paths."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.sandbox.store import folders
from amlstack.sandbox.store.folders import folder

if TYPE_CHECKING:
    import pytest

    from tests.support.runner.runner_lab import Lab

SHOW = "umask; echo $TMPDIR; stat -c %a $(dirname $TMPDIR); echo x > outputs/made; stat -c %a outputs/made"


def test_a_job_has_a_temporary_folder_with_an_unpredictable_name(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    tempdirs = []
    for name in ("first", "second"):
        key = lab.job(SHOW, name=name)
        job = lab.run(key)
        assert job.status == "Completed", job.error
        umask, place, mode, made = lab.log(key).splitlines()
        assert (umask, mode, made) == ("0022", "700", "644")
        tempdirs.append(Path(place).parent)
    assert tempdirs[0] != tempdirs[1]
    assert {path.parent for path in tempdirs} == {tmp_path}
    assert not list(tmp_path.glob("amlstack-*"))


def test_a_folder_that_an_earlier_attempt_left_is_removed_and_a_foreign_one_is_not(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = folders.make_temporary(lab.home, "job")
    again = folders.make_temporary(lab.home, "job")
    assert (left.exists(), again.is_dir()) == (False, True)

    precious = tmp_path / "precious"
    precious.mkdir()
    again.rmdir()
    again.symlink_to(precious)
    folders.remove_temporary(lab.home, "job")
    assert precious.is_dir()
    folders.remove_temporary(lab.home, "job")


def test_state_logs_and_outputs_are_their_owners_alone(lab: Lab) -> None:
    job = lab.job("cat data.txt > outputs/copy", codeId=lab.code({"data.txt": "mine"}))
    assert lab.run(job).status == "Completed"
    top = folder(lab.home)
    assert stat.S_IMODE(top.stat().st_mode) == 0o700
    assert stat.S_IMODE((top / "blobs").stat().st_mode) == 0o700
    by_the_service = [lab.folder(job) / name for name in ("report.json", "user_logs/std_log_process_00.txt")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in by_the_service} == {0o600}
