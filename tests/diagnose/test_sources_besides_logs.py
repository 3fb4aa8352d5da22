"""Flight recorders' dumps, the service's own errors, archives and several attempts of one run."""

from __future__ import annotations

import gzip
import json
import pickle
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.diagnose import diagnose, read
from amlstack.diagnose.reading import files
from amlstack.diagnose.reading.records import azure_errors, flight_recorder
from tests.support.diagnose.log_texts import CLOSED, steps, traceback

if TYPE_CHECKING:
    from pathlib import Path

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


def dump(last: int, pending: int | None, *, group: str = "0", members: str = "[0, 1, 2, 3]") -> dict[str, Any]:
    """As torch writes it: the last collectives of one group, those from ``pending`` on without an end."""
    entries = [
        {
            "process_group": (group, "default_pg"),
            "collective_seq_id": number,
            "profiling_name": "nccl:all_reduce",
            "state": "scheduled" if pending is not None and number >= pending else "completed",
            "retired": pending is None or number < pending,
            "is_p2p": False,
        }
        for number in range(max(1, last - 9), last + 1)
    ]
    return {"version": "2.9", "pg_config": {group: {"name": group, "desc": "g", "ranks": members}}, "entries": entries}


def write(folder: Path, dumps: dict[int, dict[str, Any]], *, as_json: bool) -> None:
    for rank, data in dumps.items():
        if as_json:
            (folder / f"nccl_trace_rank_{rank}.json").write_text(json.dumps(data))
        else:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(data, protocol=2))


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("late", "ranks"),
    [
        ({2: dump(40, None)}, [2]),  # it never enqueued number 41
        ({2: dump(44, 39)}, [2]),  # it is still in number 39, which the others have left
        ({1: dump(40, None), 2: dump(40, None)}, [1, 2]),
    ],
)
def test_the_ranks_that_the_others_wait_for_are_named(
    late: dict[int, dict[str, Any]], ranks: list[int], as_json: bool, tmp_path: Path
) -> None:
    write(tmp_path, {rank: late.get(rank, dump(44, 41)) for rank in range(4)}, as_json=as_json)
    verdict = diagnose([tmp_path])
    assert verdict.cause == "rank-did-not-join"
    assert verdict.rank == (ranks[0] if len(ranks) == 1 else None)
    assert verdict.rank is not None or [each.rank for each in verdict.pointers] == ranks
    assert "nccl:all_reduce number 41" in (verdict.text or "")


def test_a_rank_without_a_dump_is_missing(tmp_path: Path) -> None:
    write(tmp_path, {rank: dump(44, 41) for rank in range(3)}, as_json=False)
    assert diagnose([tmp_path]).rank == 3


def test_who_waits_for_another_group_is_not_to_blame(tmp_path: Path) -> None:
    """Rank 1 did not come to the group of 0 and 1, as it waits for rank 2 in another one."""
    first = {"members": "[0, 1]", "group": "5"}
    second = {"members": "[1, 2]", "group": "6"}
    both = dump(40, None, **first)
    other = dump(9, 9, **second)
    both["pg_config"] |= other["pg_config"]
    both["entries"] += other["entries"]
    write(tmp_path, {0: dump(41, 41, **first), 1: both, 2: dump(8, None, **second)}, as_json=False)
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank) == ("rank-did-not-join", 2)


@pytest.mark.parametrize("pending", [None, 41])
def test_ranks_that_came_equally_far_name_nobody(pending: int | None, tmp_path: Path) -> None:
    write(tmp_path, {rank: dump(44, pending) for rank in range(4)}, as_json=False)
    assert not diagnose([tmp_path]).found


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("this must never be called",)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_dump_that_would_call_something_is_not_read(
    protocol: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = pickle.dumps({"pg_config": {}, "entries": [Harmful()]}, protocol=protocol)
    assert flight_recorder.looks_like_one(content)
    assert flight_recorder.parse("nccl_trace_rank_0", content) is None
    (tmp_path / "nccl_trace_rank_0").write_bytes(content)
    read([tmp_path])
    assert "never" not in capsys.readouterr().out


SERVICE = {
    "error": {
        "code": "UserError",
        "message": "AzureMLCompute job failed",
        "innerError": {"code": "ScriptExecution", "innerError": {"code": "StreamAccess.NotFound"}},
        "details": [{"code": "UserError", "message": "The requested stream was not found."}],
    }
}


def test_the_services_codes_within_codes_are_one() -> None:
    found = azure_errors.found_in(SERVICE)
    assert found is not None
    assert [each.code for each in found] == ["UserError.ScriptExecution.StreamAccess.NotFound", "UserError.UserError"]


@pytest.mark.parametrize(
    ("record", "cause"),
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


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '{"error": null, "status": "Completed"}', "[1, 2]", "{", '{"events": []}']
)
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
