"""`rehearse --json` and `--only-rank`, and `diagnose` of a job by its name; a real sandbox, no environment to build."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli.verbs import Verbs
from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.cli.verbs import Ran

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


def run(home: Path, folder: Path, *words: str) -> Ran:
    return Verbs(folder, {}, {"AMLSTACK_HOME": str(home)})(*words)


def test_a_failed_rehearsal_is_plain_data_on_stdout_and_lines_of_one_rank_on_stderr(home: Path, job: Path) -> None:
    ended = run(home, job.parent, "rehearse", "job.yml", "-j", "2x2", "--only-rank", "2", "--json")

    assert ended.code == 1, ended.printed
    found: dict[str, Any] = json.loads(ended.out)
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
    printed = [line.partition("] ")[2] for line in ended.err.splitlines() if " [rank 2] " in line]
    assert printed == ["I am rank 2"]
    assert "I am rank 1" not in ended.err
    # Of the rank that failed the cause is printed although its lines are not.
    assert '[rank 3]   File "src/train.py", line 6, in <module>' in ended.err

    by_name = run(home, job.parent, "diagnose", "shards")
    assert by_name.code == 1, by_name.err
    assert "rank 3 on node 1" in by_name.out
    assert "at src/train.py:6 in <module>" in by_name.out
    missed = run(home, job.parent, "diagnose", "shrads")
    assert missed.code == 2
    assert "Did you mean `shards`?" in missed.err


def test_what_is_refused_is_plain_data_too(home: Path, job: Path) -> None:
    for text, words, code in (
        (JOB.replace("code: src", "code: srcs"), (), 1),
        (JOB, ("--only-rank", "8"), 2),
    ):
        job.write_text(text)
        ended = run(home, job.parent, "rehearse", "job.yml", "--yes", "--json", *words)
        found = json.loads(ended.out)
        assert (ended.code, found["verdict"], found["exit"], found["jobs"]) == (code, "refused", code, [])
        assert [each["code"] for each in found["findings"] if each["level"] == "error"] == (
            ["code-missing"] if code == 1 else []
        )
    assert "there are ranks 0 to 7" in ended.err


def test_a_completed_job_whose_ranks_met_in_several_groups_is_a_failed_rehearsal(home: Path, job: Path) -> None:
    note = 'from pathlib import Path\nPath(os.environ["AMLSTACK_SANDBOX_WORLDS"], str(rank)).write_text(SEEN)\n'
    script = job.parent / "src" / "train.py"
    failed = 'if rank == 3:\n    raise ValueError("shard 3 is broken")\n'
    job.write_text(JOB.replace("name: shards", "name: groups"))
    for world, verdict in (('f"{rank % 2} 2"', "failed"), ('f"{rank} 4"', "completed")):
        script.write_text(TRAIN.replace(failed, note.replace("SEEN", world)))
        ended = run(home, job.parent, "rehearse", "job.yml", "-j", "2x2", "--json")
        found = json.loads(ended.out)
        (one,) = found["jobs"]
        size = int(world[-2])
        assert (found["verdict"], one["status"]) == (verdict, "Completed"), ended.err
        assert one["joined"] == [{"label": "", "started": 4, "worlds": [{"size": size, "ranks": 4}]}]
        assert ("2 groups that do not know of each other" in one["error"]) == (size == 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_rehearsal_that_is_asked_to_end_cancels_its_job(number: signal.Signals, home: Path, job: Path) -> None:
    (job.parent / "src" / "train.py").write_text("import signal\nprint('up', flush=True)\nsignal.pause()\n")
    job.write_text(JOB.replace("name: shards", "name: waits"))
    verbs = Verbs(job.parent, {}, {"AMLSTACK_HOME": str(home)})
    heard = signal.signal(number, signal.SIG_DFL)  # a verb ignores what its parent does, as it should below nohup
    try:
        process = verbs.start("rehearse", "job.yml", "-j", "1x1", stderr=subprocess.STDOUT)
    finally:
        signal.signal(number, heard)
    with process:
        assert process.stdout is not None
        shown = [next(line for line in process.stdout if line.rstrip().endswith("] up"))]
        process.send_signal(number)
        shown += process.stdout.readlines()
    assert process.returncode == 130, shown
    assert any("cancelling the job" in line for line in shown), shown
    assert any("is Canceled" in line for line in shown), shown
