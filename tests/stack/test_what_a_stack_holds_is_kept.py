"""The contents of a protected stack survive a replacement, with and without a preview, and a new name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.stack.small_jobs import FOREVER, StackLife, job, runs, settings, store_of, urn_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.harness import Stack
    from tests.support.stack.small_jobs import Own

# The first one waits for the whole story.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]


@dataclass
class Story(StackLife):
    """With what the service had after each step: the ids of all resources, and the runs."""

    there: dict[str, set[str]] = field(default_factory=dict)
    known: dict[str, dict[str, str]] = field(default_factory=dict)

    def tell(self, step: str, result: Result) -> Result:
        self.results[step] = result
        self.known[step] = {key: row.status for key, row in runs(self.home).items()}
        with store_of(self.home) as store:
            self.there[step] = {row.id.lower() for row in store.resources.all()}
        return result


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Story:
    return story_of(own.stack, tmp_path_factory.mktemp("jobs"), own.home)


def story_of(stack: Stack, folder: Path, home: Path) -> Story:
    story = Story(home)
    for key, value in {**settings("ws-kept"), "amlstack:protect": "true"}.items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [{"file": str(job(folder, "long", FOREVER)), "wait": "started"}])
    story.tell("first", stack.up().ok())

    rename(stack, "other-project", "prod")
    story.tell("renamed", stack.up().ok())

    stack.set("amlstack:location", "northeurope")
    story.tell("location", stack.up().failed())
    stack.set("amlstack:location", "westeurope").set("amlstack:resource_group", "rg-elsewhere")
    story.tell("group", stack.up().failed())
    stack.set("amlstack:resource_group", None)
    story.tell("group by command", stack.preview("--replace", urn_of(stack, ":ResourceGroup", "group")).failed())
    story.tell("destroyed", stack.destroy().failed())

    stack.set("amlstack:protect", "false")
    story.tell("unprotected", stack.up().ok())
    story.tell("emptied", stack.destroy().ok())
    return story


def rename(stack: Stack, project: str, name: str) -> None:
    """Gives stack and project other names, as people do."""
    stack.pulumi("stack", "rename", f"organization/{project}/{name}", "--stack", stack.name).ok()
    stack.name, stack.project = name, project
    manifest: dict[str, Any] = yaml.safe_load((stack.folder / "Pulumi.yaml").read_text("utf-8"))
    (stack.folder / "Pulumi.yaml").write_text(yaml.safe_dump({**manifest, "name": project}, sort_keys=False), "utf-8")
    stack.pulumi("stack", "select", name).ok()


def test_a_stack_goes_on_under_another_name_and_nothing_runs_or_is_replaced(story: Story) -> None:
    assert set(story.results["renamed"].changes) <= {"update"}
    assert story.known["renamed"] == story.known["first"]
    assert story.there["renamed"] == story.there["first"]
    assert all("/resourcegroups/rg-amlstack-test" in one for one in story.there["first"] if "/resourcegroups/" in one)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("location", "as it is currently marked for protection"),
        ("group", "`rg-elsewhere` was given, and the stack's resources are in `rg-amlstack-test`"),
        ("group by command", "as it is currently marked for protection"),
    ],
)
def test_nothing_protected_is_lost_when_a_change_would_replace_it(story: Story, step: str, words: str) -> None:
    assert words in "\n".join(story.results[step].errors)
    assert story.there[step] == story.there["first"]
    assert list(story.known[step].values()) == ["Running"]


def test_a_stack_that_is_no_longer_protected_goes_as_a_whole(story: Story) -> None:
    assert "because it is protected" in " ".join("\n".join(story.results["destroyed"].errors).split())
    assert story.results["destroyed"].changes == {}
    assert story.there["destroyed"] == story.there["first"]
    assert list(story.known["destroyed"].values()) == ["Running"]
    assert story.results["unprotected"].changes == {}
    assert story.there["emptied"] == set()
