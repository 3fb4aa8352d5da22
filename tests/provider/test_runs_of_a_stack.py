"""The runs of a stack are found in the workspace by their marks, whatever the state file says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmClient, ArmError
from tests.support.provider.fake_arm import TOKEN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

OWNER = "train/dev"


class _Credential:
    """Gives the token that the fake service expects."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken(TOKEN, 4_000_000_000)


def _client(arm: FakeArm) -> ArmClient:
    return ArmClient(arm.url, _Credential())


def _put(arm: FakeArm, name: str, status: str, marks: dict[str, str], **properties: Any) -> None:
    body = {"properties": {"status": status, "properties": marks, **properties}, "sent": {}}
    arm.jobs[f"{WORKSPACE}/jobs/{name}".lower()] = body


def test_active_runs_of_the_owner_are_listed_over_all_pages(arm: FakeArm) -> None:
    for index, status in enumerate(["Running", "Queued", "Completed", "NewWordOfTheService", "Canceled"]):
        _put(arm, f"mnist-{index:010x}", status, {"amlstack.owner": OWNER})
    _put(arm, "theirs-0000000000", "Running", {"amlstack.owner": "train/prod"})
    _put(arm, "nobodys", "Running", {})
    found = run_lists.active_runs(_client(arm), WORKSPACE, OWNER, "")
    assert [one.job_id for one in found] == [f"mnist-{index:010x}" for index in (0, 1, 3)]
    assert arm.count("GET", "/jobs$") == 3, "six marked records, two a page"


def test_another_stack_id_is_another_owner_and_records_without_one_are_recognised(arm: FakeArm) -> None:
    _put(arm, "old-0000000000", "Running", {"amlstack.owner": OWNER})
    _put(arm, "mine-0000000000", "Running", {"amlstack.owner": OWNER, "amlstack.stack": "s1"})
    _put(arm, "theirs-0000000000", "Running", {"amlstack.owner": OWNER, "amlstack.stack": "s2"})
    found = run_lists.active_runs(_client(arm), WORKSPACE, OWNER, "s1")
    assert [one.job_id for one in found] == ["mine-0000000000", "old-0000000000"]


def test_a_workspace_that_is_missing_has_no_runs(arm: FakeArm) -> None:
    arm.workspaces.clear()
    assert run_lists.active_runs(_client(arm), WORKSPACE, OWNER, "") == []


def test_a_list_that_breaks_off_gives_no_part_of_it(arm: FakeArm) -> None:
    for index in range(3):
        _put(arm, f"mnist-{index:010x}", "Running", {"amlstack.owner": OWNER})
    client = _client(arm)
    client.get(WORKSPACE)
    pages: list[int] = []
    answer = arm.answer

    def second_page_is_refused(method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path.endswith("/jobs"):
            pages.append(1)
            if len(pages) == 2:
                return 403, {"error": {"code": "AuthorizationFailed", "message": "no"}}
        return answer(method, path, query, body)

    arm.answer = second_page_is_refused  # type: ignore[method-assign]
    with pytest.raises(ArmError, match="AuthorizationFailed"):
        run_lists.active_runs(client, WORKSPACE, OWNER, "")


@pytest.mark.parametrize(
    ("properties", "computes"),
    [
        ({"computeId": "/C/Rdma"}, {"/c/rdma"}),
        ({"settings": {"default_compute": "/c/a"}, "jobs": {"x": {"computeId": "/c/b"}, "y": {}}}, {"/c/a", "/c/b"}),
        ({}, set()),
    ],
    ids=["command", "pipeline", "serverless"],
)
def test_a_record_says_what_it_runs_on(arm: FakeArm, properties: dict[str, Any], computes: set[str]) -> None:
    _put(arm, "mnist-0123456789", "Running", {"amlstack.owner": OWNER}, **properties)
    (found,) = run_lists.active_runs(_client(arm), WORKSPACE, OWNER, "")
    assert found.computes == computes


def test_a_submitted_run_says_what_job_it_is_of(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(name="a-job", onEdit="keep", stackId="s1"))
    (found,) = run_lists.active_runs(_client(arm), WORKSPACE, OWNER, "s1")
    assert (found.name, found.on_edit, found.stack, found.kept_for) == ("a-job", "keep", "s1", "")
    assert found.resource == "amlstack:jobs:Job::a"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"placedOn": [f"{WORKSPACE}/computes/a"], "stackId": "s1"}),
        ({"placedOn": ["/g", "/w"], "stackId": "s1"}, {"placedOn": ["/g", "/w", "/c"], "stackId": "s2"}),
        ({"placedOn": ["/g"], "stackId": "s1"}, {}),
    ],
    ids=["added", "changed", "removed"],
)
def test_where_a_run_lives_and_its_stack_are_no_part_of_what_it_runs(
    wire: Wire, arm: FakeArm, before: dict[str, Any], after: dict[str, Any]
) -> None:
    job = wire.job()
    job.up(job_inputs(**before))
    run = job.id
    assert job.up(job_inputs(**after)) == "same"
    assert job.id == run
    assert arm.runs_started() == 1
