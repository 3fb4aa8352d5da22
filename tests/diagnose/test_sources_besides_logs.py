"""The service's own errors, archives and several attempts of one run."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from amlstack.diagnose import diagnose, judge, read
from amlstack.diagnose.reading import files, records
from tests.support.diagnose.log_texts import CLOSED, steps, traceback
from tests.support.rows import for_each

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


SERVICE = {
    "error": {
        "code": "UserError",
        "message": "AzureMLCompute job failed",
        "innerError": {"code": "ScriptExecution", "innerError": {"code": "StreamAccess.NotFound"}},
        "details": [{"code": "UserError", "message": "The requested stream was not found."}],
    }
}


def test_the_services_codes_within_codes_are_one() -> None:
    found = records.found_in(SERVICE)
    assert found is not None
    assert [each.code for each in found] == ["UserError.ScriptExecution.StreamAccess.NotFound", "UserError.UserError"]


@for_each(
    "record, cause",
    [
        (SERVICE, "data-not-found"),
        ({"name": "j", "status": "Failed", **SERVICE}, "data-not-found"),
        ({"properties": {"status": "Failed", **SERVICE}}, "data-not-found"),
        ({"error": {"code": "UserError", "message": "Image build failed. See the log."}}, "image-build"),
        ({"error": {"error": {"code": "ClusterMinNodesExceedsCoreQuota", "message": "too many"}}}, "quota"),
        (
            {"events": [{"name": "NodePreempted", "message": "Node 3 got preempted"}]},
            "node-preempted",
        ),
    ],
)
def test_the_services_own_record_is_read(record: dict[str, Any], cause: str, tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text(json.dumps(record))
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.file) == (cause, "job.json")


@for_each("text", ['{"a": 1}', '{"error": null, "status": "Completed"}', "[1, 2]", "{", '{"events": []}'])
def test_other_json_is_no_log(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    (tmp_path / "std_log.txt").write_text(steps(3))
    found = read([tmp_path])
    assert [log.name for log in found.logs] == ["std_log.txt"]
    assert not found.findings


def test_an_archive_is_read_like_the_folder_in_it(tmp_path: Path) -> None:
    archive = tmp_path / "ExperimentRun.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("run/user_logs/std_log_process_00.txt", steps(3) + traceback(CLOSED))
        packed.writestr("run/user_logs/std_log_process_01.txt.gz", gzip.compress((steps(3) + traceback(OOM)).encode()))
        packed.writestr("run/outputs/model.txt", traceback("ValueError: not a log"))
    for path in (archive, tmp_path):
        verdict = diagnose([path])
        assert (verdict.cause, verdict.rank, verdict.files) == ("cuda-out-of-memory", 1, 2)


@for_each(
    "form, suffix",
    [("tar", ".tar"), ("gztar", ".tar.gz"), ("gztar", ".tgz"), ("bztar", ".tar.bz2"), ("xztar", ".tar.xz")],
)
def test_a_tar_is_read_like_the_folder_in_it(form: str, suffix: str, tmp_path: Path) -> None:
    folder, archive = tmp_path / "run", tmp_path / "packed" / f"logs{suffix}"
    texts = {
        "user_logs/std_log_process_00.txt": steps(3) + traceback(CLOSED),
        "user_logs/std_log_process_01.txt": steps(3) + traceback(OOM),
        "outputs/model.txt": traceback("ValueError: not a log"),
    }
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "user_logs" / "std_log_process_09.txt").symlink_to("/etc/hostname")
    archive.parent.mkdir()
    Path(shutil.make_archive(str(tmp_path / "made"), form, tmp_path, "run")).rename(archive)
    for path in (archive, archive.parent):
        verdict = diagnose([path])
        assert (verdict.cause, verdict.rank, verdict.files) == ("cuda-out-of-memory", 1, 2)
        assert str(verdict.file).endswith("run/user_logs/std_log_process_01.txt")


@pytest.mark.parametrize("whole", [True, False])
def test_a_packed_tar_that_is_too_large_is_a_finding_and_others_are_read(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_UNPACKED", 1 << 20)
    (tmp_path / "big").mkdir()
    (tmp_path / "big" / "rank_0.log").write_text("step 1 loss 2.0\n" * 100_000)
    archive = Path(shutil.make_archive(str(tmp_path / "run" / "logs"), "gztar", tmp_path, "big"))
    (tmp_path / "run" / "std_log_process_1.txt").write_text(traceback(OOM))
    found = read([archive.parent if whole else archive])
    assert [finding.code for finding in found.findings] == ["archive-too-large"]
    assert [log.rank for log in found.logs] == ([1] if whole else [])


def many(folder: Path, number: int, form: str) -> Path:
    """So many small logs, in a folder or in an archive of a form."""
    logs = folder / f"logs-{number}"
    logs.mkdir(parents=True)
    for rank in range(number):
        (logs / f"rank_{rank}.log").write_text("a")
    return logs if form == "folder" else Path(shutil.make_archive(str(folder / f"{form}-{number}"), form, logs))


@pytest.mark.parametrize("form", ["folder", "tar", "gztar", "zip"])
def test_twice_as_many_logs_are_twice_the_work(form: str, tmp_path: Path) -> None:
    few, twice = many(tmp_path, 40, form), many(tmp_path, 80, form)

    def work(path: Path) -> int:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            assert not judge(read([path])).found
        finally:
            sys.setprofile(None)
        return calls

    work(few)  # what is made once and kept
    assert work(twice) < 2.2 * work(few)


@for_each("form", ["tar", "gztar", "zip"])
@for_each("inside", [True, False])
def test_an_archive_that_was_cut_off_is_named(form: str, inside: bool, tmp_path: Path) -> None:
    archive = many(tmp_path / "run", 40, form)
    content = archive.read_bytes()
    shutil.rmtree(tmp_path / "run" / "logs-40")
    archive.write_bytes(content[: len(content) // 2 + 7])
    found = read([tmp_path / "run" if inside else archive])
    assert [each.code for each in found.findings] == ["archive-damaged"]
    assert "is damaged or was cut off" in str(found.findings[0])
    assert len(found.logs) < 40
    assert form == "zip" or found.logs


@pytest.mark.parametrize("cut", [0, 60, 200])
def test_a_tar_that_was_cut_off_is_no_traceback(cut: int, tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as packed:
        packed.add(Path(__file__), "std_log_process_00.txt")
    (tmp_path / "logs.tgz").write_bytes(content.getvalue()[:cut])
    found = read([tmp_path / "logs.tgz"])
    assert not any(log.events for log in found.logs)


def test_a_damaged_archive_is_a_finding_and_no_traceback(tmp_path: Path) -> None:
    archive = tmp_path / "run.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("std_log_process_00.txt", traceback(OOM))
    content = archive.read_bytes()
    archive.write_bytes(content.replace(b"CUDA out of memory", b"CUDA out of mem0ry", 1))
    found = read([archive])
    assert [each.code for each in found.findings] == ["unreadable-file"]


@pytest.mark.parametrize(("name", "cause"), [("attempt_{}", "cuda-out-of-memory"), ("retry-{}", "cuda-out-of-memory")])
def test_the_last_attempt_decides(name: str, cause: str, tmp_path: Path) -> None:
    for attempt, exception in enumerate(("ValueError: the first attempt", OOM)):
        folder = tmp_path / name.format(attempt) / "0"
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(steps(3) + traceback(exception))
    assert diagnose([tmp_path]).cause == cause


def test_files_read_by_several_processes_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in range(6):
        text = steps(20) + traceback(CLOSED if rank != 4 else OOM)
        (tmp_path / f"std_log_process_{rank:02d}.txt").write_text(text)
    alone = read([tmp_path])
    monkeypatch.setattr(files, "WORTH_PROCESSES", 0)
    together = read([tmp_path])
    assert together == alone
    assert together.logs[4].events[0].signature is alone.logs[4].events[0].signature
