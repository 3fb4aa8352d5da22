"""1,000 generated command job files, read by both in turns of 50, in one process, after both are warm.

Ours is what `amlstack check` does with a file: read it with the places of its keys, plan it against a size, judge it.
The anchor is azure-ai-ml's `load_job` and its conversion to the REST body.

Where the time of a file goes with the rules of the pack, by cProfile on 2026-11-23: YAML with places 10 %, the model
17 %, the plan 17 %, the body 7 %, the rules 43 %. No part is large, and each is asked for. Counted in instructions
(cachegrind, which other work on the machine does not move), a check of one file takes 1,444 million, and one of 1,000
files takes 4,607 million, 3.2 for each further file: of that the start is three tenths. Both were counted with a second
reader of YAML, which is gone (docs/adr/0005): for 1,000 files it saved 7 % of the processor time.

The floor of the row of all files: a tenth of azure-ai-ml's time for 1,000 files, 6.4 s on that day, leaves 0.64 s. The
start of a process with typer and pydantic takes 0.3 of them, so that 0.34 ms are left for each file. To read a file and
to make its model takes 0.14 ms, with the plan and the rules on sizes 0.48, with all rules of the pack 0.65; printing
the findings and the costs comes on top. The anchor judges nothing.
"""

from __future__ import annotations

import functools
import random
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from measure import Row, cpu, cpu_of

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES, TURN = 1_000, 50
SIZE = "Standard_ND96asr_v4"
_PROJECT = Path(__file__).resolve().parents[3]
_ANCHOR = """\
import sys
sys.path.insert(0, sys.argv[1])
from tests.support.jobs import oracle
for file in sys.argv[2:]:
    oracle.body(file)
"""


def run(*, quick: bool) -> Iterator[Row]:
    """Time both on the same files, and both as a process of their own."""
    sys.path.insert(0, str(_PROJECT))
    import jobs  # noqa: PLC0415 - what is measured is imported where it is measured
    from amlstack.catalog import overlay  # noqa: PLC0415
    from amlstack.cli.jobfiles.checking import check_file, plan_gate  # noqa: PLC0415
    from amlstack.cli.targets import Targets  # noqa: PLC0415
    from infra.runs import CodeFolders  # noqa: PLC0415
    from tests.support.jobs import oracle  # noqa: PLC0415 - the tests' one door to azure-ai-ml's internals

    where, day = Targets(size=SIZE), date(2026, 1, 1)
    gate, folders = plan_gate(where, day), CodeFolders()

    def check(file: Path) -> Any:
        checked = check_file(file, where, gate=gate, folders=folders)
        if not checked.plans:
            raise RuntimeError(checked.findings)
        return checked

    def rendered(file: Path) -> Any:
        return jobs.body(check(file).plans[0].enriched)

    with tempfile.TemporaryDirectory() as folder, overlay.found_once():
        count = FILES // 10 if quick else FILES
        files = generate(Path(folder), count)
        spent = dict.fromkeys((check, rendered, oracle.body), 0.0)
        for work in spent:
            _all(work, files[:20])
        for start in range(0, count, TURN):
            turn = files[start : start + TURN]
            for work in spent:
                spent[work] += cpu(functools.partial(_all, work, turn))
        ours, body, theirs = (seconds * 1_000 / count for seconds in spent.values())
        name = "load_job + REST body"
        yield Row("check, per file", ours, "ms", name, theirs, "10× faster", theirs >= 10 * ours)
        yield Row("check + REST body, per file", body, "ms", name, theirs, "10× faster", theirs >= 10 * body)
        names = [str(file) for file in files]
        amlstack = str(Path(sys.executable).with_name("amlstack"))
        for title, some, times in (("all", names, 3), ("one", names[:1], 5)):
            # Both have run in this process: with `quick` no run goes before the one that counts.
            ours = cpu_of([amlstack, "check", "--size", SIZE, *some], times=1 if quick else times, warm=not quick)
            theirs = cpu_of([sys.executable, "-c", _ANCHOR, str(_PROJECT), *some], times=1, warm=not quick)
            what = f"`amlstack check` of {title} with the rules of the pack, process start included"
            goal, met = ("10× faster", theirs >= 10 * ours) if len(some) > 1 else ("under 0.3 s", ours < 0.3)
            yield Row(what, ours, "s", f"{name}, import included", theirs, goal, met)


def _all(work: Any, files: list[Path]) -> None:
    for file in files:
        work(file)


def generate(folder: Path, count: int) -> list[Path]:
    """Job files as people write them: from a handful of keys to nearly all of them, some with an environment inline."""
    rng = random.Random(20)  # noqa: S311 - the same files in every run
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("")
    (folder / "conda.yml").write_text("dependencies: [python=3.11, pip]\n")
    files = []
    for number in range(count):
        file = folder / f"job{number}.yml"
        file.write_text(_commented(yaml.safe_dump(_job(rng, number), sort_keys=False, width=1_000), rng))
        files.append(file)
    return files


def _job(rng: random.Random, number: int) -> dict[str, Any]:
    inputs: dict[str, Any] = {f"p{index}": rng.choice([1, 0.01, True, "text"]) for index in range(rng.randrange(6))}
    command = " ".join(["python train.py", *(f"--{name} ${{{{inputs.{name}}}}}" for name in inputs)])
    job: dict[str, Any] = {
        "$schema": "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json",
        "command": command,
        "code": "src",
        "environment": rng.choice(
            ["azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest", {"image": "i:1", "conda_file": "conda.yml"}]
        ),
        "compute": "azureml:gpu",
        "display_name": f"run-{number}",
        "experiment_name": "bench",
    }
    if rng.random() < 0.6:
        path = "azureml://datastores/d/paths/x"
        inputs["data"] = {"type": "uri_folder", "path": path, "mode": "ro_mount"}
    if inputs:
        job["inputs"] = inputs
    more: tuple[tuple[float, str, Any], ...] = (
        (0.4, "outputs", {"model": {"type": "uri_folder", "mode": "rw_mount"}}),
        (0.7, "distribution", {"type": rng.choice(["pytorch", "mpi"]), "process_count_per_instance": 8}),
        (0.7, "resources", {"instance_count": rng.randrange(1, 5), "shm_size": "64g"}),
        (0.5, "environment_variables", {"NCCL_DEBUG": "INFO", "SEED": number}),
        (0.3, "limits", {"timeout": 3600}),
        (0.3, "services", {"board": {"type": "tensor_board", "log_dir": "outputs"}, "editor": {"type": "vs_code"}}),
        (0.2, "identity", {"type": "user_identity"}),
        (0.4, "tags", {"team": "a", "number": str(number)}),
        (0.4, "description", "A run of the benchmark."),
    )
    return {**job, **{key: value for chance, key, value in more if rng.random() < chance}}


def _commented(text: str, rng: random.Random) -> str:
    return "".join(f"{line}  # why\n" if rng.random() < 0.1 else f"{line}\n" for line in text.splitlines())
