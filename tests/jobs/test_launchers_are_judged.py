"""Launchers in commands and scripts, held against nodes, GPUs and distribution."""

from __future__ import annotations

import re
import textwrap
from typing import TYPE_CHECKING, NamedTuple

import jobs
from amlstack.base.findings import Level
from amlstack.code_reading import launches, starters
from jobs.planning import job as job_planning
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from amlstack.base.findings import Finding

ONE_GPU, CPU = "Standard_NC24ads_A100_v4", "Standard_D4s_v5"
ACCELERATE = "--machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR --main_process_port $MASTER_PORT"
MEET = "--node_rank $NODE_RANK --master_addr $MASTER_ADDR --master_port $MASTER_PORT"
RUN, LAUNCH = "python -m torch.distributed.run", "python3 -u -m torch.distributed.launch"
JUDGED = ("launcher-", "processes-beyond-gpus", "gpus-idle")

FILES = {
    "train.py": "import torch\n",
    "light.py": "import lightning\n",
    "two.yaml": """\
        compute_environment: LOCAL_MACHINE
        distributed_type: MULTI_GPU
        machine_rank: 0
        main_process_ip: 10.0.0.4
        num_machines: 2
        num_processes: 16  # in total
        """,
    "one.yaml": "distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\n",
    "four.yaml": "distributed_type: MULTI_GPU\nnum_machines: 4\nnum_processes: 32\n",
    "no.yaml": "distributed_type: 'NO'\nnum_machines: 1\nnum_processes: 8\n",
    "uncounted.yaml": "distributed_type: MULTI_GPU\nnum_machines: 1\n",
    "zero.yaml": """\
        distributed_type: DEEPSPEED
        deepspeed_config:
          zero_stage: 3
        num_machines: 2
        num_processes: 16
        """,
    "standard.yaml": """\
        distributed_type: DEEPSPEED
        deepspeed_config:
          deepspeed_multinode_launcher: standard
        num_machines: 2
        num_processes: 16
        """,
    "nnodes.sh": "#!/bin/bash\nset -e\ntorchrun --nnodes 4 --nproc_per_node 8 " + MEET + " train.py\n",
    "default.sh": 'NNODES=${NNODES:-1}\nGPUS=${GPUS:-8}\ntorchrun --nnodes "$NNODES" --nproc_per_node $GPUS train.py\n',
    "array.sh": """\
        # don't forget the rank
        ARGS=(
            --nnodes 2
            --nproc_per_node 16  # both
            --node_rank $NODE_RANK
            --master_addr $MASTER_ADDR
        )
        torchrun ${ARGS[@]} train.py "$@"
        """,
    "quoted.sh": """\
        DISTRIBUTED_ARGS="\\
            --nproc_per_node 8 \\
            --nnodes ${1:-4}"
        torchrun $DISTRIBUTED_ARGS --node_rank $NODE_RANK --master_addr $MASTER_ADDR train.py
        """,
    "local.sh": """\
        export MASTER_ADDR=localhost
        export MASTER_PORT=29500
        torchrun --nnodes 2 --nproc_per_node 8 --node_rank $NODE_RANK \\
          --master_addr $MASTER_ADDR --master_port $MASTER_PORT \\
          train.py
        """,
    "outer.sh": "echo begin\nbash nnodes.sh\n",
    "tools/nested.sh": "torchrun --nproc_per_node 16 train.py",
    "two.sh": "torchrun --nproc_per_node 2 train.py",
    "deep.sh": "deepspeed --num_gpus 8 train.py\n",
    "accelerate.sh": "accelerate launch --num_processes 8 --num_machines 2 " + ACCELERATE + " train.py\n",
    "right.sh": """\
        NNODES=${AZUREML_NODE_COUNT:-1}
        WORLD=$((NNODES * 8))
        if [ "$NNODES" -gt 1 ]; then
            torchrun --nnodes $NNODES --nproc_per_node 8 --node_rank $NODE_RANK --master_addr $MASTER_ADDR train.py
        else
            torchrun --standalone --nproc_per_node 8 train.py
        fi
        run() {
            torchrun --nnodes 7 train.py
        }
        [ "$1" = debug ] && torchrun --nproc_per_node 1 train.py
        # torchrun --nnodes 9 train.py
        cat <<EOF
        torchrun --nnodes 9 train.py
        EOF
        accelerate launch --multi_gpu --num_processes $WORLD --num_machines $NNODES \\
            --machine_rank $NODE_RANK --main_process_ip $MASTER_ADDR train.py
        """,
}


