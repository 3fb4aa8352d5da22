"""The machines of a job's nodes: shares of this one, or an allocation of Slurm. Nothing above knows which."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from amlstack.sandbox import contract, slurm
from amlstack.sandbox.contract import NodeNetwork, RefusedError
from amlstack.sandbox.store.store import folder as sandbox_folder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.sandbox.contract import Spec

_FACTS = Path(__file__).with_name("node_facts.py")


class JobNodes(Protocol):
    """The machines that one job was given, a node each."""

    @property
    def remote(self) -> str:
        """The way in which `mpi_rsh` starts a program on a node, as JSON; empty where all nodes are this machine."""

    @property
    def scratch(self) -> Path | None:
        """A folder that all nodes see, for the job's temporary files; None for this machine's own."""

    @property
    def mpirun(self) -> str:
        """Path of the mpirun that the site wants; empty for the environment's."""

    @property
    def container(self) -> str:
        """The way into the image of a job's environment; empty where the stand-in is used."""

    def inside(self, node: int, image: str, folders: Iterable[Path], *, gpus: bool) -> tuple[str, ...]:
        """The words before a rank that put it into an image.

        Args:
            node: Where it runs.
            image: The image.
            folders: What it shall find by the same paths in there.
            gpus: Whether it has GPUs.
        """
        ...

    def network(self, spec: Spec) -> NodeNetwork:
        """The facts of the nodes.

        Raises:
            RefusedError: A node does not answer.
        """
        ...

    def command(self, node: int) -> tuple[str, ...]:
        """The words before a program that start it on a node, its pipes being those of the words' own process."""
        ...

    def loss(self) -> tuple[slurm.Reason, str] | None:
        """The reason that nodes are gone; None where nobody else has taken them."""
        ...

    def end(self) -> None:
        """Gives the nodes back."""
        ...


