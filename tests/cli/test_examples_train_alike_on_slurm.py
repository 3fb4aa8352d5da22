"""Examples on a real Slurm of two nodes: the same ranks, ends and losses as on this machine.

`make slurm-examples` compares all of them.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.report import performance
from tests.support.cli.verbs import Verbs
from tests.support.running import running_sandbox
from tests.support.slurm import Slurm, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

ALL = os.environ.get("EXAMPLES") == "all"
FEW = ("mpi_per_process",)
"""One that mpirun starts, behind a check of the nodes."""
FILES = {
    file.parent.name: file
    for name in ("job.*", "sweep.py", "pipeline.yml")
    for file in PROJECT.glob(f"examples/*/{name}")
}
"""All but the schedule, which runs nothing by itself."""
DIFFER = {
    "horovod": "the order of its sums is that of the ranks' arrival",
    "tensorflow_parameter_server": "workers are not in step",
    "deepspeed_autotuning": "what it trains with in the end is what was fastest",
    "preflight": "it trains nothing",
    "sweep": "its policy ends the trials that fall behind, by the clock",
}
"""Examples whose losses differ between two runs on one machine, too."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    yield from started(tmp_path_factory.mktemp("slurm"))


@pytest.fixture(scope="module")
def environ(cluster: Slurm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{cluster.commands}:{os.environ['PATH']}")  # the sandbox asks Slurm
        with running_sandbox(tmp_path_factory.mktemp("alike")) as sandbox:
            yield {"PATH": os.environ["PATH"], "AMLSTACK_HOME": str(sandbox.home)}


def rehearsed(environ: Mapping[str, str], file: Path, *words: str) -> dict[str, Any]:
    """The jobs of one rehearsal by their name."""
    command = ["rehearse", str(file), "-j", "2x2", "--fresh", "--json", "--yes"]
    ended = Verbs(PROJECT, {}, environ)(*command, *words).json
    return {job["name"]: job for job in ended["jobs"]}


def parts(job: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """A pipeline's steps or a sweep's trials by their label; a job is its one part."""
    return {part["label"]: part for part in job["children"] if part.get("ranks")} or {"": job}


def ends(job: Mapping[str, Any]) -> list[tuple[str, int, int, int]]:
    """Number, node and exit code of each rank of each part."""
    return [
        (label, rank["rank"], rank["node"], rank["exit"])
        for label, part in parts(job).items()
        for rank in part["ranks"]
    ]


def losses(job: Mapping[str, Any]) -> dict[str, list[float]]:
    """Losses that each part wrote, by its label."""
    found = {}
    for label, part in parts(job).items():
        for file in part["outputs"]["files"]:
            if file.endswith("/outputs/metrics.json"):
                found[label] = json.loads(Path(file).read_text())["losses"]
    return found


def compare(name: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
    assert there["joined"] == here["joined"]
    if name == "sweep":
        assert sorted(each["label"] for each in there["children"]) == sorted(each["label"] for each in here["children"])
    else:
        assert ends(there) == ends(here)
    if name not in DIFFER:
        wanted, found = losses(here), losses(there)
        assert wanted or name == "pipeline"
        assert wanted.keys() == found.keys()
        for label, values in wanted.items():
            assert found[label] == pytest.approx(values, rel=1e-6)


@pytest.mark.parametrize("name", sorted(FILES) if ALL else FEW)
def test_ranks_ends_and_losses_are_the_same_behind_a_check_of_the_nodes_too(
    name: str, cluster: Slurm, environ: Mapping[str, str], tmp_path: Path
) -> None:
    file = FILES[name]
    if not ALL:  # with a rank on each node: tests of the runner tell several on one apart, and import no torch
        file = shutil.copytree(file.parent, tmp_path / name) / file.name
        file.write_text(file.read_text().replace("RANKS_PER_NODE = 2", "RANKS_PER_NODE = 1"))
    (here,) = rehearsed(environ, file, "--on", "machine").values()
    more = () if ALL else ("--preflight",)
    *checks, there = rehearsed(environ, file, "--on", "slurm", *more).values()
    compare(name, here, there)
    assert [check["name"] for check in checks] == [f"{there['name']}{word[1:]}" for word in more]
    for check in checks:
        folder = Path(check["folder"])
        (verdict,) = performance.bandwidth(folder)
        assert verdict[1].startswith("not judged")
        assert sorted(each.name for each in performance.usage(folder)["CPU, cores"]) == ["node 0", "node 1"]
    cluster.wait(lambda: not cluster.allocations())