class Row(NamedTuple):
    """A job: its command, nodes, `distribution`, size; and what is found in it."""

    command: str
    code: str = ""
    seen: str = ""
    remedy: str = ""
    nodes: int = 1
    distribution: str = "{type: pytorch, process_count_per_instance: 1}"
    size: str = "Standard_ND96asr_v4"
    line: int | None = None
    level: str = "error"
    more: str = ""


IDLE = {"code": "gpus-idle", "level": "warning"}
EIGHT = "{type: pytorch, process_count_per_instance: 8}"
MPI_1, MPI_8 = "{type: mpi}", "{type: mpi, process_count_per_instance: 8}"

WRONG = [
    # torchrun and its modules
    *(
        row
        for program in ("torchrun", RUN, LAUNCH)
        for row in (
            Row(f"{program} --nproc_per_node 16 train.py", "processes-beyond-gpus", "16 processes", "_node 8"),
            Row(
                f"{program} --nnodes 2 --nproc-per-node=16 {MEET} train.py",
                *("processes-beyond-gpus", "16 is the total of 2 nodes", "--nproc_per_node 8"),
                nodes=2,
            ),
            Row(f"{program} --nproc_per_node 4 train.py", seen="4 processes", remedy="--nproc_per_node 8", **IDLE),
            Row(f"{program} train.py", seen="no count", remedy="--nproc_per_node 8", **IDLE),
            Row(
                f"{program} --nnodes 4 --nproc_per_node 8 {MEET} train.py",
                *("launcher-nodes", "--nnodes 4", "Write 2"),
                nodes=2,
            ),
            Row(f"{program} --nnodes 2 --nproc_per_node 8 {MEET} t.py", "launcher-nodes", "1 node", "Write 1"),
            Row(f"{program} --nnodes 1 --nproc_per_node 8 t.py", "launcher-nodes", "2 nodes", "Write 2", nodes=2),
            Row(f"{program} --nproc_per_node 8 t.py", "launcher-alone", "no `--nnodes`", "--nnodes 2", nodes=2),
            Row(
                f"{program} --nnodes 2 --nproc_per_node 8 --master_addr $MASTER_ADDR t.py",
                *("launcher-rank", "no `--node_rank`", "$NODE_RANK"),
                nodes=2,
            ),
            Row(
                f"{program} --nnodes 2 --nproc_per_node 8 --node_rank 0 --master_addr $MASTER_ADDR t.py",
                *("launcher-rank", "`--node_rank 0`", "$NODE_RANK"),
                nodes=2,
            ),
            Row(
                f"{program} --nnodes 2 --nproc_per_node 8 --node_rank $NODE_RANK t.py",
                *("launcher-address", "no `--master_addr`", "--master_addr $MASTER_ADDR"),
                nodes=2,
            ),
            Row(
                f"{program} --nnodes=2 --nproc_per_node=8 --node_rank=$NODE_RANK --master_addr=127.0.0.1 t.py",
                *("launcher-address", "127.0.0.1", "$MASTER_ADDR"),
                nodes=2,
            ),
            Row(
                f"{program} --nproc_per_node 8 t.py",
                *("launcher-in-command", "8 times", "process_count_per_instance: 1"),
                distribution=EIGHT,
            ),
        )
    ),
    Row("torchrun --standalone --nproc_per_node 8 t.py", "launcher-alone", "--standalone", "--nnodes 2", nodes=2),
    Row("torchrun --nnodes 3:4 --nproc_per_node 8 --rdzv_backend c10d --rdzv_endpoint $MASTER_ADDR:29500 t.py",
        "launcher-nodes", "3:4", "Write 2", nodes=2),
    Row("torchrun --nnodes 2 --nproc_per_node 8 --rdzv_backend c10d --rdzv_id a t.py",
        "launcher-address", "no `--rdzv_endpoint`", "$MASTER_ADDR:$MASTER_PORT", nodes=2),
    Row("torchrun --nnodes 2 --nproc_per_node 8 --rdzv-backend=c10d --rdzv-endpoint=localhost:29500 t.py",
        "launcher-address", "localhost:29500", "$MASTER_ADDR", nodes=2),
    Row("torchrun --nproc_per_node gpu t.py", "launcher-count", "no GPU", "number", size=CPU),
    Row("torchrun --nproc_per_node ${{inputs.n}} t.py", "processes-beyond-gpus", "16", "8", more="inputs: {n: 16}"),
    Row(f"torchrun --nproc_per_node 8 {MEET} t.py", "launcher-nodes", "--nnodes 3", "Write 2", nodes=2,
        more="environment_variables: {PET_NNODES: '3'}"),
    Row("torchrun --nproc_per_node 8 --no-python torchrun --nproc_per_node 8 t.py",
        "launcher-in-command", "`torchrun` starts `torchrun` 8 times", "once"),
    Row("bash -c 'torchrun --nproc_per_node 16 t.py'", "processes-beyond-gpus", "16", "8"),
    Row("bash -lc 'cd . && ./nnodes.sh --np 4'", "launcher-nodes", "--nnodes 4", "Write 2", nodes=2, line=3),
    Row("pip install -r r.txt && exec torchrun --nproc_per_node 16 t.py", "processes-beyond-gpus", "16", "8"),
    # scripts
    Row("bash nnodes.sh", "launcher-nodes", "--nnodes 4", "Write 2", nodes=2, line=3),
    Row("./outer.sh", "launcher-nodes", "--nnodes 4", "Write 2", nodes=2, line=3),
    Row("bash default.sh", "launcher-nodes", "--nnodes 1", "Write 2", nodes=2, line=3),
    Row("export GPUS=16 && bash default.sh", "processes-beyond-gpus", "16", "8", line=3),
    Row("GPUS=16 bash default.sh", "processes-beyond-gpus", "16", "8", line=3),
    Row("GPUS=16; source default.sh", "processes-beyond-gpus", "16", "8", line=3),
    Row("cd tools && bash nested.sh", "processes-beyond-gpus", "16", "8", line=1),
    Row("bash default.sh", "gpus-idle", "4 processes", "8", line=3, level="warning",
        more="environment_variables: {GPUS: '4'}"),
    Row("bash array.sh --lr 1", "processes-beyond-gpus", "16 is the total", "8", nodes=2, line=8),
    Row("bash quoted.sh", "launcher-nodes", "--nnodes 4", "Write 2", nodes=2, line=4),
    Row("bash quoted.sh 3", "launcher-nodes", "--nnodes 3", "Write 2", nodes=2, line=4),
    Row("bash local.sh", "launcher-address", "localhost", "$MASTER_ADDR", nodes=2, line=3),
    Row("bash nnodes.sh", "launcher-in-command", "8 times", "`python`", nodes=2, distribution=EIGHT, line=3),
    Row("bash deep.sh", "launcher-hosts", "no hosts", "Azure ML start", nodes=2, line=1),
    Row("bash accelerate.sh", "gpus-idle", "in total", "--num_processes 16", nodes=2, line=1, level="warning"),
    Row("export MASTER_ADDR=localhost; python train.py", "launcher-address", "MASTER_ADDR=localhost", "Leave it out",
        nodes=2, distribution=EIGHT),
    # accelerate
    Row("accelerate launch --multi_gpu --num_processes 16 t.py", "processes-beyond-gpus", "16", "--num_processes 8"),
    Row("accelerate launch --multi_gpu --num_processes 4 t.py", seen="4", remedy="--num_processes 8", **IDLE),
    Row(f"accelerate launch --multi_gpu --num_machines 2 --num_processes 32 {ACCELERATE} t.py",
        "processes-beyond-gpus", "`--num_processes 32` in total, 16", "--num_processes 16", nodes=2),
    Row(f"accelerate launch --multi_gpu --num_machines 2 --num_processes 8 {ACCELERATE} t.py",
        seen="in total, 4", remedy="--num_processes 16", nodes=2, **IDLE),
    Row(f"accelerate launch --multi_gpu --num_machines 2 --num_processes 9 {ACCELERATE} t.py",
        "launcher-count", "no multiple of 2", "--num_processes 16", nodes=2),
    Row(f"accelerate launch --multi_gpu --num_machines 2 {ACCELERATE} t.py",
        seen="no `--num_processes`", remedy="--num_processes 16", nodes=2, **IDLE),
    Row(f"accelerate launch --multi_gpu --num_machines 4 --num_processes 32 {ACCELERATE} t.py",
        "launcher-nodes", "num_machines 4", "Write 2", nodes=2),
    Row("accelerate launch --multi_gpu --num_machines 2 --num_processes 16 t.py", "launcher-nodes", "1 node",
        "Write 1"),
    Row("accelerate launch --multi_gpu --num_processes 16 t.py", "launcher-alone", "no `--num_machines`",
        "--num_machines 2", nodes=2),
    Row("accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --main_process_ip $MASTER_ADDR t.py",
        "launcher-rank", "no `--machine_rank`", "$NODE_RANK", nodes=2),
    Row("accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --machine_rank 1 "
        "--main_process_ip $MASTER_ADDR t.py", "launcher-rank", "`--machine_rank 1`", "$NODE_RANK", nodes=2),
    Row("accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --machine_rank $NODE_RANK t.py",
        "launcher-address", "no `--main_process_ip`", "--main_process_ip $MASTER_ADDR", nodes=2),
    Row("accelerate launch --multi_gpu --num_machines 2 --num_processes 16 --machine_rank $NODE_RANK "
        "--main_process_ip 127.0.0.1 t.py", "launcher-address", "127.0.0.1", "$MASTER_ADDR", nodes=2),
    Row(f"accelerate launch --num_machines 2 --num_processes 2 {ACCELERATE} t.py",
        "launcher-alone", "no `--multi_gpu`", "--multi_gpu", nodes=2, size=ONE_GPU),
    Row("accelerate launch --multi_gpu --use_fsdp --num_processes 8 t.py", "launcher-options", "side by side", "Leave"),
    Row("accelerate launch --multi_gpu --num_processes 1 t.py", "launcher-options", "one process", "--num_processes 8"),
    Row("accelerate launch --multi_gpu --num_processes 8 t.py", "launcher-in-command", "8 times", "`python`",
        distribution=MPI_8),
    Row("accelerate launch --config_file one.yaml t.py", "launcher-nodes", "num_machines 1", "Write 2", nodes=2),
    Row("accelerate launch --config_file four.yaml t.py", "launcher-nodes", "num_machines 4", "Write 2", nodes=2),
    Row("accelerate launch --config_file two.yaml t.py", "launcher-rank", "`--machine_rank 0`", "$NODE_RANK", nodes=2),
    Row("accelerate launch --config_file two.yaml --num_processes 32 --machine_rank $NODE_RANK t.py",
        "processes-beyond-gpus", "16", "--num_processes 16", nodes=2),
    Row("accelerate launch --config_file no.yaml t.py", "launcher-alone", "no `--multi_gpu`", "--multi_gpu"),
    Row(f"accelerate launch --config_file uncounted.yaml --num_machines 2 {ACCELERATE} t.py", "launcher-count",
        "number of processes", "--num_processes 16", nodes=2),
    Row("accelerate launch --config_file uncounted.yaml t.py", "launcher-count", "number of processes",
        "--num_processes 8"),
    Row(f"accelerate launch --config_file zero.yaml {ACCELERATE} t.py", "launcher-hosts", "by ssh", "standard",
        nodes=2),
    # deepspeed
    Row("deepspeed --num_gpus 16 t.py", "processes-beyond-gpus", "16", "--num_gpus 8"),
    Row("deepspeed --num_gpus=4 t.py", seen="4", remedy="--num_gpus 8", **IDLE),
    Row("deepspeed --num_nodes 2 t.py", "launcher-nodes", "--num_nodes 2", "Write 1"),
    Row("deepspeed --hostfile h --num_nodes 4 t.py", "launcher-nodes", "--num_nodes 4", "Write 2", nodes=2),
    Row("deepspeed t.py --deepspeed ds.json", "launcher-hosts", "no hosts", "process_count_per_instance: 8", nodes=2),
    Row("deepspeed --include localhost:0,1,8 t.py", "processes-beyond-gpus", "localhost:0,1,8", "up to 7"),
    Row("deepspeed --include=localhost:0,1 t.py", seen="2 processes", remedy="--include", **IDLE),
    Row("deepspeed --include localhost:0,1 --num_gpus 2 t.py", "launcher-options", "--include", "Leave the counts out"),
    Row("deepspeed --no_ssh --hostfile h --master_addr $MASTER_ADDR t.py", "launcher-rank", "--node_rank", "$NODE_RANK",
        nodes=2),
    Row("deepspeed --no_ssh --hostfile h --node_rank $NODE_RANK t.py", "launcher-address", "master_addr",
        "$MASTER_ADDR", nodes=2),
    Row("deepspeed --num_gpus 8 t.py", "launcher-in-command", "8 times", "`python`", distribution=EIGHT),
    # mpirun, mpiexec, horovodrun
    *(
        row
        for program in ("mpirun --allow-run-as-root", "mpiexec", "horovodrun")
        for row in (
            Row(f"{program} -np 16 python train.py", "processes-beyond-gpus", "16", "GPUs"),
            Row(f"{program} -np 4 python t.py", seen="4", remedy="GPUs", **IDLE),
            Row(f"{program} -np 16 python t.py", "launcher-hosts", "no hosts", "Azure ML", nodes=2, distribution=MPI_1),
            Row(f"{program} -np 16 -H localhost:16 python t.py", "launcher-address", "localhost:16", "Azure", nodes=2),
            Row(f"{program} -np 8 python t.py", "launcher-in-command", "8 times", "`python`", distribution=MPI_8),
        )
    ),
    Row("mpirun python t.py", "launcher-count", "no number", "-np 8", level="warning"),
    Row("horovodrun python t.py", "launcher-count", "no number", "-np 8"),
    Row("mpirun -np 64 ./simulation", "processes-beyond-gpus", "64", "GPUs", level="warning"),
    Row("mpirun --map-by ppr:16:node python train.py", "processes-beyond-gpus", "16", "GPUs"),
    Row("mpirun -H a,b -np 32 python train.py", "processes-beyond-gpus", "16", "GPUs", nodes=2),
    Row("mpirun -np 8 torchrun --nproc_per_node 8 t.py", "launcher-in-command", "`mpirun` starts `torchrun` 8", "once"),
    Row(f"mpirun -np 8 {RUN} --nproc_per_node 8 t.py", "launcher-in-command", "starts `torchrun` 8 times", "once"),
    # Lightning
    Row("python light.py fit --trainer.devices 16", "processes-beyond-gpus", "16", "8 devices", distribution=EIGHT[:0]),
    Row("python light.py fit --trainer.devices 4", seen="4", remedy="8 devices", distribution="", **IDLE),
    Row("python light.py fit --trainer.num_nodes=4 --trainer.devices=8", "launcher-nodes", "num_nodes 4", "Write 2",
        nodes=2, distribution=EIGHT),
    Row("python light.py --num_nodes 1 --devices 8", "launcher-nodes", "2 nodes", "Write 2",
        nodes=2, distribution=EIGHT),
    Row("python light.py fit --trainer.devices 4 --trainer.num_nodes 2", "launcher-count", "4 devices", "8 devices",
        nodes=2, distribution=EIGHT),
    Row("python light.py fit --trainer.devices 8 --trainer.num_nodes 2", "launcher-alone", "LOCAL_RANK",
        "env -u LOCAL_RANK", nodes=2),
]  # fmt: skip

