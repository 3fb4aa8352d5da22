"""One stack of all examples as they stand: `pulumi up` trains each, a second does nothing, the end leaves nothing."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.diagnose import diagnose
from amlstack.sandbox import processes
from amlstack.sandbox.runner import prepare
from amlstack.sandbox.store.store import job_folder
from tests.support.harness import ANALYZER
from tests.support.stack.small_jobs import runs, store_of

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow
    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

# The first one waits for all of them, and for the environments that are not in the cache yet.
pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(3600)]
LIMIT = 3000.0

JOBS = sorted(str(file.relative_to(PROJECT)) for file in PROJECT.glob("examples/*/job.*"))
TRAINING = [file for file in JOBS if "/preflight/" not in file]
COMPOSED = ["examples/pipeline/pipeline.yml", "examples/sweep/sweep.py"]
SCHEDULES = ["examples/nightly/schedule.py"]
FILES = [*JOBS, *COMPOSED, *SCHEDULES]


@dataclass
class Deployed:
    """The engine's steps, and the sandbox's runs with the files of each, kept past the stack's end."""

    home: Path
    left_out: frozenset[str]
    children: dict[str, tuple[str, ...]]
    first: Result
    known: dict[str, JobRow]
    again: Result
    known_again: dict[str, JobRow]
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    resources: tuple[str, ...] = ()

    def run(self, file: str) -> tuple[JobRow, dict[str, str]]:
        """The one run of an example: its record, and its logs and outputs by path in the job's folder."""
        if file in self.left_out:
            pytest.skip(f"Horovod cannot be compiled here: apt-get install {prepare.PACKAGES}")
        (key,) = (key for key, row in self.top.items() if row.name.rpartition("-")[0] == name_of(file))
        return self.known[key], self.files[key]

    @property
    def top(self) -> dict[str, JobRow]:
        """The runs that the stack itself has made: no trials and no steps."""
        return {key: row for key, row in self.known.items() if not any(key in each for each in self.children.values())}

    def parts(self, file: str) -> list[str]:
        """The statuses of a sweep's trials or a pipeline's steps."""
        return [self.known[key].status for key in self.children[self.run(file)[0].id]]


@pytest.fixture(scope="module")
def deployed(own: Own) -> Deployed:
    return story_of(own.stack, own.home)


def story_of(stack: Stack, home: Path) -> Deployed:
    # The sandbox's own settings, in which only the list of jobs is another.
    shipped = yaml.safe_load((PROJECT / "Pulumi.sandbox.yaml").read_text("utf-8"))["config"]
    left_out = frozenset() if shutil.which("mpicxx") else frozenset(filter(on_horovod, FILES))
    wanted = [{"file": file, "wait": "completed"} for file in FILES if file not in left_out]
    for key, value in {**shipped, "amlstack:jobs": wanted, "amlstack:protect": "false"}.items():
        stack.set(key, value, path=False)
    # All at once as far as the engine is concerned: the cluster's queue is what puts them in order.
    first = stack.start_up("--parallel", str(len(FILES)), policy_packs=[ANALYZER]).result(LIMIT)
    known = runs(home)
    files = {key: texts(job_folder(home, key)) for key in known}
    with store_of(home) as store:
        children = {key: tuple(store.family.children(key).values()) for key in known}
    again = stack.start_up(policy_packs=[ANALYZER]).result(LIMIT)
    made = Deployed(home, left_out, children, first, known, again, runs(home), files)
    stack.destroy().ok()
    with store_of(home) as store:
        made.resources = tuple(one.id for one in store.resources.all())
    return made


def name_of(file: str) -> str:
    """The name of an example's job, which is its folder's."""
    return Path(file).parent.name.replace("_", "-")


def on_horovod(file: str) -> bool:
    """True where an example's environment is compiled against the machine's Open MPI; others bring their own."""
    return "horovod(" in (PROJECT / file).read_text("utf-8").lower()


def texts(folder: Path) -> dict[str, str]:
    """Logs, outputs and the report of a run, by path."""
    found = [folder / "report.json", *folder.glob("user_logs/*"), *folder.glob("outputs/**/*.json")]
    return {str(path.relative_to(folder)): path.read_text(errors="replace") for path in found if path.is_file()}


def why(row: JobRow, files: dict[str, str]) -> Any:
    """The text that a failed assertion shows: the run's error and the ends of its logs."""
    return row.error, {name: text[-1500:] for name, text in files.items() if name.endswith(".txt")}


