"""Every operation of the provider × every fault: what happens at once, and what a plain re-run makes of it.

The provider runs behind its wire, against a fake ARM whose requests fail on demand. An operation's requests are
found by running it once without a fault; then each of them fails in turn, once and for as long as the operation lasts.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from google.protobuf import empty_pb2

from tests.support.provider.fake_arm import Failure, FakeArm
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Log, Refused, Resource, Wire, job_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENVIRONMENT = f"{WORKSPACE}/environments/torch"
SHORT = {"retry-after-ms": "5"}
THROTTLED_LONG = 15
"""Announcements after which a throttled operation is interrupted; one request alone is given up after ten."""
LATE = 0.2
"""Seconds after which a slow answer comes."""


@dataclass
class Bench:
    """One provider, one fake ARM, and the resource under test."""

    arm: FakeArm
    wire: Wire
    log: Log
    folder: Path
    resource: Resource | None = None

    def seen(self) -> Any:
        """The contents of the workspace: equal for two benches on which the same was done."""
        jobs = {
            path: {**job["properties"], "status": job["properties"]["status"] == "Canceled"}
            for path, job in self.arm.jobs.items()
        }
        blobs = {path: content.hex() for path, content in self.arm.blobs.items()}
        network = self.arm.network.active, self.arm.network.rules
        held = (jobs, self.arm.resources, self.arm.schedules, blobs, sorted(self.arm.created), network)
        return json.loads(json.dumps(held).replace(self.arm.url, "https://arm"))


@dataclass(frozen=True)
class Operation:
    """One operation of one resource type."""

    name: str
    make: Callable[[Bench], Resource]
    act: Callable[[Resource, Bench], Any]
    before: Callable[[Resource, Bench], Any] | None = None


@dataclass(frozen=True)
class Fault:
    """One kind of fault, as keywords of `Failure`."""

    name: str
    failure: dict[str, Any]
    ends: bool = True
    """True where the operation fails when the fault lasts."""


@dataclass
class Cell:
    """An operation under one fault, in all its requests."""

    at_once: set[str] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    requests: int = 0

    def __str__(self) -> str:
        if self.faults:
            return "BAD"
        return " / ".join(sorted(self.at_once)) or "asks nothing"


def _code(bench: Bench, resource: Resource) -> None:
    del resource
    code = bench.folder / "code"
    code.mkdir(exist_ok=True)
    (code / "train.py").write_text("print(1)\n")


def _snapshot(resource: Resource, bench: Bench) -> None:
    _code(bench, resource)
    resource.up({"workspace": WORKSPACE, "path": str(bench.folder / "code")})


def _moved(resource: Resource, bench: Bench) -> None:
    resource.up({"workspace": WORKSPACE, "path": str(bench.folder / "code"), "beside": ""})


def _environment(resource: Resource, bench: Bench) -> None:
    del bench
    resource.up({"workspace": WORKSPACE, "name": "torch", "body": {"image": "mcr.microsoft.com/x:1"}})


def _component(resource: Resource, bench: Bench) -> None:
    del bench
    body = {"componentSpec": {"type": "command"}}
    resource.up({"workspace": WORKSPACE, "name": "step", "version": "1", "body": body})


def _schedule(expression: str) -> Callable[[Resource, Bench], None]:
    def act(resource: Resource, bench: Bench) -> None:
        del bench
        trigger = {"triggerType": "Cron", "expression": expression}
        body = {"properties": {"trigger": trigger, "action": {"actionType": "CreateJob"}}}
        resource.up({"workspace": WORKSPACE, "name": "nightly", "body": body})

    return act


def _job(**inputs: Any) -> Callable[[Resource, Bench], None]:
    def act(resource: Resource, bench: Bench) -> None:
        bench.arm.script = ("Queued", "Running")
        bench.arm.resources.setdefault(f"{ENVIRONMENT}/versions/1", {"properties": {"image": "x"}})
        properties = {"environmentId": f"{ENVIRONMENT}/labels/latest", "tags": {"a": "1"}}
        given = {"wait": "started", "deleteHistory": True, "properties": properties, **inputs}
        resource.up(job_inputs(**{**given, "properties": {**properties, **given["properties"]}}))

    return act


def _isolation(wanted: str) -> Callable[[Resource, Bench], None]:
    def act(resource: Resource, bench: Bench) -> None:
        del bench
        resource.up({"workspace": WORKSPACE, "wanted": wanted, "given": True})

    return act


def _network(*names: str) -> Callable[[Resource, Bench], None]:
    def act(resource: Resource, bench: Bench) -> None:
        bench.arm.network.mode = "AllowOnlyApprovedOutbound"
        rules = {name: {"type": "FQDN", "destination": f"{name}.example.com"} for name in names}
        resource.up({"workspace": WORKSPACE, "mode": bench.arm.network.mode, "rules": rules})

    return act


def _of(kind: str) -> Callable[[Bench], Resource]:
    return lambda bench: Resource(bench.wire, f"amlstack:network:{kind}")


def _refresh(resource: Resource, bench: Bench) -> None:
    del bench
    resource.refresh()


def _remove(resource: Resource, bench: Bench) -> None:
    del bench
    resource.remove()


EDIT = {"displayName": "two", "tags": {"b": "2"}}


def _data(**labels: Any) -> Callable[[Resource, Bench], Any]:
    body = {"dataType": "uri_folder", "dataUri": "azureml://datastores/workspaceblobstore/paths/raw", **labels}
    inputs = {"workspace": WORKSPACE, "name": "raw", "version": "1", "body": body}
    return lambda resource, bench: resource.up(inputs)


OPERATIONS: tuple[Operation, ...] = (
    Operation("Snapshot create", lambda b: b.wire.snapshot(), _snapshot),
    Operation("Snapshot read", lambda b: b.wire.snapshot(), _refresh, _snapshot),
    Operation("Snapshot update", lambda b: b.wire.snapshot(), _moved, _snapshot),
    Operation("Snapshot delete", lambda b: b.wire.snapshot(), _remove, _snapshot),
    Operation("Environment create", lambda b: b.wire.environment(), _environment),
    Operation("Environment read", lambda b: b.wire.environment(), _refresh, _environment),
    Operation("Environment update", lambda b: b.wire.environment(), _environment, _environment),
    Operation("Environment delete", lambda b: b.wire.environment(), _remove, _environment),
    Operation("Component create", lambda b: b.wire.component(), _component),
    Operation("Component read", lambda b: b.wire.component(), _refresh, _component),
    Operation("Component update", lambda b: b.wire.component(), _component, _component),
    Operation("Component delete", lambda b: b.wire.component(), _remove, _component),
    Operation("Data create", lambda b: b.wire.data_version(), _data()),
    Operation("Data read", lambda b: b.wire.data_version(), _refresh, _data()),
    Operation("Data update", lambda b: b.wire.data_version(), _data(tags={"a": "1"}), _data()),
    Operation("Data delete", lambda b: b.wire.data_version(), _remove, _data()),
    Operation("Job create", lambda b: b.wire.job(), _job()),
    Operation("Job read", lambda b: b.wire.job(), _refresh, _job()),
    Operation("Job update", lambda b: b.wire.job(), _job(properties=EDIT), _job()),
    Operation("Job replace", lambda b: b.wire.job(), _job(rerun="2", onEdit="cancel"), _job(onEdit="cancel")),
    Operation("Job delete", lambda b: b.wire.job(), _remove, _job()),
    Operation("Schedule create", lambda b: b.wire.schedule(), _schedule("0 1 * * *")),
    Operation("Schedule read", lambda b: b.wire.schedule(), _refresh, _schedule("0 1 * * *")),
    Operation("Schedule update", lambda b: b.wire.schedule(), _schedule("0 2 * * *"), _schedule("0 1 * * *")),
    Operation("Schedule delete", lambda b: b.wire.schedule(), _remove, _schedule("0 1 * * *")),
)
OPERATIONS += (
    Operation("Isolation create", _of("Isolation"), _isolation("AllowInternetOutbound")),
    Operation("Isolation read", _of("Isolation"), _refresh, _isolation("AllowInternetOutbound")),
    Operation("Isolation update", _of("Isolation"), _isolation("AllowOnlyApprovedOutbound"), _isolation("Disabled")),
    Operation("Network create", _of("Managed"), _network("a", "b")),
    Operation("Network read", _of("Managed"), _refresh, _network("a")),
    Operation("Network update", _of("Managed"), _network("b", "c"), _network("a", "b")),
)
DENIED = {"status": 403, "code": "AuthorizationFailed", "message": "The client may not do that.", "headers": SHORT}
FAULTS = (
    Fault("429", {"status": 429, "headers": SHORT}),
    Fault("500 before", {"status": 500, "headers": SHORT}),
    Fault("500 stored", {"status": 500, "headers": SHORT, "after": True}),
    Fault("cut before", {"status": 0}),
    Fault("cut stored", {"status": 0, "after": True}),
    Fault("slow", {"status": 0}, ends=False),
    Fault("403", DENIED),
)


@contextlib.contextmanager
def bench() -> Iterator[Bench]:
    """A fake ARM, a provider in front of it, and an engine's log; waits are as short as they can be."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        arm = FakeArm(folder)
        stack.callback(arm.close)
        stack.enter_context(mock.patch.dict(os.environ, arm.environ()))
        retries = "amlstack.provider.arm.exchange"
        for name, value in (
            (f"{retries}.BACKOFF", (0.001,) * 5),
            (f"{retries}.THROTTLED_SECONDS", 0.05),
            ("amlstack.provider.blobs.BACKOFF", (0.001, 0.001)),
            ("amlstack.provider.blobs.JITTER", 0),
            ("amlstack.provider.lifecycle.gates._LOCAL_PATIENCE", 0.01),
            ("amlstack.provider.lifecycle.gates._FIRST_DELAY", 0.01),
        ):
            stack.enter_context(mock.patch(name, value))
        log = Log()
        wire = Wire(log)
        stack.callback(wire.stop)
        yield Bench(arm, wire, log, folder)


