"""README's two commands in a fresh clone, empty HOME: faulty settings, everything killed once, training, failure."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base import paths
from amlstack.base.paths import PROJECT
from tests.support.running import ended_with_us, left_of_jobs
from tests.support.stack import printed_commands
from tests.support.stack.fresh_clone import Clone, Output
from tests.support.stack.small_jobs import IMAGE, runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.running import Engine
    from tests.support.stack.fresh_clone import Verb

pytestmark = [pytest.mark.engine, pytest.mark.training, pytest.mark.timeout(3600)]

EXAMPLE = {"file": "examples/ddp_torchrun/job.py", "wait": "started"}
SMALL = {"name": "small", "image": IMAGE}
RAISES = """\
import os
import signal

if os.environ["RANK"] == "3":
    open({gate!r}).read()  # until somebody writes
    raise ValueError("the loss is not a number")
signal.pause()
"""
FAILING = """\
name: failing
command: python fail.py
code: failing
environment: azureml:small
compute: azureml:a100
distribution: {type: pytorch, process_count_per_instance: 2}
resources: {instance_count: 2}
"""


@dataclass
class Visit:
    """The output of each command, and the runs that the sandbox knew after it."""

    clone: Clone
    outputs: dict[str, Output] = field(default_factory=dict)
    known: dict[str, dict[str, JobRow]] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def do(self, step: str, *words: str) -> Output:
        return self.ended(step, self.clone.start(*words))

    def ended(self, step: str, verb: Verb) -> Output:
        return self.noted(step, verb.end())

    def typed(self, step: str, line: str) -> Output:
        return self.noted(step, Output(*printed_commands.typed([line], self.clone.folder, self.clone.environ)))

    def noted(self, step: str, output: Output) -> Output:
        self.outputs[step] = output
        # One of the training script's own stands behind the number of its rank.
        assert not re.search(r"^Traceback", output.text, re.MULTILINE), f"{step}:\n{output.text}"
        self.known[step] = runs(self.clone.home) if (self.clone.home / "sandbox" / "state.db").exists() else {}
        return output


@pytest.fixture(scope="module")
def visit(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    clone = Clone.made(tmp_path_factory.mktemp("clone"))
    with ended_with_us(clone.home):
        try:
            yield visited(clone)
        finally:
            clone.close()


def visited(clone: Clone) -> Visit:
    visit, home = Visit(clone), clone.home
    _clone, make_up, make_down = printed_commands.of_section((PROJECT / "README.md").read_text("utf-8"), "Two commands")
    job = clone.folder / "examples" / "ddp_torchrun" / "job.py"
    # With a rank on each node; all four train in test_every_example_deploys_and_trains.
    good = job.read_text().replace("RANKS_PER_NODE = 2", "RANKS_PER_NODE = 1")
    files = clone.files()

    clone.set(
        clusters=[{"name": "a100", "size": "Standard_ND96asr_v5", "nodes": {"mx": 2}}],
        jobs=["examples/ddp_torchrun/job.py"],
    )
    job.write_text(good.replace("inputs.epochs", "inputs.epoch").replace('code="."', 'code="cod"'))
    visit.do("faulty", "up")
    visit.seen["faulty"] = home.exists()
    job.write_text(good)
    clone.set(clusters=[{"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}], jobs=[EXAMPLE])

    killed = clone.start("up")
    killed.wait_for("creating ResourceGroup group")
    killed.process.kill()
    visit.ended("up killed", killed)

    killed = clone.start("up")
    killed.wait_for("creating Workspace workspace")
    kill(clone, "amlstack.sandbox.azure_native")
    visit.ended("stand-in killed", killed)

    killed = clone.start("up")
    killed.wait_for("creating Compute a100")
    kill(clone, "amlstack.sandbox.server.serve")
    visit.ended("sandbox killed", killed)

    killed = clone.start("up")
    killed.wait_for("submitted ddp-torchrun-")
    kill(clone, "pulumi up")
    visit.ended("engine killed", killed)

    converged = visit.do("converged", "up")
    assert converged.code == 0, converged.text
    (run,) = visit.known["converged"]
    metrics = home / "sandbox" / "jobs" / run / "outputs" / "metrics.json"
    visit.seen["losses"] = json.loads(metrics.read_text())["losses"]

    (state,) = (home / "pulumi" / ".pulumi" / "stacks").glob("*/sandbox.json")
    whole = state.read_bytes()
    state.write_bytes(whole[: len(whole) // 2])
    state.chmod(0o644)
    visit.typed("unchanged", make_up)
    visit.seen["kept"] = state.with_name("sandbox.json.broken").read_bytes() == whole[: len(whole) // 2]
    visit.seen["open to others"] = [
        str(path) for path in home.rglob("*") if not path.is_symlink() and path.stat().st_mode & 0o077
        and home / "sandbox" not in path.parents
    ]  # fmt: skip

    gate = clone.folder / "gate"
    os.mkfifo(gate)
    (clone.folder / "failing").mkdir()
    (clone.folder / "failing" / "fail.py").write_text(RAISES.format(gate=str(gate)))
    (clone.folder / "failing.yml").write_text(FAILING)
    clone.set(jobs=["failing.yml"], environments=[SMALL])
    killed = clone.start("up")
    killed.wait_for(" is Running")
    kill(clone, "amlstack.sandbox.server.serve")
    visit.ended("sandbox killed while a job is followed", killed)
    following = clone.start("up")
    following.wait_for(" is Running")
    gate.write_text("now")
    visit.ended("failing", following)
    visit.seen["failing"] = left_of_jobs(home)
    visit.seen["log"] = log_of(visit, "failing").read_text()
    visit.do("failed before", "up")
    rehearsal = clone.start("rehearse", "failing.yml")
    rehearsal.wait_for(" is Running")
    gate.write_text("now")
    visit.ended("rehearsed", rehearsal)
    visit.seen["rehearsed"] = left_of_jobs(home)

    visit.typed("down", make_down)
    visit.seen["left"] = clone.processes()
    visit.seen["files"] = clone.files() - files
    visit.do("down again", "down")
    return visit


def kill(clone: Clone, words: str) -> None:
    """SIGKILL for the processes of the clone whose command line holds these words."""
    victims = [pid for pid, line in clone.processes().items() if words in line]
    assert victims, f"{words} does not run; what runs: {clone.processes()}"
    for pid in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def log_of(visit: Visit, step: str) -> Path:
    """The log that the step's error names."""
    found = re.search(r"Its log: (\S+)", visit.outputs[step].text)
    assert found, visit.outputs[step].text
    (run,) = (key for key in visit.known[step] if key.startswith("failing-"))
    return visit.clone.home / "sandbox" / "jobs" / run / found[1]


