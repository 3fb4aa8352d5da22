"""MPI jobs: the real mpirun over the job's nodes, whose made-up names it reaches through their agents' rsh sockets."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.images import standins
from amlstack.sandbox.contract.spec import RefusedError
from amlstack.sandbox.runner.node_agent import LAUNCHER, NodePlan

if TYPE_CHECKING:
    from amlstack.sandbox.contract.spec import Spec

PACKAGES = "openmpi-bin libopenmpi-dev"
LOG = "mpi_log.txt"
"""mpirun's own words, in the job's ``user_logs``."""

SOCKET = "rsh"
NODES = "AMLSTACK_SANDBOX_NODES"
PLAN = "AMLSTACK_SANDBOX_PLAN"
_HERE = Path(__file__).parent
_VERSION = re.compile(r"\(Open MPI\) (\d+)\.")

# All "nodes" are one machine: TCP over the loopback instead of the fabric, ranks that wait give their core away, and no
# binding, which would put the first ranks of all nodes on the same core. The daemons stay below their node's agent.
_MACHINE = (
    *("--leave-session-attached", "--bind-to", "none"),
    *("--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include", "lo", "--mca", "mpi_yield_when_idle", "1"),
)
_FOUR = ("--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "lo", "--mca", "plm_rsh_agent")
# Open MPI 5 starts its daemons by PRRTE, which has other names and takes no loopback for its own messages: these go to
# the first address of this machine, and never leave it.
_FIVE = ("--prtemca", "plm_ssh_no_tree_spawn", "1", "--prtemca", "plm_ssh_agent")


def on_machine() -> str:
    """The machine's mpirun when it is Open MPI 4, else empty: others name their options differently."""
    found = shutil.which("mpirun")
    if found is None:
        return ""
    printed = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    version = _VERSION.search(printed)
    return found if version is not None and int(version[1]) == 4 else ""


def is_brought(image: str) -> bool:
    """True where a job's environment brings its Open MPI: the machine has none, or not the release of the image.

    Args:
        image: The image that the environment declares; empty for none.
    """
    return standins.has_openmpi_5(image) or not on_machine()


def find(built: Path) -> str:
    """The mpirun for a job: its environment's own, else the machine's.

    The environment's comes first, since it belongs to the libraries that mpi4py loads there.

    Args:
        built: Folder of the environment.

    Raises:
        RefusedError: Neither has one.
    """
    own = built / "bin" / "mpirun"
    found = str(own) if own.is_file() else on_machine()
    if not found:
        message = (
            f"The job's distribution is Mpi, and its environment {built.name} was compiled against an Open MPI 4 of "
            f"this machine, which is no longer on PATH. Install it again, `apt-get install {PACKAGES}` on Debian and "
            "Ubuntu, run `amlstack sandbox down` so that it is seen, and start the job again."
        )
        raise RefusedError(message, "OpenMpiMissing")
    return found


def command(mpirun: str, spec: Spec, folder: Path) -> tuple[str, ...]:
    """The line of mpirun; writes the files that it names.

    Args:
        mpirun: Path of the program.
        spec: The job.
        folder: Where the host file and the remote shell go; without blanks, since Open MPI splits there.
    """
    hosts, shell, rank = folder / "hosts", folder / "rsh", folder / "rank"
    hosts.write_text("".join(f"node-{node} slots={spec.processes}\n" for node in range(spec.nodes)))
    python = shlex.join([sys.executable, "-I", "-S"])
    shell.write_text(f'#!/bin/sh\nexec {python} {shlex.quote(str(_HERE / "mpi_rsh.py"))} "$@"\n')
    rank.write_text(f'#!/bin/sh\nexec {python} {shlex.quote(str(_HERE / "mpi_rank.py"))} "$AMLSTACK_SANDBOX_PLAN"\n')
    for script in (shell, rank):
        script.chmod(0o700)
    root = ("--allow-run-as-root",) if os.getuid() == 0 else ()
    words = (mpirun, *root, "--hostfile", str(hosts), "--map-by", f"ppr:{spec.processes}:node")
    return (*words, *(_FIVE if is_five(mpirun) else _FOUR), str(shell), *_MACHINE, str(rank))


def is_five(mpirun: str) -> bool:
    """True where a program is mpirun of Open MPI 5, which has PRRTE's launcher beside it."""
    return Path(mpirun).with_name("prterun").is_file()


def node_plan(mpirun: str, spec: Spec, plain: NodePlan, file: Path, folder: Path) -> NodePlan:
    """A node's plan when mpirun starts the ranks: the first agent starts mpirun, every agent opens an rsh socket.

    Args:
        mpirun: Path of the program.
        spec: The job.
        plain: The node with its ranks as the service itself would start them.
        file: Where the plan will be written; the ranks read it.
        folder: The job's temporary folder.
    """
    first = plain.ranks[0]
    rsh = folder / str(plain.node) / SOCKET
    private = {NODES: str(folder), PLAN: str(file)}
    env = {**first.env, **private}
    started = tuple(replace(rank, env={}) for rank in plain.ranks)
    log = str(Path(first.log).with_name(LOG))
    line = (
        replace(first, rank=LAUNCHER, argv=command(mpirun, spec, folder), env=env, log=log) if plain.node == 0 else None
    )
    ranks = (line,) if line else ()
    return replace(plain, ranks=ranks, started=started, rsh=str(rsh), env=env, cwd=first.cwd, private=tuple(private))
