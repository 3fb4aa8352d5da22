from __future__ import annotations

# ruff: noqa: E501
import bz2
import gzip
import json
import lzma
import random
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.diagnose import diagnose, read
from amlstack.diagnose.reading.files import node_of, rank_of
from tests.support.diagnose.log_texts import CLOSED, steps, traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

OOM = "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"


@for_each(
    "name, rank",
    [
        ("user_logs/std_log_process_03.txt", 3),
        ("azureml-logs/70_driver_log_12.txt", 12),
        ("azureml-logs/70_driver_log.txt", None),
        ("user_logs/std_log.txt", None),
        ("user_logs/mpi_log.txt", None),
        ("azureml-logs/55_azureml-execution-tvmps_0a1b_d.txt", None),
        ("azureml-logs/20_image_build_log.txt", None),
        ("user_logs/rank_05_stderr.txt", 5),
        ("torchelastic_ab12/attempt_0/2/stderr.log", 2),
        ("torchelastic_ab12/attempt_0/2/error.json", 2),
        ("out/1/rank.7/stderr", 7),
        ("worker-4.log", 4),
        ("slurm-81231.out", None),
        ("train_2024.log", None),
        ("0.log", 0),
    ],
)
def test_rank_of_a_log_follows_from_its_name(name: str, rank: int | None, tmp_path: Path) -> None:
    assert rank_of(tmp_path / name, tmp_path) == rank


@for_each(
    "names, ranks",
    [
        (["044.txt"], [None]),
        (["rank_3.log"], [None]),
        (["43.log", "44.log"], [None, None]),
        (["0.log", "1.log"], [0, 1]),
        (["1.log", "2.log"], [1, 2]),
        (["std_log_process_05.txt"], [5]),
    ],
)
def test_number_in_a_name_is_a_rank_only_among_those_of_a_run(
    names: list[str], ranks: list[int | None], tmp_path: Path
) -> None:
    for name in names:
        (tmp_path / name).write_text(traceback(OOM))
    assert [log.rank for log in read([tmp_path]).logs] == ranks
    assert [log.rank for log in read([tmp_path / name for name in names]).logs] == ranks


@pytest.mark.parametrize(("name", "node"), [("node-1/out.log", "1"), ("ip-10-0-0-4/out.log", "ip-10-0-0-4"), ("a/out.log", None)])  # fmt: skip
def test_node_of_a_log_follows_from_its_folder(name: str, node: str | None, tmp_path: Path) -> None:
    assert node_of(tmp_path / name, tmp_path) == node


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_encodings_are_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "std_log_process_01.txt").write_bytes(f"Zürich\n{OOM}\n".encode(encoding))
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank, verdict.line) == ("cuda-out-of-memory", 1, 2)


@for_each("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@for_each("name", ["std_log_process_01.txt", "std_log_process_01.txt.gz", "std_log_process_01.txt.bz2"])
def test_packed_logs_are_known_by_their_content(pack: Any, name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pack(f"{OOM}\n".encode()))
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank, verdict.line) == ("cuda-out-of-memory", 1, 1)


