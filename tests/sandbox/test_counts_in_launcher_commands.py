"""The words of launchers in a rehearsal of 2 × 2 of a job that declares 16 nodes."""

from __future__ import annotations

import shlex

from amlstack.code_reading import starters
from amlstack.sandbox.scale import RehearsalScale
from tests.support.rows import for_each

COUNTS = starters.Counts(2, 2, 16)


@for_each(
    "before, after",
    [
        ("torchrun --nnodes 16 --nproc_per_node 8 train.py", "torchrun --nnodes 2 --nproc_per_node 2 train.py"),
        ("torchrun --nnodes=4:16 --nproc-per-node=gpu t.py", "torchrun --nnodes=2:2 --nproc-per-node=2 t.py"),
        ("torchrun --standalone --nproc_per_node 8 t.py", "torchrun --standalone --nproc_per_node 2 t.py"),
        ("torchrun --nnodes 16 -m pkg --nnodes 16", "torchrun --nnodes 2 -m pkg --nnodes 16"),
        ("torchrun --nnodes 1 --nproc_per_node 1 t.py", "torchrun --nnodes 1 --nproc_per_node 1 t.py"),
        (
            "python -m torch.distributed.launch --use_env --nproc_per_node 8 t.py",
            "python -m torch.distributed.launch --use_env --nproc_per_node 2 t.py",
        ),
        (
            "accelerate launch --multi_gpu --num_machines 16 --num_processes 128 t.py --num_processes 9",
            "accelerate launch --multi_gpu --num_machines 2 --num_processes 4 t.py --num_processes 9",
        ),
        ("accelerate launch --num_processes 8 t.py", "accelerate launch --num_processes 2 t.py"),
        ("accelerate config --num_processes 8", "accelerate config --num_processes 8"),
        ("deepspeed --num_nodes 16 --num_gpus=8 t.py", "deepspeed --num_nodes 2 --num_gpus=2 t.py"),
        ("mpirun --mca btl tcp -n 128 -x A python t.py -n 9", "mpirun --mca btl tcp -n 4 -x A python t.py -n 9"),
        ("mpirun --map-by ppr:8:node -np 3 t", "mpirun --map-by ppr:2:node -np 3 t"),
        ("horovodrun -np 128 python t.py", "horovodrun -np 4 python t.py"),
        ("python t.py --world-size 128", "python t.py --world-size 128"),
        ("python t.py --num_nodes 16 --devices=8", "python t.py --num_nodes 2 --devices=2"),
        ("python t.py --num_nodes 12 --devices 8", "python t.py --num_nodes 12 --devices 8"),
        ("python t.py --num_nodes 16", "python t.py --num_nodes 16"),
    ],
)
def test_launcher_counts_are_no_higher_than_the_scale(before: str, after: str) -> None:
    program, *rest = shlex.split(before)
    result, changes = starters.scaled(program, rest, COUNTS)

    assert [program, *result] == shlex.split(after)
    assert bool(changes) == (before != after)


@for_each(
    "command, count",
    [
        ("torchrun --nproc_per_node=8 t.py", 8),
        ("python -m torch.distributed.run --nproc-per-node 4 t.py", 4),
        ("accelerate launch --num_processes 128 t.py", 8),
        ("mpirun -np 32 t", 2),
        ("torchrun --nproc_per_node gpu t.py", None),
        ("python t.py", None),
    ],
)
def test_a_launcher_names_the_processes_of_a_node(command: str, count: int | None) -> None:
    program, *rest = shlex.split(command)

    assert starters.per_node(program, rest, 16) == count


@for_each("text", ["", "2", "0x2", "2x", "x", "2x2x2", "-1x2"])
def test_other_texts_are_no_scale(text: str) -> None:
    assert RehearsalScale.read(text) is None


CONFIG = """
distributed_type: MULTI_GPU
machine_rank: 0
num_machines: 16
num_processes: 128  # all GPUs
"""


@for_each("command, environ, options, variables", [
        ("torchrun t.py", {"PET_NNODES": "16"}, "", {"PET_NNODES": "2"}),
        ("torchrun t.py", {"PET_NPROC_PER_NODE": "8"}, "", {"PET_NPROC_PER_NODE": "2"}),
        ("torchrun t.py", {"PET_NNODES": "4:16"}, "", {"PET_NNODES": "2:2"}),
        ("torchrun t.py", {"PET_NPROC_PER_NODE": "gpu"}, "", {"PET_NPROC_PER_NODE": "2"}),
        ("torchrun --nnodes 16 t.py", {"PET_NNODES": "16"}, "", {}),
        ("torchrun t.py", {"PET_NNODES": "1"}, "", {}),
        ("python -m torch.distributed.run t.py", {"PET_NPROC_PER_NODE": "8"}, "", {"PET_NPROC_PER_NODE": "2"}),
        ("python t.py", {"PET_NPROC_PER_NODE": "8"}, "", {}),
        ("accelerate launch --config_file c.yaml t.py", {}, "--num_machines 2 --num_processes 4", {}),
        ("accelerate launch --config_file=c.yaml --num_machines 16 t.py", {}, "--num_processes 4", {}),
        ("accelerate launch --config_file c.yaml --num_processes 8 t.py", {}, "--num_machines 2", {}),
        ("accelerate launch t.py", {}, "--num_processes 2 --multi_gpu", {}),
        ("accelerate launch --cpu t.py", {}, "", {}),
        ("accelerate launch --use_fsdp t.py", {}, "--num_processes 2", {}),
        ("accelerate launch --num_machines 16 --num_processes 128 t.py", {}, "--multi_gpu", {}),
        ("accelerate launch --multi_gpu --num_machines 16 --num_processes 128 t.py", {}, "", {}),
        ("accelerate launch --num_processes 1 t.py", {}, "", {}),
        ("accelerate launch --config_file absent.yaml t.py", {}, "--num_processes 2 --multi_gpu", {}),
        ("accelerate config", {}, "", {}),
        ("deepspeed t.py", {}, "--num_gpus 2", {}),
        ("deepspeed --num_gpus 8 t.py", {}, "", {}),
        ("deepspeed --hostfile hosts t.py", {}, "", {}),
        ("mpirun -n 128 t", {}, "", {}),
])  # fmt: skip
def test_counts_from_variables_files_and_gpus_are_no_higher_than_the_scale(
    command: str, environ: dict[str, str], options: str, variables: dict[str, str]
) -> None:
    program, *rest = shlex.split(command)
    launcher, at = starters.launch_of(program, rest)

    found = starters.counts_elsewhere(
        launcher, starters.given_options(rest[at:]), COUNTS, environ, lambda path: CONFIG if path == "c.yaml" else ""
    )

    assert found.options == shlex.split(options)
    assert found.variables == variables
    assert bool(found.changes) == bool(options or variables)
