"""Variables that tell a job's processes their run and the address of MLflow's service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from amlstack.sandbox.arm import entra
from amlstack.sandbox.runner.contract import launch
from amlstack.sandbox.store.store import folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

TOKEN_SECONDS = 30 * 24 * 3600
"""How long a job's token is good: it is not renewed, and a rehearsal may be long."""


def variables(store: Store, job: JobRow, experiment: str) -> dict[str, str]:
    """The variables that name the run, its root, and the service that tracks it.

    Args:
        store: The sandbox's tables.
        job: The job's row.
        experiment: Its experiment.
    """
    above = store.family.above(job.id)
    root = store.jobs.get(above[-1]) if above else None
    named = launch.run_variables(job.workspace, job.name, experiment, None if root is None else root.name)
    return {**named, **_mlflow(store.home, job, named["AZUREML_EXPERIMENT_ID"], experiment)}


def _mlflow(home: Path, job: JobRow, experiment_id: str, experiment: str) -> dict[str, str]:
    """MLflow's own variables, as Azure ML sets them; none while no server runs."""
    place = folder(home)
    try:
        endpoint = json.loads((place / "endpoint.json").read_text())
        key = (place / "key").read_text()
    except OSError:
        return {}
    return {
        "MLFLOW_TRACKING_URI": f"{endpoint['url']}/mlflow/v1.0{job.workspace}",
        "MLFLOW_TRACKING_TOKEN": entra.issue(key, endpoint["url"], seconds=TOKEN_SECONDS),
        # Not the service's: its certificate is no one's that clients know.
        "MLFLOW_TRACKING_SERVER_CERT_PATH": endpoint["ca"],
        "MLFLOW_RUN_ID": job.name,
        "MLFLOW_EXPERIMENT_ID": experiment_id,
        "MLFLOW_EXPERIMENT_NAME": experiment,
    }