def prepared(one: Bench, operation: Operation) -> Resource:
    """The resource of an operation, as it is before it."""
    resource = operation.make(one)
    if operation.before is not None:
        operation.before(resource, one)
    one.wire.restart()
    one.arm.asked.clear()
    return resource


def requests_of(operation: Operation) -> tuple[list[tuple[str, str, int]], Any]:
    """The requests of an operation, each with how many equal ones come before it; and what the workspace holds then."""
    with bench() as one:
        resource = prepared(one, operation)
        blobs = len(one.arm.blobs)
        operation.act(resource, one)
        found: list[tuple[str, str, int]] = []
        for asked in one.arm.asked:
            pattern = f"^{re.escape(asked.path)}$"
            entry = (asked.method, pattern, sum(known[:2] == (asked.method, pattern) for known in found))
            found.append(entry)
        found += [("BLOB", "", number) for number in range(len(one.arm.blobs) - blobs)]
        return found, one.seen()


def run(operation: Operation, fault: Fault, *, reads: bool = True) -> Cell:
    """All requests of one operation under one fault; without ``reads``, those alone that change something."""
    cell = Cell()
    found, expected = requests_of(operation)
    for method, path, skip in found:
        if method == "GET" and (fault.failure.get("after") or not reads):
            continue  # what is read is not stored
        for times in (1, None):
            cell.requests += 1
            failure = Failure(method, path, skip=skip, times=times, **fault.failure)
            if method == "BLOB" and failure.status == 429:
                failure.status = 503  # the storage throttles with "Server Busy"
            if wrong := _once(operation, fault, failure, expected, cell):
                cell.faults.append(f"{method} {path.strip('^$').rsplit('/workspaces/w', 1)[-1]} ({times}): {wrong}")
    return cell


