"""The sandbox stack beside `up`: plain `pulumi`, a wrong edit, deletions from outside, a reset, a cancel."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli import stack_files
from amlstack.cli.main import main
from amlstack.cli.sandbox_arm import SandboxArm
from amlstack.sandbox.server import daemon
from tests.support.running import ended_with_us
from tests.support.stack.fresh_clone import Clone, Output
from tests.support.stack.small_jobs import FOREVER, IMAGE, SIZE, job, runs, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

PLAIN = {
    "up": "up --refresh --yes --non-interactive",
    "cancel": "cancel --yes",
}
"""Verb of plain Pulumi → the words of its command."""


@dataclass
class Visit:
    """The output of each command, and the things found after it."""

    clone: Clone
    outputs: dict[str, Output] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)

    def do(self, step: str, *words: str) -> Output:
        self.outputs[step] = output = self.clone.run(*words)
        assert "Traceback" not in output.text, output.text
        return output

    def resources(self) -> set[str]:
        with store_of(self.clone.home) as store:
            return {one.id for one in store.resources.all()}


@pytest.fixture(scope="module")
def visit(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visit]:
    clone = Clone.made(tmp_path_factory.mktemp("clone"))
    with ended_with_us(clone.home):
        try:
            yield visited(Visit(clone))
        finally:
            clone.close()


def visited(visit: Visit) -> Visit:
    clone, home = visit.clone, visit.clone.home
    (clone.folder / "src").mkdir()
    (clone.folder / "src" / "code.py").write_text("print('here')\n")
    job(clone.folder, "quick", "python code.py", code="src", compute="azureml:a100")
    job(clone.folder, "endless", FOREVER, compute="azureml:a100")
    clone.set(
        clusters=[{"name": "a100", "size": SIZE, "nodes": {"max": 2}}],
        environments=[{"name": "small", "image": IMAGE}],
        jobs=["quick.yml"],
    )
    first = visit.do("first", "up")
    assert first.code == 0, first.text
    visit.found["first"] = visit.resources()

    recorded = state_file(home)
    visit.found["state"] = [recorded.read_bytes()]
    visit.do("second", "up")
    visit.found["state"].append(recorded.read_bytes())
    visit.found["dependencies"] = without_dependencies(recorded)
    visit.do("edited state", "up")
    visit.found["state"].append(recorded.read_bytes())

    for verb, words in PLAIN.items():
        visit.outputs[f"plain {verb}"] = plain(clone, words)

    clone.set(location="northeurope")
    visit.do("other region", "up")
    visit.found["other region"] = visit.resources()
    clone.set(location="westeurope")

    (workspace,) = {row.workspace for row in runs(home).values()}
    endpoint = daemon.find(home)
    assert endpoint is not None
    arm = SandboxArm(endpoint)
    arm.finish(arm.delete(workspace))
    assert arm.get(workspace, allow=(404,)).status == 404
    visit.do("workspace deleted", "up")
    visit.found["workspace deleted"] = visit.resources()

    visit.do("reset", "sandbox", "reset")
    clone.set(jobs=["quick.yml", "endless.yml"])
    following = clone.start("up")
    following.wait_for(" is Running")
    visit.do("cancel", "cancel", "endless")
    visit.outputs["after reset"] = following.end()
    visit.found["after reset"] = visit.resources()
    visit.found["runs"] = {row.name.rpartition("-")[0]: row.status for row in runs(home).values()}
    return visit


def state_file(home: Path) -> Path:
    return stack_files.state_files(home / "pulumi")["sandbox"]


def without_dependencies(file: Path) -> list[str]:
    """Takes the dependencies of the cluster out of the state; what they were."""
    document = json.loads(file.read_text())
    cluster = cluster_of(document)
    dependencies: list[str] = cluster.pop("dependencies")
    file.write_text(json.dumps(document))
    return dependencies


def cluster_of(document: dict[str, Any]) -> dict[str, Any]:
    resources: list[dict[str, Any]] = document["checkpoint"]["latest"]["resources"]
    (cluster,) = (one for one in resources if one["type"].endswith(":Compute"))
    return cluster


def plain(clone: Clone, words: str) -> Output:
    """A command of plain Pulumi in a shell that has nothing but what ``amlstack sandbox env`` prints."""
    python = clone.folder / ".venv" / "bin" / "python"
    script = f'eval "$({python} -m amlstack.cli.main sandbox env)" && exec pulumi {words}'
    done = subprocess.run(
        ["bash", "-c", script], cwd=clone.folder, env=clone.environ, capture_output=True, text=True, check=False
    )
    return Output(done.returncode, done.stdout + done.stderr)


def test_an_up_with_nothing_to_do_previews_and_leaves_the_state_as_it_is(visit: Visit) -> None:
    output = visit.outputs["second"]
    assert output.code == 0, output.text
    assert "nothing to change: everything is as declared" in output.text
    assert re.search(r"job quick-\w+ has run before: Completed", output.text), output.text
    assert "updating" not in output.text
    before, after, _ = visit.found["state"]
    assert before == after


def test_what_the_state_alone_lacks_is_recorded_by_an_update(visit: Visit) -> None:
    output = visit.outputs["edited state"]
    assert "updating" in output.text
    assert "nothing to change" in output.text
    *_, after = visit.found["state"]
    assert visit.found["dependencies"]
    assert sorted(cluster_of(json.loads(after))["dependencies"]) == sorted(visit.found["dependencies"])


@pytest.mark.parametrize("verb", PLAIN)
def test_plain_pulumi_works_on_the_sandbox_stack_with_the_printed_variables(visit: Visit, verb: str) -> None:
    output = visit.outputs[f"plain {verb}"]
    assert output.code == 0, output.text
    unchanged = "The currently running update" if verb == "cancel" else "unchanged"
    assert unchanged in output.text
    assert not any(f" {what}" in output.text for what in ("to create", "to replace", "created", "deleted"))


def test_an_edit_that_would_replace_what_holds_data_is_refused_without_a_terminal(visit: Visit) -> None:
    output = visit.outputs["other region"]
    assert output.code == 1
    for words in (
        r"replaces StorageAccount storage \(\w+\): code, inputs, outputs and checkpoints of runs",
        r"replaces Registry registry \(\w+\): images",
        r"replaces Compute a100 \(a100\): 1 run \(quick-\w+\)",
    ):
        assert re.search(words, output.text), output.text
    assert "nothing was changed" in output.text
    assert "make up YES=1" in output.text
    assert visit.found["other region"] == visit.found["first"]


@pytest.mark.parametrize("cause", ["workspace deleted", "after reset"])
def test_one_up_makes_again_what_the_sandbox_lost(visit: Visit, cause: str) -> None:
    output = visit.outputs[cause]
    assert "that the sandbox does not have" in output.text
    assert "everything is as declared" not in output.text
    assert visit.found["first"] <= visit.found[cause], output.text
    assert "its record is gone; it is not run again by itself: set `rerun` to another word" in output.text


def test_a_deleted_workspace_fails_no_up(visit: Visit) -> None:
    assert visit.outputs["workspace deleted"].code == 0, visit.outputs["workspace deleted"].text


def test_a_reset_names_what_goes(visit: Visit) -> None:
    assert visit.outputs["reset"].code == 0, visit.outputs["reset"].text


def test_a_run_is_cancelled_by_its_jobs_name_and_its_end_is_waited_for(visit: Visit) -> None:
    output = visit.outputs["cancel"]
    assert output.code == 0, output.text
    assert "is canceled; its logs stay" in output.text
    assert visit.found["runs"] == {"endless": "Canceled"}, "a run whose record was lost was made again"
    assert visit.outputs["after reset"].code == 1, "the run that `up` followed did not complete"


def test_a_run_that_has_ended_is_named_with_its_end_and_an_unknown_one_with_near_misses(
    visit: Visit, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(visit.clone.home))
    assert main(["cancel", "endless"]) == 0
    assert "has ended before: Canceled" in "".join(capsys.readouterr())
    assert main(["cancel", "endles"]) == 2
    printed = "".join(capsys.readouterr())
    assert "There is no job `endles`" in printed
    assert "Did you mean `endless`?" in printed
