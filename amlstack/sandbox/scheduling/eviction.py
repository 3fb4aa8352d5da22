"""Pre-emption emulated: a node of a running job is taken away, as the service takes low-priority nodes."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

from amlstack.sandbox import processes
from amlstack.sandbox.store import job_names
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

AGENT = "agent.json"
"""In a node's folder: its agent's pid and start time."""

EVICTED = "evicted"
"""In a node's folder: the node was taken away, it did not break."""


class EvictError(Exception):
    """There is no such job or node to take away; the message names what there is."""


def evict(store: Store, wanted: str, node: int) -> JobRow:
    """Takes one node of a running job away, with all its processes and its disk.

    The job's runner sees it as it sees a node that breaks, and ends the job.

    Args:
        store: The sandbox's tables.
        wanted: The job's name, or its beginning up to a hyphen, as in the job's file; of a step or trial the same of
            its parent, a slash, and the step's name or the trial's number.
        node: The node's number in the job, from 0.

    Returns:
        The job.

    Raises:
        EvictError: No such job runs, or it has no such node.
    """
    job = _running(store, wanted)
    place = job_folder(store.home, job.id) / "nodes" / str(node)
    if not 0 <= node < len(job.nodes):
        message = f"{job.name} runs on {len(job.nodes)} node(s): 0 to {len(job.nodes) - 1}. There is no node {node}."
        raise EvictError(message)
    try:
        agent = json.loads((place / AGENT).read_text())
    except FileNotFoundError:
        agent = {"pid": None, "started": None}
    if not processes.alive(agent["pid"], agent["started"]):
        message = f"Node {node} of {job.name} has no process left: the job is ending."
        raise EvictError(message)
    (place / EVICTED).touch()
    processes.send(agent["pid"], signal.SIGKILL)
    return job


def evicted(folder: Path, nodes: int) -> int | None:
    """The first node of a job that was taken away.

    Args:
        folder: The job's folder.
        nodes: How many it has.
    """
    return next((node for node in range(nodes) if (folder / "nodes" / str(node) / EVICTED).exists()), None)


def note_agent(place: Path, pid: int) -> None:
    """Keeps who a node's agent is, for `evict`."""
    fresh = place / f"{AGENT}.new"
    fresh.write_text(json.dumps({"pid": pid, "started": processes.started(pid)}))
    fresh.replace(place / AGENT)  # a reader sees none or all of it


def _running(store: Store, wanted: str) -> JobRow:
    running = [job for job in store.jobs.list(active=True) if job.status == "Running" and job.nodes]
    try:
        return job_names.find(store, wanted, running, what="running")
    except job_names.UnknownJobError as error:
        raise EvictError(str(error)) from None