RIGHT = [
    Row("torchrun --nproc_per_node 8 train.py"),
    Row("torchrun --standalone --nproc-per-node=gpu train.py"),
    Row("torchrun --nproc_per_node auto train.py --nproc_per_node 3"),
    Row("torchrun --nproc_per_node $(nvidia-smi -L | wc -l) --nnodes 1 train.py"),
    Row(f"torchrun --nnodes 2 --nproc_per_node 8 {MEET} train.py", nodes=2),
    Row(f"{RUN} --nnodes=$AZUREML_NODE_COUNT --nproc_per_node=8 {MEET} train.py", nodes=2),
    Row(f"{LAUNCH} --use_env --nnodes $WORLD_SIZE --nproc_per_node $GPUS {MEET} train.py", nodes=2),
    Row("torchrun --nnodes 1:4 --nproc_per_node 8 --rdzv_backend c10d --rdzv_id $AZUREML_RUN_ID --rdzv_endpoint "
        "$MASTER_ADDR:$MASTER_PORT train.py", nodes=2),
    Row("torchrun --nnodes ${{inputs.n}} --nproc_per_node ${{inputs.g}} " + MEET + " t.py", nodes=2,
        more="inputs: {n: 2, g: 8}"),
    Row("torchrun $ARGS train.py", nodes=2),
    Row("torchrun --nproc_per_node 8 train.py", nodes=2,
        more="environment_variables: {PET_NNODES: '2', PET_NODE_RANK: $NODE_RANK, PET_MASTER_ADDR: $MASTER_ADDR}"),
    Row("bash right.sh", nodes=2),
    Row("bash right.sh", nodes=1),
    Row("bash absent.sh && bash ../outside.sh && bash $SCRIPT", nodes=2),
    Row("pip install deepspeed accelerate torchrun && echo mpirun horovodrun && python train.py", distribution=EIGHT),
    Row("accelerate config default && accelerate test", distribution=EIGHT),
    Row("accelerate launch --num_processes 8 train.py"),
    Row("GPUS=16 && bash default.sh"),
    Row("torchrun --nproc 8 train.py"),
    Row("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 2 train.py & CUDA_VISIBLE_DEVICES=2,3 bash two.sh"),
    Row("python train.py --num_nodes 1000 --devices 8", nodes=2, distribution=EIGHT),
    Row("accelerate launch train.py"),
    Row(f"accelerate launch --multi_gpu --num_machines 2 --num_processes 16 {ACCELERATE} train.py", nodes=2),
    Row(f"accelerate launch --num_machines 2 --num_processes 16 {ACCELERATE} train.py", nodes=2),
    Row("accelerate launch --config_file one.yaml train.py"),
    Row(f"accelerate launch --config_file=two.yaml {ACCELERATE} train.py", nodes=2),
    Row(f"accelerate launch --config_file two.yaml {ACCELERATE} --num_processes $N train.py", nodes=2),
    Row(f"accelerate launch --config_file standard.yaml {ACCELERATE} train.py", nodes=2),
    Row("accelerate launch --config_file absent.yaml train.py", nodes=2),
    Row("accelerate launch --config_file ${{inputs.config}} train.py", nodes=2, more="inputs: {config: absent.yaml}"),
    Row("deepspeed train.py --deepspeed ds.json --num_gpus 3"),
    Row("deepspeed --num_gpus 8 --master_port 29501 train.py"),
    Row("deepspeed --hostfile /job/hostfile train.py", nodes=2),
    Row("deepspeed --no_ssh --hostfile h --node_rank $NODE_RANK --master_addr $MASTER_ADDR train.py", nodes=2),
    Row("deepspeed --include localhost:0,1,2,3,4,5,6,7 train.py"),
    Row("mpirun --allow-run-as-root -np 8 -x NCCL_DEBUG=INFO --mca btl tcp python train.py -np 3"),
    Row("mpirun -np 16 --hostfile $HOSTS --map-by ppr:8:node python train.py", nodes=2),
    Row("horovodrun -np 8 -H localhost:8 python train.py"),
    Row("mpirun -np 2 -H a,b --map-by ppr:1:node torchrun $ARGS train.py", nodes=2),
    Row("python light.py fit --trainer.devices 8 --trainer.num_nodes 2", nodes=2, distribution=EIGHT),
    Row("env -u WORLD_SIZE -u RANK -u LOCAL_RANK python light.py fit --trainer.devices 8 --trainer.num_nodes 2",
        nodes=2),
    Row("unset LOCAL_RANK RANK; python light.py --num_nodes 2 --devices 8", nodes=2),
    Row("python light.py fit --trainer.devices auto --trainer.num_nodes $N", nodes=2),
    Row("python train.py --devices 3", distribution=EIGHT),
    Row("python train.py", nodes=2, distribution=EIGHT),
    Row("torchrun --nproc_per_node 16 train.py", size=CPU),
    Row("export MASTER_ADDR=localhost; python train.py", distribution=EIGHT),
    Row("torchrun --nproc_per_node 16 train.py", size=""),
]  # fmt: skip


