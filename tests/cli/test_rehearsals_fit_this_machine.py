"""The size of a rehearsal: a scaled plan, and the question before one that is larger than the machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import typer

import jobs
from amlstack.cli import console
from amlstack.cli.main import main
from amlstack.cli.rehearsal import scale as scales
from amlstack.sandbox.scale import RehearsalScale
from amlstack.sandbox.server import daemon
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LARGE = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
command: >-
  torchrun --nnodes 16 --nproc_per_node 8 --node_rank $NODE_RANK --master_addr $MASTER_ADDR
  train.py --world-size 128 --epochs 8
environment: {image: 'mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04'}
compute: azureml:mine
resources: {instance_count: 16}
distribution: {type: pytorch, process_count_per_instance: 1}
"""


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)  # where no stack is
    file = tmp_path / "large.yml"
    file.write_text(LARGE)
    return file


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sandbox would have been started; it is not."""
    found: list[str] = []

    def up() -> None:
        found.append("up")
        message = "no sandbox in this test"
        raise daemon.SandboxError(message)

    monkeypatch.setattr(daemon, "up", up)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})
    return found


def rehearse(*words: str | Path) -> int:
    return main(["rehearse", *map(str, words)])


def output(capsys: pytest.CaptureFixture[str]) -> str:
    """All that was printed, in one line."""
    return " ".join("".join(capsys.readouterr()).split())


def test_a_script_gets_the_line_to_type_for_a_job_larger_than_the_machine(
    large: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (rehearse(large), started) == (2, [])
    text = output(capsys)
    assert "128 ranks at once on 2 cores" in text
    assert "scaled down: -j 2x2; as it is: --yes" in text
    assert "nothing was started" in text


@pytest.mark.parametrize("answer", [True, False])
def test_a_terminal_is_asked(large: Path, started: list[str], monkeypatch: pytest.MonkeyPatch, *, answer: bool) -> None:
    monkeypatch.setattr(console, "on_a_terminal", lambda: True)
    monkeypatch.setattr(console, "confirmed", lambda _question: answer)

    assert (rehearse(large), started) == ((1, ["up"]) if answer else (2, []))


@pytest.mark.parametrize("words", [["--yes"], ["-j", "2x2"], ["--nodes", "2", "--ranks", "2"]])
def test_a_job_that_fits_or_is_wanted_as_it_is_starts(large: Path, started: list[str], words: Sequence[str]) -> None:
    assert rehearse(large, *words) == 1
    assert started == ["up"]


@pytest.mark.parametrize(("before", "after"), [("--nnodes 16", "--nnodes 4"), ("--node_rank $NODE_RANK", "")])
def test_what_is_wrong_as_declared_is_refused_before_it_is_scaled(
    large: Path, started: list[str], capsys: pytest.CaptureFixture[str], before: str, after: str
) -> None:
    large.write_text(LARGE.replace(before, after))

    assert (rehearse(large, "-j", "2x2"), started) == (1, [])
    assert "[launcher-" in output(capsys)


def test_the_plan_says_what_was_scaled_and_what_is_unproven(
    large: Path, started: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rehearse(large, "-j", "2x2")
    text = output(capsys)

    assert started
    assert "16 × 8 → 2 × 2 (128 → 4 ranks)" in text
    assert "unproven: memory per rank" in text
    assert "unproven: whatever needs more than 2 nodes" in text
    assert "unproven: `--world-size 128` is passed through unchanged" in text
    assert "--epochs" not in text


def test_free_memory_bounds_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(64)))
    parts = [scales.Extent("", (2, 8), (2, 8), 1)]

    monkeypatch.setattr(scales, "free_memory", lambda: 16 * scales.MEMORY_PER_RANK - 1)
    assert "16 ranks at once" in scales.too_large(parts)
    monkeypatch.setattr(scales, "free_memory", lambda: 16 * scales.MEMORY_PER_RANK)
    assert not scales.too_large(parts)


@for_each(
    "command, script, ranks",
    [
        ("python t.py", "import torch.multiprocessing as mp\nmp.spawn(f, nprocs=torch.cuda.device_count())\n", 8),
        ("torchrun --nproc_per_node gpu t.py", "", 8),
        ("torchrun --nproc_per_node $(nvidia-smi -L | wc -l) t.py", "", 8),
        ("torchrun --nproc_per_node 2 t.py", "mp.spawn(f, nprocs=torch.cuda.device_count())\n", 2),
        ("python t.py", "print(torch.cuda.device_count())\n", 1),
        ("python t.py", "", 1),
    ],
)
def test_ranks_that_the_code_starts_for_each_gpu_are_counted(
    tmp_path: Path, command: str, script: str, ranks: int
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "t.py").write_text(script)
    job = jobs.Job(command=command, environment="azureml:e:1", compute="c", nodes=2, code="src")
    target = jobs.Target(cluster="c", size="Standard_ND96asr_v4")
    plan = jobs.resolve(job, lambda _job: (target, ()), source=jobs.Source(base=tmp_path))

    (whole,), (part,) = scales.extents(plan, None), scales.extents(plan, RehearsalScale(2, 2))

    assert (whole.declared, whole.started) == ((2, ranks), (2, ranks))
    assert part.started == (2, min(ranks, 2))
    assert bool(scales.too_large([whole])) == (2 * ranks > scales.RANKS_PER_CORE * len(os.sched_getaffinity(0)))


def test_trials_that_run_at_once_are_counted_together() -> None:
    job = jobs.Job(command="python t.py", environment="azureml:e:1", compute="c", nodes=2, launcher=jobs.PerProcess(
        processes_per_node=2))  # fmt: skip
    sweep = jobs.Sweep(
        trial=job,
        search_space={"lr": {"type": "choice", "values": [1, 2, 3]}},
        objective={"goal": "minimize", "primary_metric": "loss"},
        limits={"max_total_trials": 3, "max_concurrent_trials": 3},
    )
    plan = jobs.resolve(sweep, lambda job: (jobs.Target(cluster=job.compute), ()), source=jobs.Source())

    assert [part.processes for part in scales.extents(plan, None)] == [12]
    assert [part.processes for part in scales.extents(plan, RehearsalScale(1, 1))] == [3]


@pytest.mark.parametrize(("nodes", "ranks", "both"), [(None, None, "two"), (2, None, "2x2"), (None, None, "0x2")])
def test_contradicting_or_unreadable_options_are_refused(nodes: int | None, ranks: int | None, both: str) -> None:
    with pytest.raises(typer.BadParameter):
        scales.chosen(nodes, ranks, both)


def test_one_of_the_two_options_leaves_the_other_unlimited() -> None:
    assert scales.chosen(2, None, None) == RehearsalScale(2, scales.UNLIMITED)
    assert scales.chosen(None, None, None) is None
