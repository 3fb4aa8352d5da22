"""Examples on a real Slurm of two nodes: the same ranks, ends and losses as on this machine.

With AMLSTACK_EXAMPLES=all every example is compared, which takes about half an hour on two cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from amlstack.report import performance
from tests.support.running import running_sandbox
from tests.support.slurm import Slurm, started

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

pytestmark = [pytest.mark.training, pytest.mark.timeout(3600)]

FEW = ("ddp_torchrun", "mpi_per_process")
"""One that the service starts, and one that mpirun starts."""
EXAMPLES = sorted(file.parent.name for file in PROJECT.glob("examples/*/job.*"))
DIFFER = {
    "horovod": "the order of its sums is that of the ranks' arrival",
    "tensorflow_parameter_server": "workers are not in step",
    "deepspeed_autotuning": "what it trains with in the end is what was fastest",
    "preflight": "it trains nothing",
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
            yield {**os.environ, "AMLSTACK_HOME": str(sandbox.home)}


def rehearsed(environ: Mapping[str, str], name: str, *words: str) -> dict[str, Any]:
    """The jobs of one rehearsal by their name."""
    (file,) = (PROJECT / "examples" / name).glob("job.*")
    command = [sys.executable, "-m", "amlstack.cli.main", "rehearse", str(file), "-j", "2x2", "--fresh", "--json"]
    ended = subprocess.run(
        [*command, "--yes", *words], env=environ, capture_output=True, text=True, check=False, cwd=PROJECT
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return {job["name"]: job for job in json.loads(ended.stdout)["jobs"]}


def ends(job: Mapping[str, Any]) -> list[tuple[int, int, int]]:
    return [(rank["rank"], rank["node"], rank["exit"]) for rank in job["ranks"]]


def metrics_of(job: Mapping[str, Any]) -> Path:
    return Path(job["folder"]) / "outputs" / "metrics.json"


@pytest.mark.parametrize("name", EXAMPLES if os.environ.get("AMLSTACK_EXAMPLES") == "all" else FEW)
def test_ranks_ends_and_losses_are_the_same(name: str, cluster: Slurm, environ: Mapping[str, str]) -> None:
    (here,) = rehearsed(environ, name, "--on", "machine").values()
    (there,) = rehearsed(environ, name, "--on", "slurm").values()
    assert ends(there) == ends(here)
    assert there["joined"] == here["joined"]
    if name not in DIFFER:
        wanted, found = (json.loads(metrics.read_text())["losses"] for metrics in map(metrics_of, (here, there)))
        assert found == pytest.approx(wanted, rel=1e-6)
    cluster.wait(lambda: not cluster.allocations())


def test_a_check_of_the_nodes_goes_first_where_it_is_asked_for(cluster: Slurm, environ: Mapping[str, str]) -> None:
    jobs = rehearsed(environ, "ddp_per_process", "--on", "slurm", "--preflight")
    assert [*jobs] == ["ddp-per-process-preflight", "ddp-per-process"]
    folder = Path(jobs["ddp-per-process-preflight"]["folder"])
    (verdict,) = performance.bandwidth(folder)
    assert verdict[1].startswith("not judged")
    assert sorted(each.name for each in performance.usage(folder)["CPU, cores"]) == ["node 0", "node 1"]
    cluster.wait(lambda: not cluster.allocations())
