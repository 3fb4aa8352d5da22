"""Ctrl-C: the engine calls Cancel, and whatever the provider waits for ends, with a sentence about what goes on.

Each wait here would last longer than the test's limit if it were not ended.
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf import empty_pb2

from tests.support.provider.fake_arm import Failure
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.fault_matrix import OPERATIONS, Operation
from tests.support.provider.interruptions import interrupted as interrupted_operation
from tests.support.provider.provider_wire import LIMIT, Refused, job_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Resource, Wire

pytestmark = pytest.mark.tools

MINUTES = {"Retry-After": "3600"}


@pytest.fixture
def never() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def interrupted(wire: Wire, act: Callable[[], Any], under_way: Callable[[], bool]) -> Refused:
    """The provider's answer when it is cancelled at a moment when ``under_way`` holds."""
    refused: list[Refused] = []

    def run() -> None:
        try:
            act()
        except Refused as error:
            refused.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while not under_way():
        thread.join(0.01)
        assert thread.is_alive(), "it ended by itself"
    wire.call("Cancel", empty_pb2.Empty())
    thread.join(LIMIT)
    assert not thread.is_alive(), "it did not end"
    return refused[0]


def announced(log: Log, words: str) -> Callable[[], bool]:
    return lambda: any(words in message for message in log.messages("status"))


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure("GET", "/jobs/", 429, headers=MINUTES), "was not submitted, and the next `up` goes on"),
        (Failure("PUT", "/jobs/", 429, headers=MINUTES), "was not submitted, and the next `up` goes on"),
        (Failure("PUT", "/jobs/", 503, headers=MINUTES), "whether the run was accepted is not known"),
        (Failure("PUT", "/jobs/", 500, headers=MINUTES, after=True), "whether the run was accepted is not known"),
    ],
    ids=["read throttled", "submission throttled", "service unavailable", "stored but failed"],
)
def test_a_request_that_waits_for_its_repetition_ends_and_the_next_up_has_one_run(
    wire: Wire, arm: FakeArm, log: Log, failure: Failure, words: str
) -> None:
    arm.failures.append(Failure(**vars(failure)))
    job = wire.job()

    refused = interrupted(wire, lambda: job.up(job_inputs()), announced(log, "3600 s"))

    assert refused.code.name == "ABORTED"
    assert re.search(words, str(refused))
    wire.restart()
    assert job.up(job_inputs()) == "create"
    assert len(arm.created) == 1


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_an_answer_that_does_not_come_is_not_waited_for(
    wire: Wire, arm: FakeArm, never: threading.Event, method: str
) -> None:
    arm.failures.append(Failure(method, "/jobs/", 0, hold=never))
    job = wire.job()

    refused = interrupted(wire, lambda: job.up(job_inputs()), arm.held.is_set)

    words = "was not submitted" if method == "GET" else "whether the run was accepted is not known"
    assert re.search(words, str(refused))
    never.set()
    wire.restart()
    assert job.up(job_inputs()) == "create"
    assert len(arm.created) == 1


def test_a_gate_that_is_throttled_ends_and_its_run_goes_on(wire: Wire, arm: FakeArm, log: Log) -> None:
    arm.script = ("Running",)
    job = wire.job()
    job.up(job_inputs())
    arm.failures.append(Failure("GET", "/jobs/", 429, headers=MINUTES))

    # The first look is part of the update, and the throttled one either that or the first of the gate's own.
    refused = interrupted(wire, lambda: job.up(job_inputs(wait="completed")), announced(log, "asks to wait 3600 s"))

    assert "interrupted" in str(refused)
    wire.restart()
    arm.set_status(job.id, "Completed")
    job.up(job_inputs(wait="completed"))
    assert len(arm.created) == 1
    assert arm.cancelled == []


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure("GET", "/jobs$", 429, headers=MINUTES), "goes on, and the next `up` ends it"),
        (Failure("GET", "/jobs/", 429, headers=MINUTES), "was asked to end, and the next `up` ends it"),
        (Failure("POST", "/cancel", 429, headers=MINUTES), "goes on, and the next `up` ends it"),
        (Failure("POST", "/cancel", 500, headers=MINUTES, after=True), r"POST .*/cancel; run .* was asked to end"),
    ],
    ids=["list", "look at the end", "cancel", "cancel stored"],
)
def test_a_deletion_ends_and_says_whether_the_run_was_asked_to_end(
    wire: Wire, arm: FakeArm, log: Log, failure: Failure, words: str
) -> None:
    job = wire.job()
    job.up(job_inputs())
    run = job.id
    arm.failures.append(Failure(**vars(failure)))

    refused = interrupted(wire, job.remove, announced(log, "3600 s"))

    assert re.search(words, str(refused))
    wire.restart()
    job.remove()
    assert arm.job(run)["status"] == "Canceled"


