"""Many runs that are looked up at once are found in one list of the workspace, and none of them in a stale one."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from pulumi.runtime.proto import provider_pb2

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmClient
from amlstack.provider.run_lists import SharedList
from amlstack.provider.runs import Runs, WorkspaceMissingError
from amlstack.rpc import decode, encode
from tests.support.provider.fake_arm import TOKEN
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Resource, Wire

MANY = 20
STUDIO = {"Studio": {"jobServiceType": "Studio", "endpoint": "https://ml.azure.com/runs/x"}}
MARKS = {"amlstack.owner": "train/dev"}


class _Credential:
    """Gives the token that the fake service expects."""

    def get_token(self, *_: str, **__: Any) -> Any:
        from azure.core.credentials import AccessToken

        return AccessToken(TOKEN, 4_000_000_000)


@pytest.fixture
def runs(arm: FakeArm) -> Runs:
    return Runs(ArmClient(arm.url, _Credential()))


@pytest.fixture
def looks(runs: Runs) -> SharedList:
    return SharedList(runs._arm, runs)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch, arm: FakeArm) -> None:
    """One thread alone has a list asked for, from the third run on; the list is fresh as long as a test lasts."""
    monkeypatch.setattr(run_lists, "SEVERAL", 1)
    monkeypatch.setattr(run_lists, "FIRST", 2)
    monkeypatch.setattr(run_lists, "FRESH", 600.0)
    arm.page = MANY


def _fill(arm: FakeArm, count: int = MANY, **properties: Any) -> list[str]:
    names = [f"run-{index:02}" for index in range(count)]
    for name in names:
        shown = {"status": "Running", "experimentName": "mnist", "services": STUDIO, "properties": MARKS, **properties}
        arm.jobs[f"{WORKSPACE}/jobs/{name}".lower()] = {"properties": shown, "sent": {}}
    return names


def _asked(arm: FakeArm) -> tuple[int, int]:
    """The number of runs that were asked for one by one, and of the list's pages."""
    return arm.count("GET", "/jobs/"), arm.count("GET", "/jobs$")


@pytest.mark.usefixtures("eager")
def test_many_runs_are_found_in_one_list_with_what_a_refresh_records(
    arm: FakeArm, runs: Runs, looks: SharedList
) -> None:
    names = _fill(arm)
    seen = [looks.get(WORKSPACE, name) for name in names]
    assert _asked(arm) == (2, 1)
    for one, name in zip(seen, names, strict=True):
        alone = runs.get(WORKSPACE, name)
        assert one is not None
        assert alone is not None
        assert (one.job_id, one.status) == (alone.job_id, alone.status)
        assert (one.experiment, one.services) == (alone.experiment, alone.services)


def test_runs_that_are_looked_up_one_after_the_other_are_never_listed(arm: FakeArm, looks: SharedList) -> None:
    for name in _fill(arm, 3 * run_lists.FIRST):
        looks.get(WORKSPACE, name)
    assert _asked(arm) == (3 * run_lists.FIRST, 0)


def test_a_list_is_asked_for_once_several_look_at_the_same_time(arm: FakeArm, looks: SharedList) -> None:
    arm.page = 1000
    names = _fill(arm, run_lists.FIRST + MANY)
    for name in names[: run_lists.FIRST]:
        looks.get(WORKSPACE, name)
    let_go = threading.Event()
    others = []
    # These have asked for runs that no list shows and wait for the answers.
    for index in range(run_lists.SEVERAL - 1):
        arm.held.clear()
        arm.fail("GET", f"/jobs/missing-{index}$", 0, hold=let_go)
        others.append(threading.Thread(target=looks.get, args=(WORKSPACE, f"missing-{index}")))
        others[-1].start()
        assert arm.held.wait(60)
    alone = _asked(arm)[0]
    for name in names[run_lists.FIRST :]:
        assert looks.get(WORKSPACE, name) is not None
    let_go.set()
    for one in others:
        one.join()
    assert _asked(arm) == (alone, 1)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("write", ["put", "cancel", "edit", "remove_tags", "delete"])
def test_a_list_from_before_a_write_of_ours_is_never_used(
    arm: FakeArm, runs: Runs, looks: SharedList, write: str
) -> None:
    names = _fill(arm, tags={"team": "a"})
    for name in names[:10]:
        looks.get(WORKSPACE, name)
    assert _asked(arm) == (2, 1)
    record = runs.get(WORKSPACE, names[-1])
    assert record is not None
    match write:
        case "put":
            runs.put(WORKSPACE, "fresh", job_inputs()["body"])
        case "cancel":
            runs.cancel(WORKSPACE, names[-1])
        case "edit":
            runs.edit(WORKSPACE, record, {"tags": {"team": "b"}})
        case "remove_tags":
            runs.remove_tags(WORKSPACE, record, ["team"])
        case "delete":
            runs.delete(WORKSPACE, names[-1])
    arm.set_status(names[5], "Failed")
    seen = looks.get(WORKSPACE, names[5])
    assert seen is not None
    assert seen.status == "Failed"


