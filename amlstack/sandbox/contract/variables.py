"""Variables that tell a job's processes their run and the address of MLflow's service.

All environment variables of a process, layer upon layer.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.sandbox import gpu_code, processes, scale
from amlstack.sandbox.contract import launch
from amlstack.sandbox.protocol import entra
from amlstack.sandbox.store.store import folder, job_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.sandbox.contract.spec import Spec
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


LOGS = "user_logs"


def environ(
    home: Path,
    job: JobRow,
    spec: Spec,
    place: launch.RankPlace,
    *,
    run: Mapping[str, str],
    addresses: Sequence[int],
    built: Path,
    root: Path,
    temp: Path,
    carrying: gpu_code.Carrying | None = None,
) -> dict[str, str]:
    """The whole environment of one process; makes the folders that it names.

    Args:
        home: The sandbox's home.
        job: The job's row.
        spec: What it asked for.
        place: Where the process stands.
        run: What tells it which run it belongs to (`tracking.variables`).
        addresses: Free ports, as `contract.rank_variables` wants them.
        built: Folder of the environment.
        root: Folder of the node.
        temp: The job's temporary folder.
        carrying: How its GPU calls run on the CPU; None where they do not.
    """
    own_temp = temp / str(place.node)
    own_home = root / "home"
    for path in (own_temp, own_home):
        path.mkdir(parents=True, exist_ok=True)
    folder = job_folder(home, job.id)
    cores = len(os.sched_getaffinity(0))
    error = folder / LOGS / f"process_{place.rank:02d}_error.json"
    variables = {
        **launch.base_variables(built, own_home, own_temp),
        "OMP_NUM_THREADS": str(launch.threads(spec, cores)),
        "CUDA_VISIBLE_DEVICES": launch.gpus(spec, place, gpus_here()),
        **launch.variables(torchrun_logs(folder, place.rank), error, addresses[0]),
        **run,
        **spec.variables,
        **(carrying.apply(spec.variables) if carrying is not None else {}),
        **launch.STAND_INS,
        **launch.rank_variables(spec, place, addresses),
        processes.MARK: processes.mark(home, job.id),
        processes.NODE: str(place.node),
    }
    if carrying is not None:
        variables["PATH"] = gpu_code.programs(temp, variables["PATH"])
    if spec.scale is not None:
        variables["PATH"] = scale.write(temp, variables["PATH"], spec.scale, spec.declared[0])
    for name, (_declared, used) in replaced(spec).items():
        if not used:
            del variables[name]
    return variables


def replaced(spec: Spec) -> dict[str, tuple[str, str]]:
    """Job variables that cannot hold on one machine: name → (declared, used); an empty ``used`` means dropped."""
    found = launch.replaced(spec)
    for name in ("NCCL_TOPO_FILE", "NCCL_GRAPH_FILE"):
        file = spec.variables.get(name)
        if file and not Path(file).is_file():  # a file of the real image
            found[name] = (file, "")
    return found


def torchrun_logs(folder: Path, rank: int) -> Path:
    """The folder where torchrun, started as this process, keeps the logs of its own ranks while it runs."""
    return folder / LOGS / "torchrun" / f"process_{rank:02d}"


def gpus_here() -> int:
    """GPUs of this machine."""
    return len([path for path in Path("/dev").glob("nvidia*") if path.name[len("nvidia") :].isdigit()])