@dataclass(frozen=True, slots=True)
class ThisMachine:
    """All nodes are this machine."""

    remote: str = ""
    scratch: Path | None = None
    mpirun: str = ""
    container: str = ""

    def inside(self, node: int, image: str, folders: Iterable[Path], *, gpus: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Nothing: no image is used here."""
        return ()

    def network(self, spec: Spec) -> NodeNetwork:
        """Shares of its cores and GPUs."""
        return NodeNetwork.here(spec, len(os.sched_getaffinity(0)), contract.gpus_here())

    def command(self, node: int) -> tuple[str, ...]:  # noqa: ARG002 - of the port
        """Nothing: a program is started as it is."""
        return ()

    def loss(self) -> None:
        """Nobody takes them."""
        return

    def end(self) -> None:
        """There is nothing to give back."""


@dataclass(slots=True)
class SlurmNodes:
    """An allocation of Slurm. Programs are started by srun, whose pipes are theirs and whose end is theirs.

    Attributes:
        folder: The job's, on a file system that the nodes share.
        home: The sandbox's home.
        number: Of the allocation.
        hosts: Names of its nodes.
        profile: What was asked for.
        binds: Slurm binds programs to cores unless it is told not to; where it cannot, it complains of being told.
    """

    folder: Path
    home: Path
    number: str
    hosts: tuple[str, ...]
    profile: slurm.SlurmProfile
    binds: bool
    _claim: subprocess.Popen[bytes] | None = None

    @property
    def scratch(self) -> Path:
        """The job's folder."""
        return self.folder

    @property
    def remote(self) -> str:
        """The words of srun, and the nodes' names; ranks have none of this process's variables."""
        return json.dumps({"words": (*self._found(), *self._srun()), "hosts": self.hosts})

    @property
    def mpirun(self) -> str:
        """That of the profile."""
        return self.profile.mpirun

    @property
    def container(self) -> str:
        """That of the profile."""
        return self.profile.container

    def inside(self, node: int, image: str, folders: Iterable[Path], *, gpus: bool) -> tuple[str, ...]:
        """Options of pyxis (github.com/NVIDIA/pyxis, README), or of ``apptainer exec`` (its manual)."""
        if self.container != "pyxis":
            binds = (word for folder in folders for word in ("--bind", str(folder)))
            return (self.container, "exec", *(("--nv",) if gpus else ()), *binds, f"docker://{image}")
        # enroot sets a registry apart by a number sign.
        first, slash, rest = image.partition("/")
        named = f"{first}#{rest}" if slash and "." in first else image
        mounts = ",".join(f"{folder}:{folder}" for folder in folders)
        return (
            *(*self._found(), *self._srun(), "--nodes=1", "--ntasks=1", "-w", self.hosts[node]),
            *(f"--container-image={named}", f"--container-mounts={mounts}", "--no-container-mount-home"),
        )

    def network(self, spec: Spec) -> NodeNetwork:
        """The facts that a small program on each node sees."""
        try:
            endpoint = json.loads((sandbox_folder(self.home) / "endpoint.json").read_text())["url"].rpartition("/")[2]
        except OSError:
            endpoint = ""
        per_node = contract.ports_needed(spec)
        words = [*self._srun(), f"--nodes={spec.nodes}", f"--ntasks={spec.nodes}", "--ntasks-per-node=1"]
        program = [sys.executable, "-I", "-S", str(_FACTS), str(per_node), endpoint]
        done = subprocess.run(
            [*words, "-w", ",".join(self.hosts), *program],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        found = {line["node"]: line for line in lines}
        if missing := [host for host in self.hosts[: spec.nodes] if host not in found]:
            message = f"Nodes of Slurm's job {self.number} did not start a program: {', '.join(missing)}. {done.stderr}"
            raise RefusedError(message.strip(), "SlurmNodeFailed")
        nodes = [found[host] for host in self.hosts[: spec.nodes]]
        drawn = [iter(node["ports"]) for node in nodes]
        places = contract.places(spec)[:per_node]
        return NodeNetwork(
            tuple(node["address"] for node in nodes),
            tuple(next(drawn[place.node]) for place in places),
            tuple(node["cores"] for node in nodes),
            tuple(tuple(node["gpus"]) for node in nodes),
            shared=False,
            apart=len({node["machine"] for node in nodes}) == len(nodes),
            mounts=all(node["mounts"] for node in nodes),
            tracked=all(node["tracked"] for node in nodes),
        )

    def command(self, node: int) -> tuple[str, ...]:
        """One srun for it alone."""
        return (*self._srun(), "--nodes=1", "--ntasks=1", "-w", self.hosts[node])

    def loss(self) -> tuple[slurm.Reason, str] | None:
        """Slurm's reason."""
        return slurm.loss(self.number)

    def claim(self) -> SlurmNodes:
        """Keeps the nodes until `end`, or until this process is gone: the step ends with its input."""
        words = [*self.command(0), "sh", "-c", 'exec cat > "$0"', str(self.folder / slurm.HELD)]
        self._claim = subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True)
        return self

    def end(self) -> None:
        """Cancels the allocation, and with it whatever is left on its nodes."""
        slurm.cancel(self.number)
        if self._claim is not None and self._claim.stdin is not None:
            self._claim.stdin.close()
            self._claim.wait()

    @staticmethod
    def _found() -> tuple[str, ...]:
        """Words that tell srun its site where this process's variables are missing."""
        conf = os.environ.get("SLURM_CONF")
        return ("/usr/bin/env", f"SLURM_CONF={conf}") if conf else ()

    def _srun(self) -> tuple[str, ...]:
        gres = dict(self.profile.options).get("gres")
        return (
            *(shutil.which("srun") or "srun", f"--jobid={self.number}", "--overlap", "--mem=0"),
            *("--unbuffered", "--quiet", "--kill-on-bad-exit=0", "--export=ALL", f"--chdir={self.folder}"),
            *((f"--gres={gres}",) if gres else ()),
            *(("--cpu-bind=none",) if self.binds else ()),
        )


def nodes_of(home: Path, folder: Path) -> JobNodes:
    """The nodes of a job.

    Args:
        home: The sandbox's home.
        folder: The job's folder.
    """
    try:
        noted = json.loads((folder / slurm.ALLOCATION).read_text())
    except FileNotFoundError:
        return ThisMachine()
    profile = slurm.SlurmProfile.read(noted["profile"])
    return SlurmNodes(folder, home, noted["number"], tuple(noted["hosts"]), profile, noted["binds"]).claim()
