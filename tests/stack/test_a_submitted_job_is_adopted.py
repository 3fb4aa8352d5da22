"""`amlstack submit --stack` and `pulumi up` of that stack: one run, one id, whichever of them comes first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.cli.verbs import Verbs
from tests.support.stack.small_jobs import job, runs, settings

if TYPE_CHECKING:
    from tests.support.cli.verbs import Ran
    from tests.support.engine_result import Result
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]


@dataclass
class Adoption:
    """The steps done, and the runs that the sandbox knew at the end."""

    submitted: Ran
    again: Ran
    up: Result
    unchanged: Ran
    runs: tuple[str, ...]


@pytest.fixture(scope="module")
def story(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Adoption:
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text("print('trained')\n")
    more = {"code": "src", "inputs": {"rate": 0.5, "steps": 3}, "tags": {"team": "a"}}
    files = [job(folder, "first", "python train.py ${{inputs.rate}}", **more), job(folder, "second", "true")]
    stack = own.stack
    for key, value in settings("ws-adopt").items():
        stack.set(key, value)
    stack.up().ok()
    verbs = Verbs(stack.folder, stack.env)
    submitted = verbs("submit", str(files[0]), "--stack", stack.name, "--yes")
    again = verbs("submit", str(files[0]), "--stack", stack.name, "--yes")
    stack.set("amlstack:jobs", [{"file": str(file), "wait": "completed"} for file in files])
    up = stack.up()
    unchanged = verbs("submit", str(files[1]), "--stack", stack.name, "--yes")
    return Adoption(submitted, again, up, unchanged, tuple(runs(own.home)))


def test_a_submitted_run_is_adopted_by_the_next_up(story: Adoption) -> None:
    story.submitted.ok()
    story.up.ok()
    assert [name.rpartition("-")[0] for name in story.runs] == ["first", "second"]
    messages = "\n".join(one.message for one in story.up.diagnostics)
    assert f"adopted run {story.runs[0]}" in messages


def test_what_is_there_is_not_submitted_again(story: Adoption) -> None:
    assert f"{story.runs[0]} is there already" in story.again.ok().out
    assert f"{story.runs[1]} is there already" in story.unchanged.ok().out
