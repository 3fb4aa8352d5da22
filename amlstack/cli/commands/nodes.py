"""Verbs that reach into the nodes of a running job: ``shell`` and ``forward``."""

from __future__ import annotations

import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amlstack import processes
from amlstack.cli.commands.runs import Job
from amlstack.cli.console import end, say
from amlstack.cli.workspace.options import AskedWorkspace

if TYPE_CHECKING:
    from amlstack.cli.workspace.job_search import WorkspaceJob

Node = Annotated[int, typer.Option(metavar="N", min=0, help="The node, from 0.")]
Port = Annotated[int, typer.Argument(min=1, max=65535, help="A port on which the job listens.")]


def shell(asked: AskedWorkspace, job: Job, *, node: Node = 0) -> int:
    """Open a shell on a node of a job that runs on the sandbox, as its first process there sees the node.

    It has that process's variables, its folder and its inputs, and ends with the job. Without a terminal it runs the
    commands that come on the standard input. On Azure it prints the `az ml job connect-ssh` that does this.

    Exit status: that of the shell; 1 the job does not run there, or the service refused; 2 wrong use, or on Azure.

    Examples:
        amlstack shell ddp-torchrun --node 1

        echo 'env | grep NCCL' | amlstack shell ddp-torchrun
    """
    from amlstack.sandbox.processes import MARK, NODE

    found = _of_sandbox(asked, job, node)
    on_node = processes.find_marked(NODE, str(node))
    pid = next((pid for pid in on_node if (processes.mark_of(pid, MARK) or "").endswith(f":{found.name}")), None)
    if pid is None:
        end(f"Nothing of {found.name} runs on node {node}: it is {found.record.status}.", 1)
    of = Path("/proc", str(pid))
    given = (of / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
    apart = {kind: (of / "ns" / kind).readlink() != Path("/proc/self/ns", kind).readlink() for kind in ("user", "mnt")}
    enter = [
        "nsenter",
        "--target",
        str(pid),
        "--wd",
        "--mount",
        *(["--user", "--preserve-credentials"] * apart["user"]),
    ]
    if apart["mnt"] and shutil.which("nsenter") is None:
        say("nsenter (util-linux) is not installed: mounted inputs are not seen", err=True)
    ended = subprocess.run(
        [*(enter if apart["mnt"] and shutil.which("nsenter") else ()), "bash"],
        env=dict(each.split("=", 1) for each in given if "=" in each),
        cwd=(of / "cwd").readlink(),
        check=False,
    )
    return ended.returncode


def forward(asked: AskedWorkspace, job: Job, port: Port, *, node: Node = 0) -> int:
    """Print the address of a port on which a job of the sandbox listens; on Azure the command that forwards it.

    Nodes of the sandbox share this machine's network: what listens there can be reached as it is.

    Exit status: 0 printed, 1 nothing listens there, or the service refused; 2 wrong use, or on Azure.

    Examples:
        amlstack forward train 6006
    """
    found = _of_sandbox(asked, job, node, f' --ssh-args "-L {port}:localhost:{port}"')
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError as error:
        end(f"Nothing of {found.name} ({found.record.status}) answers on port {port}: {error.strerror}.", 1)
    say(f"http://127.0.0.1:{port}")
    return 0


def _of_sandbox(asked: AskedWorkspace, job: str, node: int, more: str = "") -> WorkspaceJob:
    """A job of the sandbox; the verb ends with 2, and with Azure's own command, for a job of Azure."""
    from amlstack.cli.workspace import job_search, refusals

    with refusals.opened(asked) as (where, _):
        found = job_search.find(where, job)
    if not where.is_local:
        end(_on_azure(found, node, more))
    return found


def _on_azure(found: WorkspaceJob, node: int, more: str) -> str:
    services = (found.record.properties.get("services") or {}).values()
    has = any(str(each.get("jobServiceType")).lower() == "ssh" for each in services if isinstance(each, dict))
    _, _, _, _, group, *_, workspace = found.workspace.split("/")
    return (
        f"{'' if has else 'The job has no service of the type `ssh`: declare one with `ssh_public_keys`. '}"
        f"Azure ML lets its owner in: `az ml job connect-ssh --name {found.name} --node-index {node} "
        f"--private-key-file-path KEY --workspace-name {workspace} --resource-group {group}{more}`."
    )
