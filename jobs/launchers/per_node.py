"""Launchers of which Azure ML starts one process on each node.

There torchrun, accelerate or a Trainer starts the ranks.
"""

import re
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from amlstack.base.findings import Finding
from jobs.launchers.base import Collectives, Lowered, PyTorchDistribution, Shape, TypedLauncher, put_before
from jobs.launchers.per_process import PerProcess

Ranks = Annotated[StrictInt, Field(ge=1)]

_OWN_STORE = (
    "After a restart nodes count the attempts differently and would meet, in the store they share, at addresses of "
    "ranks that are gone; so each attempt gets a store of its own."
)
RESTARTS = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": ("1", _OWN_STORE)}
"""Measured with torch 2.8 and gloo on two nodes: without it the first restart fails, with it ranks train on."""

PROGRAMS = {
    "torchrun": "torchrun",
    "run": "python -m torch.distributed.run",
    "launch": "python -m torch.distributed.launch --use_env",
}


class TorchRun(TypedLauncher):
    """PyTorch, launched per node: Azure ML starts one process on each node, ``torchrun`` starts the ranks.

    Write the training command as for one process; it is lowered to ``torchrun … train.py``. Azure ML sets
    ``MASTER_ADDR``, ``MASTER_PORT`` and ``NODE_RANK``, torchrun sets each rank's ``RANK``, ``LOCAL_RANK`` and
    ``WORLD_SIZE``.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset(
        {
            "MASTER_ADDR",
            "MASTER_PORT",
            "WORLD_SIZE",
            "RANK",
            "LOCAL_RANK",
            "NODE_RANK",
            "GROUP_RANK",
            "LOCAL_WORLD_SIZE",
        }
    )

    WHY: ClassVar[str] = "Azure ML starts one process on each node, and torchrun there starts and watches the ranks."

    type: Literal["torchrun"] = "torchrun"
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    max_restarts: Annotated[StrictInt, Field(ge=0)] = 0
    """The number of times that torchrun starts all ranks again after one failed; by c10d on several nodes."""
    rdzv: Literal["static", "c10d"] | None = None
    """The rendezvous of the nodes; unset: static, with restarts c10d."""
    program: Literal["torchrun", "run", "launch"] = "torchrun"
    """`torchrun`, its module torch.distributed.run, or the older torch.distributed.launch."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put torchrun in front of the command's training process."""
        ranks = self.processes_per_node or shape.gpus or (1 if shape.gpus == 0 else None)
        program = " ".join([PROGRAMS[self.program], *self._arguments(shape, ranks)])
        lowered, findings = put_before(program, command, "TorchRun")
        if self.max_restarts and self._rendezvous == "static" and shape.nodes > 1:
            findings += (
                Finding(
                    "torchrun-restarts",
                    "launcher.rdzv",
                    f"max_restarts is {self.max_restarts} with a static rendezvous on {shape.nodes} nodes",
                    "Only a c10d rendezvous brings all nodes' ranks back together after a restart",
                    "Write rdzv='c10d', or leave it out.",
                ),
            )
        restarts = self.max_restarts and self._rendezvous == "c10d" and shape.nodes > 1
        distribution = PyTorchDistribution(process_count_per_instance=1)
        return Lowered(lowered, distribution, ranks, RESTARTS if restarts else {}, findings)

    @property
    def _rendezvous(self) -> str:
        return self.rdzv or ("c10d" if self.max_restarts else "static")

    # Options are spelt with underscores: torchrun before 2.0 knows no other form.
    def _arguments(self, shape: Shape, ranks: int | None) -> list[str]:
        arguments = [f"--nnodes {shape.nodes}", f"--nproc_per_node {ranks or 'gpu'}"]
        if self._rendezvous == "c10d":
            arguments += [
                "--rdzv_backend c10d",
                "--rdzv_endpoint $MASTER_ADDR:$MASTER_PORT",
                "--rdzv_id ${AZUREML_RUN_ID:-job}",
            ]
        else:
            arguments += ["--node_rank $NODE_RANK", "--master_addr $MASTER_ADDR", "--master_port $MASTER_PORT"]
        if self.max_restarts:
            arguments.append(f"--max_restarts {self.max_restarts}")
        return arguments


class Accelerate(TypedLauncher):
    """Hugging Face Accelerate, launched per node; its total of processes is worked out from nodes and ranks."""

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "Azure ML starts one process on each node, and accelerate there starts the ranks."

    type: Literal["accelerate"] = "accelerate"
    processes_per_node: Ranks | None = None
    """Ranks per node (accelerate itself counts in total); unset: one per GPU, or 1."""
    mixed_precision: Literal["no", "fp16", "bf16", "fp8"] | None = None
    """Handed on as `--mixed_precision`."""
    config_file: str | None = None
    """Accelerate's configuration in the code folder; counts here win over it."""

    def code_files(self) -> tuple[tuple[str, str], ...]:
        """The configuration, which must lie in the code folder."""
        return (("launcher.config_file", self.config_file),) if self.config_file else ()

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put accelerate launch in front of the command's training process."""
        ranks = self.processes_per_node or shape.gpus or 1
        total = ranks * shape.nodes
        words = ["accelerate launch", *([f"--config_file {self.config_file}"] if self.config_file else [])]
        if total > 1:
            words.append("--multi_gpu")
        words += [
            f"--num_machines {shape.nodes}",
            f"--num_processes {total}",
            "--machine_rank $NODE_RANK",
            "--main_process_ip $MASTER_ADDR",
            "--main_process_port $MASTER_PORT",
        ]
        if self.mixed_precision:
            words.append(f"--mixed_precision {self.mixed_precision}")
        lowered, findings = put_before(" ".join(words), command, "Accelerate")
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)


