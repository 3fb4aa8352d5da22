"""The jobs of the guides in SDK v1, their training code logging to a run: migrated, patched and rehearsed."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from amlstack.sandbox.store.store import Store
from tests.support.cli.verbs import Verbs
from tests.support.migrate.guides import GUIDES, program
from tests.support.running import running_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Sandbox

pytestmark = [pytest.mark.ranks, pytest.mark.training, pytest.mark.timeout(3600)]

TRAIN = """\
import json, os

cluster = json.loads(os.environ.get("TF_CONFIG", "{}"))
ranks = os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("WORLD_SIZE") or len(cluster["cluster"]["worker"])
rank = os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("RANK") or cluster["task"]["index"]
if int(rank) == 0:
    from azureml.core import Run

    run = Run.get_context()
    run.log("ranks", int(ranks))
    run.tag("started", "by v1")
    run.complete()
"""
LAUNCH = "import runpy, sys\nrunpy.run_path(sys.argv[-1], run_name='__main__')\n"
ONCE = [name for name, guide in GUIDES.items() if guide.ranks]
"""Of jobs that start their ranks in the same way one is rehearsed."""


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    with running_sandbox(tmp_path_factory.mktemp("home")) as running:
        yield running


def test_each_way_of_the_guides_is_rehearsed() -> None:
    def way(name: str) -> tuple[object, ...]:
        guide = GUIDES[name]
        return guide.command.split(" ")[0], (guide.distribution or {}).get("type"), guide.nodes

    assert {way(name) for name in GUIDES} == {way(name) for name in ONCE}


@pytest.mark.parametrize("name", ONCE)
def test_the_ranks_of_v1_start_and_the_patched_code_logs(tmp_path: Path, sandbox: Sandbox, name: str) -> None:
    code = tmp_path / "old" / "src"
    (code / "text-classification").mkdir(parents=True)
    for script in ("train.py", "text-classification/run_glue.py"):
        (code / script).write_text(TRAIN, "utf-8")
    (code / "launch.py").write_text(LAUNCH, "utf-8")
    (tmp_path / "old" / "submit.py").write_text(program(GUIDES[name]), "utf-8")
    assert main(["migrate", str(tmp_path / "old"), "--write"]) == 1  # the environment is another
    assert "import azureml" not in (code / "train.py").read_text("utf-8")

    with closing(Store(sandbox.home)) as store:
        before = {job.id for job in store.jobs.list()}
    verbs = Verbs(PROJECT, {}, {"AMLSTACK_HOME": str(sandbox.home)})
    verbs("rehearse", str(tmp_path / "old-v2" / "submit.yml"), "-j", "2x1").ok()
    with closing(Store(sandbox.home)) as store:
        [job] = [job for job in store.jobs.list() if job.id not in before]
        assert store.metrics.values(job.id, "ranks") == (GUIDES[name].ranks,)