def test_every_mistake_is_shown_with_its_place_in_one_run_and_nothing_is_created(visit: Visit) -> None:
    output = visit.outputs["faulty"]
    assert output.code == 1
    for place, words in (
        (r"Pulumi\.sandbox\.yaml:\d+:\d+: error: amlstack:clusters\[0\]\.nodes\.mx ", "Unknown key `mx`"),
        (r"Pulumi\.sandbox\.yaml:\d+:\d+: error: amlstack:clusters\[0\]\.size ", "Standard_ND96asr_v5"),
        (r"examples/ddp_torchrun/job\.py:\d+:\d+: error: code ", "`cod`"),
        (r"examples/ddp_torchrun/job\.py:\d+:\d+: error: command ", "`epoch`"),
    ):
        result = re.findall(rf"^{place}.*\n.*{re.escape(words)}", output.text, re.MULTILINE)
        assert len(result) == 1, (place, output.text)
    assert "4 errors; nothing was changed, and no engine was started" in output.text
    assert not visit.seen["faulty"]


def test_after_up_itself_was_killed_the_next_one_is_not_locked_out_by_the_engine_left_running(visit: Visit) -> None:
    assert visit.outputs["up killed"].code == -signal.SIGKILL
    output = visit.outputs["stand-in killed"]
    assert "locked" not in output.text
    assert "creating Workspace workspace" in output.text


