"""All environment variables of a process, layer upon layer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.sandbox import gpu_code
from amlstack.sandbox.runner.contract import launch, torchrun
from amlstack.sandbox.scale import wrappers
from amlstack.sandbox.server import processes
from amlstack.sandbox.store.store import job_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.sandbox.runner.contract.spec import Spec
    from amlstack.sandbox.store.store import JobRow

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
        **torchrun.variables(torchrun_logs(folder, place.rank), error, addresses[0]),
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
        variables["PATH"] = wrappers.write(temp, variables["PATH"], spec.scale, spec.declared[0])
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
    """Where torchrun, started as this process, keeps the logs of its own ranks while it runs."""
    return folder / LOGS / "torchrun" / f"process_{rank:02d}"


def gpus_here() -> int:
    """GPUs of this machine."""
    return len([path for path in Path("/dev").glob("nvidia*") if path.name[len("nvidia") :].isdigit()])