class SingleNode(TypedLauncher):
    """One node without a distribution: torchrun starts a rank per GPU there; one rank leaves the command as it is."""

    RESERVED: ClassVar[frozenset[str]] = frozenset({"RANK", "LOCAL_RANK", "WORLD_SIZE"})
    WHY: ClassVar[str] = "On one node torchrun finds its ranks by itself."

    type: Literal["single-node"] = "single-node"
    backend: Collectives | None = None
    """The backend of the collectives; unset: nothing between nodes, so that no variable is added."""
    processes_per_node: Ranks | None = None
    """Ranks; unset: one per GPU, or 1."""

    def collectives(self, shape: Shape) -> Collectives:
        """Nothing leaves the node, so that no fabric's variable is wanted."""
        del shape
        return self.backend or "gloo"

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Put a standalone torchrun in front of the training process, when it is to have several ranks."""
        ranks = self.processes_per_node or shape.gpus or 1
        findings: tuple[Finding, ...] = ()
        if shape.nodes > 1:
            findings += (
                Finding(
                    "single-node",
                    "nodes",
                    f"{shape.nodes} nodes under SingleNode",
                    "SingleNode's ranks know only their own node, and each node would train the same alone",
                    "Write one node, or use TorchRun.",
                ),
            )
        lowered = command
        if ranks > 1:
            lowered, wrong = put_before(f"torchrun --standalone --nproc_per_node {ranks}", command, "SingleNode")
            findings += wrong
        return Lowered(lowered, None, ranks, {}, findings)


UNSET = ("WORLD_SIZE", "RANK", "LOCAL_RANK")
"""Azure ML sets these for its one process per node; Lightning then believes that its ranks run already."""

_FLAG = re.compile(r"--(?:trainer\.)?(?P<name>num_nodes|devices)[=\s]+(?P<value>\d+)\b")


class Lightning(TypedLauncher):
    """PyTorch Lightning, launched per node: the Trainer starts one rank per device.

    The Trainer's ``num_nodes`` and ``devices`` must be the job's: hand them on with ``arguments``, or write them in the
    command, where they are compared.
    """

    RESERVED: ClassVar[frozenset[str]] = frozenset({"MASTER_ADDR", "MASTER_PORT", "NODE_RANK", *UNSET})
    WHY: ClassVar[str] = (
        "Lightning starts a node's ranks itself, and wants MASTER_ADDR, MASTER_PORT and NODE_RANK set and no rank."
    )

    type: Literal["lightning"] = "lightning"
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total), the Trainer's `devices`; unset: one per GPU, or 1."""
    arguments: Literal["none", "cli", "flags"] = "none"
    """The way in which num_nodes and devices reach the Trainer: not at all, as LightningCLI's `--trainer.num_nodes`,
    or as `--num_nodes`.
    """

    def lower(self, command: str, shape: Shape) -> Lowered:
        """Take the ranks out of the process's environment, and hand the counts on."""
        ranks = self.processes_per_node or shape.gpus or (1 if shape.gpus == 0 else None)
        unset = " ".join(f"-u {name}" for name in UNSET)
        lowered, wrong = put_before(f"env {unset} python", command, "Lightning")
        if not wrong:
            lowered += self._node_settings(shape.nodes, ranks)
        findings = self._disagreements(command, shape.nodes, ranks) + wrong
        return Lowered(lowered, PyTorchDistribution(process_count_per_instance=1), ranks, {}, findings)

    def _node_settings(self, nodes: int, ranks: int | None) -> str:
        if self.arguments == "none":
            return ""
        prefix = "--trainer." if self.arguments == "cli" else "--"
        return f" {prefix}num_nodes {nodes} {prefix}devices {ranks or 'auto'}"

    def _disagreements(self, command: str, nodes: int, ranks: int | None) -> tuple[Finding, ...]:
        expected = {"num_nodes": nodes, "devices": ranks}
        return tuple(
            Finding(
                "lightning-counts",
                "command",
                f"`{match[0]}` in the command, and the job has {expected[match['name']]}",
                "The Trainer waits for as many ranks as its num_nodes and devices say",
                "Leave it out and set the launcher's `arguments`, or write the job's number.",
            )
            for match in _FLAG.finditer(command)
            if expected[match["name"]] not in (None, int(match["value"]))
        )


class HuggingFace(TypedLauncher):
    """A script on the transformers Trainer, e.g. ``run_glue.py``; the Trainer itself needs no change.

    It is the launcher of a Trainer with DeepSpeed, too (``TrainingArguments(deepspeed=...)``): the Trainer takes its
    ranks from the variables of torchrun, which the launcher ``DeepSpeed`` on MPI does not set.
    """

    RESERVED: ClassVar[frozenset[str]] = TorchRun.RESERVED
    WHY: ClassVar[str] = "The Trainer reads its rank from the environment, which torchrun or Azure ML sets."

    type: Literal["huggingface"] = "huggingface"
    per: Literal["node", "process"] = "node"
    """`node`: torchrun on each node; `process`: Azure ML's ranks."""
    processes_per_node: Ranks | None = None
    """Ranks per node (not in total); unset: one per GPU, or 1."""
    local_rank_argument: StrictBool = False
    """Append `--local_rank $LOCAL_RANK` per process, for a Trainer that reads only the argument."""

    def lower(self, command: str, shape: Shape) -> Lowered:
        """As TorchRun or PerProcess do."""
        if self.per == "node":
            return TorchRun(processes_per_node=self.processes_per_node).lower(command, shape)
        if self.local_rank_argument and "--local_rank" not in command:
            command = f"{command.rstrip()} --local_rank $LOCAL_RANK"
        return PerProcess(processes_per_node=self.processes_per_node).lower(command, shape)
