"""`rehearse --json` and `--only-rank`, and `diagnose` of a job by its name; a real sandbox, no environment to build."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.ranks

JOB = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
name: shards
code: src
command: python train.py
environment: {image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}
compute: azureml:mine
resources: {instance_count: 4}
distribution: {type: pytorch, process_count_per_instance: 2}
outputs:
  model: {type: uri_folder}
"""
TRAIN = """\
import os

rank = int(os.environ["RANK"])
print(f"I am rank {rank}", flush=True)
if rank == 3:
    raise ValueError("shard 3 is broken")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with running_sandbox(tmp_path_factory.mktemp("programs")) as sandbox:
        yield sandbox.home


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text(TRAIN)
    (tmp_path / "job.yml").write_text(JOB)
    return tmp_path / "job.yml"


def run(home: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amlstack.cli.main", *words]
    environ = {**os.environ, "AMLSTACK_HOME": str(home)}
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_a_failed_rehearsal_is_plain_data_on_stdout_and_lines_of_one_rank_on_stderr(home: Path, job: Path) -> None:
    ended = run(home, job.parent, "rehearse", "job.yml", "-j", "2x2", "--only-rank", "2", "--json")

    assert ended.returncode == 1, ended.stdout + ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    assert (found["verdict"], found["exit"], found["error"]) == ("failed", 1, "")
    (one,) = found["jobs"]
    assert one["scaled"] == [{"part": "", "declared": [4, 2], "started": [2, 2]}]
    assert any("memory per rank" in text for text in one["unproven"])
    assert [(each["rank"], each["node"]) for each in one["ranks"]] == [(0, 0), (1, 0), (2, 1), (3, 1)]
    assert one["ranks"][3]["exit"] == 1
    assert list(one["outputs"]["named"]) == ["model"]
    diagnosis = one["diagnosis"]
    assert (diagnosis["rank"], diagnosis["node"], diagnosis["text"]) == (3, "1", "ValueError: shard 3 is broken")
    assert diagnosis["source"] == {"file": "src/train.py", "line": 6, "function": "<module>"}
    printed = [line.partition("] ")[2] for line in ended.stderr.splitlines() if " [rank 2] " in line]
    assert printed == ["I am rank 2"]
    assert "I am rank 1" not in ended.stderr
    # Of the rank that failed the cause is printed although its lines are not.
    assert '[rank 3]   File "src/train.py", line 6, in <module>' in ended.stderr

    by_name = run(home, job.parent, "diagnose", "shards")
    assert by_name.returncode == 1, by_name.stderr
    assert "rank 3 on node 1" in by_name.stdout
    assert "at src/train.py:6 in <module>" in by_name.stdout
    missed = run(home, job.parent, "diagnose", "shrads")
    assert missed.returncode == 2
    assert "Did you mean `shards`?" in missed.stderr


def test_what_is_refused_is_plain_data_too(home: Path, job: Path) -> None:
    for text, words, code in (
        (JOB.replace("code: src", "code: srcs"), (), 1),
        (JOB, ("--only-rank", "8"), 2),
    ):
        job.write_text(text)
        ended = run(home, job.parent, "rehearse", "job.yml", "--yes", "--json", *words)
        found = json.loads(ended.stdout)
        assert (ended.returncode, found["verdict"], found["exit"], found["jobs"]) == (code, "refused", code, [])
        assert [each["code"] for each in found["findings"] if each["level"] == "error"] == (
            ["code-missing"] if code == 1 else []
        )
    assert "there are ranks 0 to 7" in ended.stderr


def test_a_completed_job_whose_ranks_met_in_several_groups_is_a_failed_rehearsal(home: Path, job: Path) -> None:
    note = 'from pathlib import Path\nPath(os.environ["AMLSTACK_SANDBOX_WORLDS"], str(rank)).write_text(SEEN)\n'
    script = job.parent / "src" / "train.py"
    failed = 'if rank == 3:\n    raise ValueError("shard 3 is broken")\n'
    job.write_text(JOB.replace("name: shards", "name: groups"))
    for world, verdict in (('f"{rank % 2} 2"', "failed"), ('f"{rank} 4"', "completed")):
        script.write_text(TRAIN.replace(failed, note.replace("SEEN", world)))
        ended = run(home, job.parent, "rehearse", "job.yml", "-j", "2x2", "--json")
        found = json.loads(ended.stdout)
        (one,) = found["jobs"]
        size = int(world[-2])
        assert (found["verdict"], one["status"]) == (verdict, "Completed"), ended.stderr
        assert one["joined"] == [{"label": "", "started": 4, "worlds": [{"size": size, "ranks": 4}]}]
        assert ("2 groups that do not know of each other" in one["error"]) == (size == 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_rehearsal_that_is_asked_to_end_cancels_its_job(number: signal.Signals, home: Path, job: Path) -> None:
    (job.parent / "src" / "train.py").write_text("import signal\nprint('up', flush=True)\nsignal.pause()\n")
    job.write_text(JOB.replace("name: shards", "name: waits"))
    command = [sys.executable, "-m", "amlstack.cli.main", "rehearse", "job.yml", "-j", "1x1"]
    env, pipe = {**os.environ, "AMLSTACK_HOME": str(home)}, subprocess.PIPE
    with subprocess.Popen(
        command, cwd=job.parent, env=env, text=True, stdout=pipe, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        shown = [next(line for line in process.stdout if line.rstrip().endswith("] up"))]
        process.send_signal(number)
        shown += process.stdout.readlines()
    assert process.returncode == 130, shown
    assert any("cancelling the job" in line for line in shown), shown
    assert any("is Canceled" in line for line in shown), shown