def judged(folder: Path, row: Row) -> list[Finding]:
    """The findings on launchers of a job file; one whose `command` stands in line 3."""
    code = folder / "src"
    code.mkdir()
    (code / "tools").mkdir()
    for name, text in FILES.items():
        (code / name).write_text(textwrap.dedent(text))
    target = f"  instance_type: {row.size}\n" if row.size else ""
    distribution = f"distribution: {row.distribution}\n" if row.distribution else ""
    command = row.command.replace("'", "''")
    (folder / "job.yml").write_text(
        f"type: command\ncode: src\ncommand: '{command}'\nenvironment: azureml:e:1\n{distribution}"
        f"resources:\n  instance_count: {row.nodes}\n{target}{row.more}\n"
        + ("" if row.size else "compute: azureml:somewhere\n")
    )
    loaded = jobs.load(folder / "job.yml")
    assert not [each for each in loaded.findings if each.level is Level.ERROR]
    (job,) = loaded.jobs
    size = jobs.Target(size=row.size or None)
    found = jobs.resolve(job, lambda _: (size, ()), source=loaded.source).findings
    return [each for each in found if each.code.startswith(JUDGED)]


@for_each("row", WRONG)
def test_a_mistake_of_a_launcher_is_found_with_line_and_remedy(row: Row, tmp_path: Path) -> None:
    (found,) = judged(tmp_path, row)

    assert found.code == row.code
    assert row.seen in found.seen, found.seen
    assert found.rule
    assert row.remedy in found.remedy, found.remedy
    assert found.level == row.level
    assert found.line == (row.line or 3)
    assert found.file is not None
    assert found.file.endswith(".sh" if row.line else "job.yml")


@for_each("row", RIGHT)
def test_a_right_launcher_raises_nothing(row: Row, tmp_path: Path) -> None:
    assert [str(each) for each in judged(tmp_path, row)] == []


def test_a_launcher_without_rules_of_its_own_is_judged_by_its_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(starters.STARTERS, "colossalai", starters.Starter(ranks=("nproc-per-node",), verb="run"))
    monkeypatch.setattr(launches, "MAY_START", re.compile("colossalai"))
    monkeypatch.setattr(job_planning, "MAY_START", re.compile("colossalai"))

    (found,) = judged(tmp_path, Row("colossalai run --nproc_per_node 16 train.py"))
    assert found.code == "processes-beyond-gpus"