def test_one_up_deploys_all_of_them_and_breaks_no_policy(deployed: Deployed) -> None:
    deployed.first.ok()
    assert [each for each in deployed.first.violations if each.level == "mandatory"] == []
    names = [row.name.rpartition("-")[0] for row in deployed.top.values()]
    assert sorted(names) == sorted(name_of(file) for file in (*JOBS, *COMPOSED) if file not in deployed.left_out)


@pytest.mark.parametrize("file", TRAINING)
def test_it_trains_on_all_its_ranks(deployed: Deployed, file: str) -> None:
    row, files = deployed.run(file)
    assert row.status == "Completed", why(row, files)
    metrics = json.loads(files["outputs/metrics.json"])
    assert str(metrics["world_size"]) == row.properties["inputs"]["world_size"]["value"]
    # Parameter servers, numbered behind the workers, never end by themselves.
    assert {one.code for one in row.exits if one.rank < metrics["world_size"]} == {0}, row.exits
    assert metrics["losses"][-1] < metrics["losses"][0]
    report = json.loads(files["report.json"])
    assert report["metrics"] == metrics
    assert all(log in files for entry in report["ranks"] for log in entry["logs"])
    assert any("loss" in text for name, text in files.items() if name.startswith("user_logs/std_log_process_"))


def test_a_pipeline_takes_each_of_its_steps(deployed: Deployed) -> None:
    row, files = deployed.run("examples/pipeline/pipeline.yml")
    assert row.status == "Completed", why(row, files)
    assert deployed.parts("examples/pipeline/pipeline.yml") == ["Completed"] * 3
    assert json.loads(files["outputs/report/report.json"])["explained"] > 0.9


def test_a_sweep_runs_its_trials_and_may_end_those_that_fall_behind(deployed: Deployed) -> None:
    row, files = deployed.run("examples/sweep/sweep.py")
    assert row.status == "Completed", why(row, files)
    trials = deployed.parts("examples/sweep/sweep.py")
    assert len(trials) == 4
    assert set(trials) <= {"Completed", "Canceled"}
    assert "Completed" in trials


def test_a_schedule_is_there_and_runs_nothing_by_itself(deployed: Deployed) -> None:
    assert {step.op for step in deployed.first.steps("nightly-ddp")} == {"create"}
    assert not any(row.name.startswith("nightly") for row in deployed.known.values())


def test_the_tuner_leaves_the_configuration_that_it_found(deployed: Deployed) -> None:
    _, files = deployed.run("examples/deepspeed_autotuning/job.py")
    found = json.loads(files["outputs/autotuning_results/ds_config_optimal.json"])
    assert found["train_micro_batch_size_per_gpu"] in (32, 64)


def test_the_preflight_judges_both_nodes_and_measures_all_ranks(deployed: Deployed) -> None:
    row, files = deployed.run("examples/preflight/job.py")
    assert row.status == "Completed", why(row, files)
    judged = json.loads(files["outputs/preflight.json"])
    assert judged["go"] is True
    # This machine is not the planned node, and that is shown for each check that would need it.
    assert {"gpus", "infiniband", "memlock", "shm"} <= set(judged["not_judged"])
    assert [node["node"] for node in judged["nodes"]] == [0, 1]
    measured = json.loads(files["outputs/bandwidth.json"])
    assert (measured["world_size"], measured["nodes"], measured["backend"]) == (4, 2, "gloo")
    assert measured["verdict"]["state"] == "not judged"


@pytest.mark.parametrize(
    "kept", [("user_logs/", "report.json"), ("user_logs/",)], ids=["with-the-report", "logs-alone"]
)
def test_the_logs_of_runs_that_completed_raise_no_alarm(
    deployed: Deployed, kept: tuple[str, ...], tmp_path: Path
) -> None:
    """Under every launcher and framework, with all their harmless warnings."""
    completed = [key for key, row in deployed.known.items() if row.status == "Completed"]
    alarms = {}
    for key in completed:
        for name, text in deployed.files[key].items():
            if name.startswith(kept):
                (tmp_path / key / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / key / name).write_text(text)
        verdict = diagnose([tmp_path / key])
        if verdict.found or verdict.rank is not None:
            alarms[key] = (verdict.cause, verdict.rank, verdict.file, verdict.line, verdict.text)
    assert alarms == {}
    assert len(completed) >= len(TRAINING) - len(deployed.left_out)


def test_a_second_up_changes_nothing_and_runs_nothing(deployed: Deployed) -> None:
    assert deployed.again.ok().changes == {}
    assert deployed.known_again == deployed.known


def test_the_end_of_the_stack_leaves_no_resource_and_no_process(deployed: Deployed) -> None:
    assert deployed.resources == ()
    assert processes.marked(deployed.home) == ()
