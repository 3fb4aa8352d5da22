"""Questions that Azure's documentation leaves open, asked of the sandbox, or with AMLSTACK_AZURE=1 of Azure itself."""

from __future__ import annotations

import json
import os
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base.paths import PROJECT
from tests.support.sandbox.azure_verified import AZURE, ON_AZURE, Service, azure_verified
from tests.support.sandbox.sandbox_client import CURATED, Arm, job
from tools.docs.witnesses import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

FILE = FOLDER / "answers.json"
"""The answers of Azure: question → ``{"recorded": date, "answer": …}``."""
OPEN = {"nested-json", "archived-container", "delete-active-job", "no-acting-token"}
"""Questions: each is a row of docs/reference/unproven.md until Azure has answered."""


@pytest.fixture
def service(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Service:
    """The workspace that the test's question is asked of."""
    (question,) = request.node.get_closest_marker("azure_verified").args
    if ON_AZURE:
        request.getfixturevalue("socket_enabled")
        place, compute = os.environ["AMLSTACK_AZURE_WORKSPACE"], os.environ["AMLSTACK_AZURE_COMPUTE"]
        return Service(AZURE, place, compute, question, FILE)
    sandbox = request.getfixturevalue("sandbox")
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    arm = Arm(sandbox.endpoint)
    workspace = arm.make_workspace("questions")
    if arm.get(f"{workspace}/computes/gpu").status == 404:
        arm.make_cluster(workspace)
    return Service(arm.url, workspace, "gpu", question, None)


def refusal(answer: tuple[int, Any]) -> list[Any]:
    status, body = answer
    return [status, (body or {}).get("error", {}).get("code")]


def submit(service: Service, **more: Any) -> str:
    compute = f"{service.workspace}/computes/{service.compute}"
    name = f"question-{uuid.uuid4().hex[:8]}"
    assert service.call("PUT", f"/jobs/{name}", job(compute, command="sleep 600", **more))[0] in {200, 201}
    return name


@azure_verified("delete-active-job")
def test_an_active_job_is_deleted_or_not(service: Service) -> None:
    name = submit(service)
    seen = refusal(service.call("DELETE", f"/jobs/{name}"))
    service.call("POST", f"/jobs/{name}/cancel")
    service.answers_with([409, "JobIsActive"], seen)


@azure_verified("no-acting-token")
def test_a_pipeline_without_the_second_token(service: Service) -> None:
    body = {"properties": {"jobType": "Pipeline", "jobs": {}}}
    service.answers_with([400, "UserError"], refusal(service.call("PUT", f"/jobs/q-{uuid.uuid4().hex[:8]}", body)))


@azure_verified("archived-container")
def test_the_versions_of_an_archived_container(service: Service) -> None:
    name = f"question-{uuid.uuid4().hex[:8]}"
    service.call("PUT", f"/environments/{name}/versions/1", {"properties": {"image": CURATED}})
    service.call("PUT", f"/environments/{name}", {"properties": {"isArchived": True}})
    service.answers_with(
        [], [each["name"] for each in service.call("GET", f"/environments/{name}/versions")[1]["value"]]
    )


@azure_verified("nested-json")
def test_a_body_nested_a_hundred_levels_deep(service: Service) -> None:
    deep: Any = "x"
    for _ in range(100):
        deep = [deep]
    body = {"properties": {"image": CURATED, "tags": {"deep": deep}}}
    path = f"/environments/question-{uuid.uuid4().hex[:8]}/versions/1"
    service.answers_with([400, "InvalidRequestContent"], refusal(service.call("PUT", path, body)))


def test_every_open_question_has_a_test_that_asks_it(request: pytest.FixtureRequest) -> None:
    asked = {
        mark.args[0]
        for test in vars(request.module).values()
        for mark in getattr(test, "pytestmark", ())
        if mark.name == "azure_verified"
    }
    recorded = json.loads(FILE.read_text("utf-8"))
    page = (PROJECT / "docs/reference/unproven.md").read_text("utf-8")
    assert asked == OPEN
    assert set(recorded) <= asked
    assert {name for name in OPEN if f'<a id="{name}"></a>' in page} == asked - set(recorded)


def test_what_azure_answers_is_recorded_with_its_date(tmp_path: Path) -> None:
    file = tmp_path / FILE.name
    file.write_text('{"other": {}}')
    Service(AZURE, "/w", "gpu", "nested-json", file).answers_with([400, "a"], [200, None])
    found = json.loads(file.read_text())
    assert set(found) == {"other", "nested-json"}
    assert found["nested-json"]["answer"] == [200, None]
    assert found["nested-json"]["recorded"].startswith("20")