@pytest.mark.parametrize("victim", ["stand-in", "sandbox", "engine"])
def test_up_fails_with_a_remedy_when_one_of_its_processes_is_killed(visit: Visit, victim: str) -> None:
    output = visit.outputs[f"{victim} killed"]
    assert output.code == 1
    assert "✗" in output.text
    assert "`make up` again goes on from here" in output.text


def test_up_again_converges_with_exactly_one_run(visit: Visit) -> None:
    output = visit.outputs["converged"]
    assert output.code == 0, output.text
    assert len(visit.known["engine killed"]) == 1
    assert visit.known["converged"].keys() == visit.known["engine killed"].keys()
    (run,) = visit.known["converged"].values()
    assert run.status == "Completed"
    assert {each.code for each in run.exits} == {0}
    assert f"adopted run {run.name}" in output.text
    assert "no violation" in output.text
    assert "world size 2" in output.text


def test_a_job_goes_on_with_a_message_when_the_sandbox_dies_while_it_is_followed(visit: Visit) -> None:
    output = visit.outputs["sandbox killed while a job is followed"]
    assert output.code == 1
    assert "the sandbox does not answer any more" in output.text
    assert "jobs go on without it" in output.text
    assert {key for key, row in visit.known["sandbox killed while a job is followed"].items() if row.active} == {
        key for key in visit.known["failing"] if key.startswith("failing-")
    }


def test_the_training_lowers_its_loss(visit: Visit) -> None:
    assert len(visit.seen["losses"]) == 8
    assert visit.seen["losses"][-1] < visit.seen["losses"][0] / 2


def test_a_second_up_changes_nothing_and_runs_nothing(visit: Visit) -> None:
    output = visit.outputs["unchanged"]
    assert output.code == 0, output.text
    assert "nothing to change: everything is as declared" in output.text
    assert "has run before: Completed" in output.text
    assert visit.known["unchanged"] == visit.known["converged"]


def test_a_state_that_was_cut_off_is_mended_from_the_engines_copy(visit: Visit) -> None:
    assert "the state of the stack `sandbox` could not be read" in visit.outputs["unchanged"].text
    assert visit.seen["kept"]


def test_what_the_sandbox_keeps_is_its_owners_alone(visit: Visit) -> None:
    assert visit.seen["open to others"] == []


def test_a_rank_that_raises_fails_up_and_its_log_is_named(visit: Visit) -> None:
    output = visit.outputs["failing"]
    assert output.code == 1
    assert "rank 3 of 4 (node 1, local rank 1) exited with code 1: ValueError: the loss is not a number" in output.text
    assert log_of(visit, "failing").name == "std_log_process_03.txt"
    assert "ValueError: the loss is not a number" in visit.seen["log"]
    assert visit.seen["failing"] == ()


def test_a_failed_run_fails_every_up_with_its_reason_and_is_not_run_again(visit: Visit) -> None:
    output = visit.outputs["failed before"]
    assert output.code == 1
    assert "has run before: Failed" in output.text
    assert "std_log_process_03.txt" in output.text
    assert visit.known["failed before"] == visit.known["failing"]


def test_a_rehearsal_fails_in_the_same_words(visit: Visit) -> None:
    output = visit.outputs["rehearsed"]
    assert output.code == 1
    assert "rank 3 of 4 (node 1, local rank 1) exited with code 1: ValueError: the loss is not a number" in output.text
    assert "std_log_process_03.txt" in output.text
    assert visit.seen["rehearsed"] == ()


def test_down_leaves_no_process_and_no_file_but_the_caches(visit: Visit) -> None:
    assert visit.outputs["down"].code == 0, visit.outputs["down"].text
    assert visit.seen["left"] == {}
    assert visit.seen["files"] == {"failing", "failing/fail.py", "failing.yml", "gate"}
    assert list((paths.cache() / "engine").iterdir())
    assert list((paths.cache() / "images").iterdir())
    assert "nothing is up" in visit.outputs["down again"].text