@pytest.mark.parametrize("content", [bytes(9999) + OOM.encode(), OOM.encode() + bytes(99)], ids=["before", "behind"])
def test_a_hole_of_zero_bytes_hides_no_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "std_log_process_01.txt").write_bytes(content)
    assert diagnose([tmp_path]).text == OOM


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (random.Random(7).randbytes(4000), "is not text"),
        (bytes(4000), "holds no log"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x03\0>\0\x01" * 40, "is not text"),
        (b"\x28\xb5\x2f\xfd\x24\x10\x81", "unpack it with `zstd -d`"),
        (bz2.compress(OOM.encode())[:30], "cannot be read"),
        (b"", "holds no log"),
    ],
    ids=["random", "zeros", "program", "zstd", "cut", "empty"],
)
def test_what_cannot_be_read_is_never_without_failure(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.log").write_bytes(content)
    assert main(["diagnose", str(tmp_path / "run.log")]) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert not printed.out


@pytest.mark.parametrize(
    ("lines", "status"),
    [(steps(9), 0), (traceback(OOM), 1), (traceback(CLOSED), 3)],
    ids=["healthy", "named", "not here"],
)
def test_the_exit_status_tells_healthy_named_and_unnamed(lines: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "std_log_process_00.txt").write_text(lines)
    assert main(["diagnose", str(tmp_path)]) == status


def test_files_and_folders_are_given_together_and_read_once(tmp_path: Path) -> None:
    log = tmp_path / "std_log_process_00.txt"
    log.write_text(OOM)
    assert len(read([tmp_path, log, log]).logs) == 1


def test_folders_may_be_deeper_than_python_calls(tmp_path: Path) -> None:
    deepest = tmp_path / "logs"
    deepest.mkdir()
    for _ in range(1_200):
        deepest /= "d"
        deepest.mkdir()
    (deepest / "std_log_process_01.txt").write_text(f"{OOM}\n")
    try:
        assert diagnose([tmp_path]).cause == "cuda-out-of-memory"
    finally:
        subprocess.run(["rm", "-r", tmp_path / "logs"], check=True)


@pytest.mark.parametrize(
    "report",
    [
        '{"children": [{"key": "job", "status": "Failed", "place": "a", "job": "b"}]}',
        '{"children": [{"key": 1, "status": "Failed", "place": "a", "job": "b"}]}',
        '{"children": [{"key": "job", "status": "Failed"}]}',
        '{"children": [1]}',
        '{"children": 1}',
        "[" * 100_000,
    ],
    ids=["itself", "no key", "no names", "no child", "no list", "deep"],
)
def test_a_report_of_a_job_that_is_none_hides_no_log(
    report: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    (folder / "report.json").write_text(report)
    (folder / "std_log_process_01.txt").write_text(f"{OOM}\n")
    assert main(["diagnose", str(folder)]) == 1
    assert "cuda-out-of-memory" in capsys.readouterr().out


def test_files_that_cannot_be_read_become_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "core.txt").write_bytes(b"\x00\x01\x02" * 999)
    (tmp_path / "broken.txt.gz").write_bytes(b"\x1f\x8b nothing of the kind")
    (tmp_path / "std_log_process_00.txt").write_text(OOM)
    found = read([tmp_path])
    assert sorted(finding.code for finding in found.findings) == ["binary-file", "unreadable-file"]
    assert main(["diagnose", str(tmp_path)]) == 1
    assert "is not text" in capsys.readouterr().err


@pytest.mark.parametrize("make", ["", "model.safetensors", "deep.json"])
def test_diagnose_exits_with_2_when_there_is_nothing_to_read(
    make: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "user_logs"
    if make:
        place.mkdir()
        (place / make).write_bytes(b"[" * 100_000)
    assert main(["diagnose", str(place)]) == 2
    printed = capsys.readouterr()
    assert ("holds no log" if make else "does not exist") in printed.err
    assert not printed.out


def test_diagnose_suggests_a_path_when_it_is_nearly_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "user_logs").mkdir()
    assert main(["diagnose", str(tmp_path / "user_log")]) == 2
    assert "Did you mean `user_logs`?" in capsys.readouterr().err


def test_verdict_is_printed_with_evidence_and_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "std_log_process_00.txt").write_text(steps(3) + traceback(CLOSED))
    (tmp_path / "std_log_process_01.txt").write_text(steps(3) + traceback("ValueError: label 17 out of range"))
    assert main(["diagnose", str(tmp_path)]) == 1
    assert (
        capsys.readouterr().out
        == """\
python-exception: rank 1: the program raised an exception

  std_log_process_01.txt:11
    ValueError: label 17 out of range
    at /code/train.py:41 in main

victims, not causes: rank 0 (RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection
  closed by peer [10.0.0.5]:41712)

do: Go to /code/train.py:41 in main, the innermost line of the program's own. `amlstack rehearse FILE
  --only-rank N` runs the same ranks on this machine and shows the lines of that one.
confidence: high, because it is an exception of the program's own
read: 2 files, 22 lines
"""
    )


def test_json_has_the_promised_fields(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "std_log_process_00.txt").write_text(traceback(CLOSED))
    assert main(["diagnose", str(tmp_path), "--json"]) == 3
    fields = json.loads(capsys.readouterr().out)
    promised = {"found", "cause", "rank", "node", "file", "line", "text", "confidence", "advice", "victims"}
    assert promised <= set(fields)
    assert (fields["found"], fields["cause"], fields["victims"]) == (False, None, [0])


def test_secrets_in_a_line_are_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "https://store.blob.core.windows.net/c/x?sv=2024&sig=SECRETSECRET"
    (tmp_path / "std_log_process_00.txt").write_text(f"OSError: [Errno 28] No space left on device: {url}\n")
    assert main(["diagnose", str(tmp_path), "--json"]) == 1
    assert "SECRETSECRET" not in capsys.readouterr().out


def test_a_failed_rehearsal_ends_with_its_diagnosis(tmp_path: Path) -> None:
    from amlstack.cli.console import Progress
    from amlstack.cli.rehearsal import outcome
    from amlstack.diagnose import diagnose

    notes: list[str] = []

    class Notes(Progress):
        def note(self, text: str) -> None:
            notes.append(text)

    (tmp_path / "user_logs").mkdir()
    log = tmp_path / "user_logs" / "std_log_process_01.txt"
    log.write_text("epoch 1\n" + traceback("ValueError: label 17 out of range"))
    for whole in (False, True):
        outcome.show_diagnosis(Notes(), diagnose([tmp_path]), tmp_path, "train-1", whole=whole)

    headline = "diagnosis (high confidence): python-exception: rank 1: the program raised an exception"
    place = f"  {log}:9: ValueError: label 17 out of range"
    more = "evidence, victims and what to do: amlstack diagnose train-1"
    short, long = notes[: notes.index(more) + 1], notes[notes.index(more) + 1 :]
    assert (short[0], short[1], short[-1]) == (headline, place, more)
    lines = [text for text in long if text.startswith("  [rank 1] ")]
    assert lines[0] == "  [rank 1] Traceback (most recent call last):"
    assert lines[-1] == "  [rank 1] ValueError: label 17 out of range"
    assert set(long) == {*short, *lines}


def test_a_job_that_the_service_refused_is_diagnosed_by_its_message(tmp_path: Path) -> None:
    from amlstack.diagnose import diagnose

    message = "The input 'raw' lies in the datastore 'team', which the workspace does not have."
    record = {"job": "j", "status": "Failed", "error": {"code": "UserError", "message": message}, "ranks": []}
    (tmp_path / "report.json").write_text(json.dumps(record))
    (tmp_path / "runner.log").write_text("10:00:00 environment: PyTorch 2.8\n")

    verdict = diagnose([tmp_path])

    assert (verdict.found, verdict.cause, verdict.confidence) == (True, "job-refused", "high")
    assert verdict.text == message