@pytest.mark.usefixtures("eager")
def test_a_list_that_was_begun_before_the_answer_to_a_write_is_not_used_after_it(
    arm: FakeArm, runs: Runs, looks: SharedList
) -> None:
    names = _fill(arm)
    let_go = threading.Event()
    arm.fail("POST", f"/{names[-1]}/cancel$", 0, hold=let_go)
    writer = threading.Thread(target=runs.cancel, args=(WORKSPACE, names[-1]))
    writer.start()
    assert arm.held.wait(60)
    for name in names[:10]:
        looks.get(WORKSPACE, name)
    assert _asked(arm) == (2, 1)
    let_go.set()
    writer.join()
    arm.set_status(names[5], "Canceled")
    seen = looks.get(WORKSPACE, names[5])
    assert seen is not None
    assert seen.status == "Canceled"


@pytest.mark.usefixtures("eager")
def test_an_old_list_is_not_used_and_one_that_helps_nobody_is_not_asked_for_again_and_again(
    arm: FakeArm, looks: SharedList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_lists, "FRESH", -1.0)
    for name in _fill(arm, 60):
        seen = looks.get(WORKSPACE, name)
        assert seen is not None
        arm.set_status(name, "Completed")
        seen = looks.get(WORKSPACE, name)
        assert seen is not None
        assert seen.status == "Completed"
    alone, pages = _asked(arm)
    assert alone == 120
    assert pages <= alone


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("lacking", ["properties", "services", "experimentName"])
def test_what_a_list_lacks_is_asked_for_by_itself(arm: FakeArm, looks: SharedList, lacking: str) -> None:
    names = _fill(arm)
    arm.job(names[7])[lacking] = {}
    for name in names:
        assert looks.get(WORKSPACE, name) is not None
    assert _asked(arm) == (3, 1)
    assert arm.last("GET", "/jobs/").path.endswith(names[7])


@pytest.mark.usefixtures("eager")
def test_a_run_that_is_gone_is_none_and_a_workspace_that_is_gone_an_error(arm: FakeArm, looks: SharedList) -> None:
    names = _fill(arm)
    for name in names:
        looks.get(WORKSPACE, name)
    assert looks.get(WORKSPACE, "gone") is None
    arm.workspaces.clear()
    with pytest.raises(WorkspaceMissingError):
        looks.get(WORKSPACE, "gone")


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("status", [403, 429, 500, 0])
def test_a_list_that_fails_is_not_repeated_and_every_run_is_asked_for(
    arm: FakeArm, looks: SharedList, status: int
) -> None:
    names = _fill(arm)
    arm.fail("GET", "/jobs$", status, times=None)
    for name in names:
        assert looks.get(WORKSPACE, name) is not None
    alone, pages = _asked(arm)
    assert alone == len(names)
    assert pages == 1


@pytest.mark.usefixtures("eager")
def test_a_list_of_more_pages_than_runs_were_asked_for_is_given_up(arm: FakeArm, looks: SharedList) -> None:
    _fill(arm, 200)
    arm.page = 1
    for index in range(100, 120):
        assert looks.get(WORKSPACE, f"run-{index:02}") is not None
    alone, pages = _asked(arm)
    assert alone == 20
    assert pages == 2


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("wait", "alone"), [("none", 2), ("started", 10)])
def test_a_refresh_asks_for_a_run_by_itself_where_its_status_decides(
    wire: Wire, arm: FakeArm, wait: str, alone: int
) -> None:
    jobs = [wire.job(f"job-{index}") for index in range(10)]
    arm.script = ("Running",)
    for job in jobs:
        job.up(job_inputs(name=job.name, wait=wait))
    wire.configure()
    arm.asked.clear()
    for job in jobs:
        assert _read(job)["status"] == "Running"
    assert _asked(arm) == (alone, 1 if wait == "none" else 0)


def _read(job: Resource) -> dict[str, Any]:
    """The record of one of many resources after a refresh: the provider is configured once for all."""
    request = provider_pb2.ReadRequest(
        id=job.id, urn=job.urn, properties=encode(job.outputs), inputs=encode(job.inputs)
    )
    return decode(job.wire.call("Read", request).properties)
