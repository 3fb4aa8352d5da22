"""`amlstack drift` on a stack of the sandbox that somebody else edits through REST: seen, adopted, put back."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.sandbox_arm import SandboxArm
from amlstack.sandbox.server import daemon
from tests.support.running import ended_with_us
from tests.support.stack.fresh_clone import Clone
from tests.support.stack.small_jobs import IMAGE, SIZE, cluster, runs, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine
    from tests.support.stack.fresh_clone import Output

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

STACK = ("--stack", "dev", "--sandbox")
SETTINGS = {
    "amlstack:location": "westeurope",
    "amlstack:workspace": {"name": "ws-drift", "public_network": True},
    "amlstack:clusters": [{"name": "busy", "size": SIZE, "nodes": {"max": 8}}],
    "amlstack:environments": [{"name": "small", "image": IMAGE}],
    "amlstack:jobs": ["kept.yml", "lost.yml"],
    "amlstack:protect": "false",
}


@dataclass
class Story:
    """The output of each command."""

    clone: Clone
    outputs: dict[str, Output] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)

    def do(self, step: str, *words: str) -> Output:
        self.outputs[step] = self.clone.run(*words, *STACK)
        return self.outputs[step]

    def look(self, step: str) -> Any:
        """`amlstack drift --json`; progress, which goes to the other stream, comes first."""
        text = self.do(step, "drift", "--json").text
        self.seen[step] = json.loads(text[text.index("\n{") if not text.startswith("{") else 0 :])
        return self.seen[step]

    @property
    def state(self) -> Path:
        (found,) = (self.clone.home / "stacks" / "dev" / "state").rglob("dev.json")
        return found


@pytest.fixture(scope="module")
def story(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    clone = Clone.made(tmp_path_factory.mktemp("clone"))
    with ended_with_us(clone.home):
        try:
            yield played(Story(clone))
        finally:
            daemon.down(clone.home)
            clone.close()


def played(story: Story) -> Story:
    folder, home = story.clone.folder, story.clone.home
    settings = folder / "Pulumi.dev.yaml"
    settings.write_text(yaml.safe_dump({"config": SETTINGS}, sort_keys=False))
    for name in ("kept", "lost"):
        job = {"name": name, "command": "true", "environment": "azureml:small", "compute": "azureml:busy"}
        (folder / f"{name}.yml").write_text(yaml.safe_dump(job))
    story.do("before", "drift")
    story.do("up", "up", "--yes")
    story.look("as deployed")

    endpoint = daemon.find(home)
    assert endpoint is not None, story.outputs["up"].text
    others_work(SandboxArm(endpoint), home)
    story.seen["runs"] = runs(home)
    recorded = story.state.read_bytes()
    found = story.look("others")
    story.seen["state stayed"] = story.state.read_bytes() == recorded
    story.seen["there"] = cluster(home, "busy")["scaleSettings"]["maxNodeCount"]

    nodes = next(each for each in properties(found, "Compute busy") if each["path"].endswith("maxNodeCount"))
    content = yaml.safe_load(settings.read_text())
    assert nodes["adopt"]["setting"] == "amlstack:clusters[0].nodes.max"
    content["config"]["amlstack:clusters"][0]["nodes"]["max"] = nodes["adopt"]["value"]
    settings.write_text(yaml.safe_dump(content, sort_keys=False))
    story.do("mended", "up", "--refresh", "--yes")
    story.look("afterwards")
    return story


def others_work(arm: SandboxArm, home: Path) -> None:
    """Make a person's changes in the portal: nodes of a cluster, a tag, an environment and a run's record go."""
    with store_of(home) as store:
        ids = [row.id for row in store.resources.all()]
        lost = next(row.id for row in store.jobs.list() if row.name.startswith("lost-"))
    workspace = next(each for each in ids if each.lower().endswith("/workspaces/ws-drift"))
    scale = {"minNodeCount": 0, "maxNodeCount": 5, "nodeIdleTimeBeforeScaleDown": "PT10M"}
    arm.finish(arm.patch(f"{workspace}/computes/busy", {"properties": {"properties": {"scaleSettings": scale}}}))
    arm.finish(arm.patch(workspace, {"tags": {"who": "portal"}}))
    arm.finish(arm.delete(next(each for each in ids if "/environments/small/versions/" in each)))
    arm.finish(arm.delete(f"{workspace}/jobs/{lost}"))


def properties(found: Any, name: str) -> list[Any]:
    return next(each["properties"] for each in found["resources"] if each["name"] == name)


def test_a_stack_that_was_never_brought_up_cannot_be_looked_at(story: Story) -> None:
    assert story.outputs["before"].code == 2
    assert "was never brought up there" in story.outputs["before"].text


def test_a_stack_as_it_was_deployed_has_no_drift_though_its_runs_went_on(story: Story) -> None:
    found = story.seen["as deployed"]
    assert story.outputs["as deployed"].code == 0, story.outputs["as deployed"].text
    assert (found["drift"], found["resources"], found["errors"]) == (False, [], [])
    assert found["looked_at"] > 20
    assert {run["job"]: (run["status"], run["gone"]) for run in found["runs"]} == {
        "kept": ("Completed", False),
        "lost": ("Completed", False),
    }
    assert any(each["path"].startswith("managedNetwork.status") for each in found["left_out"])


def test_each_edit_of_others_is_seen_with_its_values_and_both_ways_to_mend_it(story: Story) -> None:
    found = story.seen["others"]
    assert story.outputs["others"].code == 1
    assert {each["name"]: each["what"] for each in found["resources"]} == {
        "Compute busy": "changed",
        "Workspace workspace": "changed",
        next(each["name"] for each in found["resources"] if "Version small" in each["name"]): "deleted",
    }
    (nodes,) = properties(found, "Compute busy")
    assert (nodes["declared"], nodes["there"]) == (8, 5)
    assert nodes["adopt"]["file"].startswith("Pulumi.dev.yaml:")
    assert nodes["adopt"]["command"] == ""  # the sandbox's copy of a stack is out of reach of plain `pulumi`
    (tag,) = properties(found, "Workspace workspace")
    assert (tag["path"], tag["declared"], tag["there"]) == ("tags.who", None, "portal")
    assert tag["adopt"]["setting"] == "amlstack:tags.who"
    assert {each["put_back"] for each in found["resources"]} == {"amlstack up --stack dev --sandbox --refresh"}


def test_a_look_changes_neither_the_state_nor_what_is_there(story: Story) -> None:
    assert story.seen["state stayed"]
    assert story.seen["there"] == 5
    assert set(story.seen["runs"]) == set(runs(story.clone.home))


def test_one_up_puts_back_what_was_not_adopted_and_runs_nothing_again(story: Story) -> None:
    found = story.seen["afterwards"]
    assert story.outputs["afterwards"].code == 0, story.outputs["mended"].text
    assert found["resources"] == []
    assert cluster(story.clone.home, "busy")["scaleSettings"]["maxNodeCount"] == 5
    with store_of(story.clone.home) as store:
        (workspace,) = (row for row in store.resources.all() if row.id.lower().endswith("/workspaces/ws-drift"))
        assert "who" not in (workspace.body.get("tags") or {})
        assert any("/environments/small/versions/" in row.id for row in store.resources.all())
    assert set(runs(story.clone.home)) == set(story.seen["runs"])
    assert {run["job"]: run["gone"] for run in found["runs"]} == {"kept": False, "lost": True}