def _acted(one: Bench, operation: Operation, resource: Resource) -> str:
    """The reason why the operation failed; empty when it did not. A gate that is throttled waits on, until a Ctrl-C."""
    refused: list[str] = []

    def act() -> None:
        try:
            operation.act(resource, one)
        except Refused as error:
            refused.append(f"{error.code.name}: {error}")

    thread = threading.Thread(target=act)
    thread.start()
    while thread.is_alive():
        thread.join(0.02)
        if sum("429" in fields for fields in one.log.messages("status")) > THROTTLED_LONG:
            one.wire.call("Cancel", empty_pb2.Empty())
            thread.join()
    return refused[0] if refused else ""


def _once(operation: Operation, fault: Fault, failure: Failure, expected: Any, cell: Cell) -> str:
    """The faults; empty when there are none."""
    lasting = failure.times is None
    if lasting and not fault.ends:
        return ""
    with bench() as one:
        resource = prepared(one, operation)
        if fault.name == "slow":
            failure.hold = threading.Event()
            threading.Timer(LATE, failure.hold.set).start()
        one.arm.failures.append(failure)
        refused = _acted(one, operation, resource)
        if refused and fault.name != "403" and not lasting:
            return f"failed at once, though it could be repeated: {refused}"
        if refused and re.search(r"unexpected \w+:|Traceback", refused):
            return f"no sentence for a person: {refused}"
        if refused and fault.name == "403" and "needs the right" not in refused and "/providers/" in failure.path:
            return f"the missing right is not named: {refused}"
        if not lasting and fault.name == "429" and failure.method != "BLOB" and not one.log.messages("status"):
            return "the throttling was not announced"
        cell.at_once.add("error" if refused else "done")
        one.arm.failures.clear()
        one.wire.restart()
        try:
            if refused:
                operation.act(resource, one)
        except Refused as error:
            return f"a plain re-run fails: {error}"
        if one.seen() != expected:
            return f"another end than without a fault ({refused or 'done at once'})"
        if len(set(one.arm.created)) != len(one.arm.created):
            return f"made twice: {one.arm.created}"
    return ""