def test_an_upload_ends_in_the_middle_of_a_file_and_is_repeated(
    wire: Wire, arm: FakeArm, tmp_path: Path, never: threading.Event
) -> None:
    code = tmp_path / "code"
    code.mkdir()
    for name in "abc":
        (code / name).write_text(name)
    arm.failures.append(Failure("BLOB", "/b$", 0, hold=never))
    snapshot = wire.snapshot()
    inputs = {"workspace": WORKSPACE, "path": str(code)}

    refused = interrupted(wire, lambda: snapshot.up(inputs), arm.held.is_set)

    assert re.search("nothing was registered, and the next `up` uploads again", str(refused))
    assert arm.resources == {}
    never.set()
    wire.restart()
    assert snapshot.up(inputs) == "create"
    assert {name.rsplit("/", 1)[-1] for name in arm.blobs} == {"a", "b", "c"}


def test_a_storage_that_fails_again_and_again_is_not_asked_after_an_interruption(
    wire: Wire, arm: FakeArm, tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("amlstack.provider.blobs.BACKOFF", (3600, 2))
    code = tmp_path / "code"
    code.mkdir()
    (code / "a").write_text("a")
    arm.failures.append(Failure("BLOB", "", 503, times=None))
    snapshot = wire.snapshot()
    inputs = {"workspace": WORKSPACE, "path": str(code)}

    refused = interrupted(wire, lambda: snapshot.up(inputs), announced(log, "the storage does not answer as it should"))

    assert re.search("nothing was registered", str(refused))


@pytest.mark.parametrize("kind", ["environment", "component", "schedule"])
def test_every_other_resource_ends_too(wire: Wire, arm: FakeArm, log: Log, kind: str) -> None:
    body: dict[str, Any] = {"image": "mcr.microsoft.com/x:1"}
    inputs: dict[str, Any] = {"workspace": WORKSPACE, "name": "x", "body": body}
    if kind == "component":
        inputs |= {"version": "1", "body": {"componentSpec": {"type": "command"}}}
    if kind == "schedule":
        inputs["body"] = {"properties": {"trigger": {"triggerType": "Cron"}, "action": {"actionType": "CreateJob"}}}
    resource: Resource = getattr(wire, kind)()
    arm.failures.append(Failure("PUT", "", 429, headers=MINUTES))

    refused = interrupted(wire, lambda: resource.up(inputs), announced(log, "asks to wait 3600 s"))

    assert "changed nothing; the next `up` goes on" in str(refused)
    wire.restart()
    assert resource.up(inputs) == "create"


def test_throttling_is_announced_with_its_seconds_and_is_no_failure_of_patience(
    wire: Wire, arm: FakeArm, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    from amlstack.provider.lifecycle import gates

    arm.script = ("Queued", "Running", "Completed")
    monkeypatch.setattr(gates, "_LOCAL_PATIENCE", 0.0)
    monkeypatch.setattr("amlstack.provider.arm.exchange.THROTTLED_SECONDS", 0.01)
    # The look before the submission is answered; each of the next three is throttled longer than a request may be.
    arm.failures.append(Failure("GET", "/jobs/", 429, skip=1, times=9))

    job = wire.job()
    assert job.up(job_inputs(wait="completed")) == "create"

    assert job.outputs["status"] == "Completed"
    assert any("asks to wait 0.0 s (429, too many requests): GET jobs/" in fields for fields in log.messages("status"))


CHANGING = [
    one
    for one in OPERATIONS
    if one.name.startswith(("Job", "Schedule", "Isolation", "Network")) or "create" in one.name
]


@pytest.mark.parametrize(
    "operation", [pytest.param(one, id=one.name) for one in CHANGING if not one.name.endswith("read")]
)
def test_an_operation_ends_before_the_request_that_it_was_interrupted_in(operation: Operation) -> None:
    one = interrupted_operation(operation, most=1)
    assert one.wrong == []
    assert len(one.seconds) == 1
