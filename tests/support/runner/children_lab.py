"""Components, pipelines and sweeps in a `Lab`, and what became of their children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.runner.runner_lab import CLUSTER, ML, PLAIN, WORKSPACE

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.runner.runner_lab import Lab

FOLDER = {"type": "uri_folder"}


def component(lab: Lab, name: str, command: str, **spec: Any) -> str:
    """Registers a command component; its id."""
    identity = f"{WORKSPACE}/components/{name}/versions/1"
    fields = {"type": "command", "command": command, "environment": f"azureml:{PLAIN}", **spec}
    body = {"properties": {"componentSpec": fields}}
    lab.store.resources.put(identity, f"{ML}/workspaces/components/versions", identity.rsplit("/", 2)[0], body)
    return identity


def pipeline_component(lab: Lab, name: str, jobs: dict[str, Any], **spec: Any) -> str:
    """Registers a pipeline component; its id."""
    identity = f"{WORKSPACE}/components/{name}/versions/1"
    body = {"properties": {"componentSpec": {"type": "pipeline", "jobs": jobs, **spec}}}
    lab.store.resources.put(identity, f"{ML}/workspaces/components/versions", identity.rsplit("/", 2)[0], body)
    return identity


def step(component_id: str, **more: Any) -> dict[str, Any]:
    """A step of a component."""
    return {"type": "command", "componentId": component_id, **more}


def bound(text: str) -> dict[str, str]:
    """An input that is a binding, or a value."""
    return {"job_input_type": "literal", "value": text}


def pipeline(lab: Lab, jobs: dict[str, Any], *, name: str = "pipe", **properties: Any) -> str:
    """Records a pipeline; its key."""
    body = {"jobType": "Pipeline", "jobs": jobs, "settings": {"default_compute": CLUSTER}, **properties}
    return lab.store.jobs.add(WORKSPACE, name, {"properties": body}).id


def children(lab: Lab, parent: str) -> dict[str, JobRow]:
    """Rows of a parent's children by place."""
    return {place: lab.store.jobs[key] for place, key in lab.store.family.children(parent).items()}


def statuses(lab: Lab, parent: str) -> dict[str, str]:
    """Their statuses."""
    return {place: row.status for place, row in children(lab, parent).items()}


def child_log(lab: Lab, parent: str, place: str) -> str:
    """The first process's log of a child."""
    folder: Path = lab.folder(children(lab, parent)[place].id)
    return (folder / "user_logs" / "std_log_process_00.txt").read_text()


def sweep(lab: Lab, command: str, space: dict[str, Any], *, name: str = "sweep", **properties: Any) -> str:
    """Records a sweep of a command; its key."""
    body = {
        "jobType": "Sweep",
        "trial": {"command": command, "environmentId": PLAIN},
        "searchSpace": space,
        "samplingAlgorithm": {"samplingAlgorithmType": "Random", "seed": 1},
        "objective": {"goal": "minimize", "primaryMetric": "loss"},
        "computeId": CLUSTER,
        **properties,
    }
    return lab.store.jobs.add(WORKSPACE, name, {"properties": body}).id
