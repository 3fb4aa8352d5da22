"""Ports that jobs fix themselves: found in what they declare and in their code, and held by one job at a time."""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from amlstack.base import paths
from amlstack.sandbox import contract, processes
from amlstack.sandbox.runner import fixed_ports
from amlstack.sandbox.store.store import Store
from tests.support.rows import for_each
from tests.support.runner.runner_lab import LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.runner.runner_lab import Lab

PYTORCH = {"distributionType": "PyTorch", "processCountPerInstance": 1}

FOUND: list[tuple[str, dict[str, str], dict[str, str], tuple[int, ...]]] = [
    ("python train.py", {}, {"train.py": "import torch\n"}, ()),
    ("torchrun --nproc_per_node 2 train.py", {}, {}, ()),
    ("torchrun --master_port $MASTER_PORT train.py", {}, {}, ()),
    ("torchrun --rdzv_backend=c10d --rdzv_endpoint=localhost:0 train.py", {}, {}, ()),
    ("torchrun --rdzv-endpoint $MASTER_ADDR:29400 train.py", {}, {}, (29400,)),
    ("torchrun --master-port=1234 train.py", {"MASTER_PORT": "6105"}, {}, (1234, 6105)),
    ("MASTER_PORT=7000 python train.py", {}, {}, (7000,)),
    ("accelerate launch train.py", {}, {}, (29500,)),
    ("accelerate launch --main_process_port $MASTER_PORT train.py", {}, {}, ()),
    ("deepspeed --num_gpus 2 train.py --deepspeed_config ds.json", {}, {}, (29500,)),
    ("python train.py --deepspeed ds.json", {}, {}, ()),
    ("python -m amlnode deepspeed train.py", {}, {}, ()),
    ("cd src && OMP_NUM_THREADS=1 deepspeed train.py", {}, {}, (29500,)),
    ("python train.py", {"MASTER_PORT": "none"}, {}, ()),
    ("python train.py", {}, {"sub/env.py": "def set():\n    os.environ['MASTER_PORT'] = '54965'\n"}, (54965,)),
    ("python train.py", {}, {"env.py": 'os.environ["MASTER_PORT"] = str(master_port)\n'}, ()),
    ("python train.py", {}, {"env.py": '# os.environ["MASTER_PORT"] = "54965"\n'}, ()),
    ("python train.py", {}, {"env.py": 'init(init_method="tcp://127.0.0.1:23456", rank=0)\n'}, (23456,)),
    ("bash run.sh", {}, {"run.sh": "export MASTER_PORT=12355\n"}, (12355,)),
    ("python train.py", {}, {"a.py": 'os.environ.setdefault("MASTER_PORT", "29500")\n'}, (29500,)),
]


def ports(folder: Path, command: str, variables: dict[str, str], **more: Any) -> tuple[int, ...]:
    body = {"jobType": "Command", "command": command, "environmentId": "e", "environmentVariables": variables, **more}
    job = contract.read(body)
    return fixed_ports.ports(job.command, job.distribution, job.variables, folder)


@for_each("row", FOUND)
def test_a_fixed_port_is_found(
    row: tuple[str, dict[str, str], dict[str, str], tuple[int, ...]], tmp_path: Path
) -> None:
    command, variables, files, expected = row
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert ports(tmp_path, command, variables) == expected


def test_a_default_counts_only_where_nothing_is_set_before_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text('os.environ.setdefault("MASTER_PORT", "29500")\n')
    assert ports(tmp_path, "python a.py", {}, distribution=PYTORCH) == ()


def test_a_port_is_held_until_it_is_released_and_waiters_see_its_holder() -> None:
    port = processes.free_port()
    fields: queue.Queue[str] = queue.Queue()
    first, second = ExitStack(), ExitStack()
    with first, second:
        fixed_ports.hold([port], "the job first", fields.put, first)
        waiter = threading.Thread(
            target=fixed_ports.hold, args=([port], "the job second", fields.put, second), daemon=True
        )
        waiter.start()
        line = fields.get(timeout=LIMIT)
        assert line == f"port {port} is fixed in this job and taken by the job first: waits for its end"
        first.close()
        waiter.join()
        lock = paths.cache() / "ports" / f"{port}.lock"
        assert lock.read_text() == "the job second\n"
    lock.unlink()


def while_waiting(lab: Lab, act: Callable[[str, ExitStack], object]) -> str:
    """Runs a job whose port this test holds; ``act`` is called once the job says that it waits."""
    port = processes.free_port()
    job = lab.job("true", environmentVariables={"MASTER_PORT": str(port)})

    def until_it_waits() -> None:
        store = Store(lab.home)
        while store.jobs[job].active and not any("waits" in step.detail for step in store.history.of("job", job)):
            os.sched_yield()
        store.close()

    with ExitStack() as held:
        fixed_ports.hold([port], "the job of another", print, held)

        async def then() -> None:
            await asyncio.to_thread(until_it_waits)
            assert lab.store.jobs[job].status == "Preparing"
            act(job, held)
            lab.wake.set()

        async def go() -> None:
            await asyncio.gather(lab.drive(lambda: lab.ended(job)), then())

        asyncio.run(go())
    (paths.cache() / "ports" / f"{port}.lock").unlink()
    return job


def test_a_job_starts_when_the_port_is_let_go(lab: Lab) -> None:
    job = while_waiting(lab, lambda _, held: held.close())
    assert lab.store.jobs[job].status == "Completed"
    (line,) = [step.detail for step in lab.store.history.of("job", job) if "waits" in step.detail]
    assert "taken by the job of another" in line


def test_a_job_that_waits_for_a_port_can_be_cancelled(lab: Lab) -> None:
    job = while_waiting(lab, lambda job, _: lab.store.jobs.request_cancel(job))
    assert lab.store.jobs[job].status == "Canceled"
    assert "Running" not in lab.steps(job)
