"""Runs as a workspace keeps them: the job record over ARM, its metadata over the run history, their states."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from amlstack.base.api_versions import MACHINE_LEARNING as API_VERSION
from amlstack.base.credentials import scrub
from amlstack.provider.arm import ArmClient, ArmError, DataPlane, Response
from amlstack.run_identity import DERIVED, IDENTITY, KEPT_FOR, NAME, ON_EDIT, OWNER, RESOURCE, STACK


class Wait(StrEnum):
    """The state that a run must have reached before its dependents go on."""

    NONE = "none"
    STARTED = "started"
    COMPLETED = "completed"


class OnEdit(StrEnum):
    """The fate of an active run whose declaration is edited."""

    REFUSE = "refuse"
    CANCEL = "cancel"
    KEEP = "keep"


class RunVerdict(StrEnum):
    """The meaning of a status under a `Wait`."""

    SATISFIED = "satisfied"
    PENDING = "pending"
    FAILED = "failed"


COMPLETED: Final = "Completed"
UNSUCCESSFUL: Final = frozenset({"Failed", "Canceled"})
TERMINAL: Final = UNSUCCESSFUL | {COMPLETED}
_STARTED: Final = frozenset({"Running", "Finalizing", COMPLETED})


def is_active(status: str) -> bool:
    """True where the run may still use nodes, as at all but a known end: a doubt must not start a second run."""
    return status not in TERMINAL


def verdict(wait: Wait, status: str) -> RunVerdict:
    """The verdict on ``status``: it is what ``wait`` waits for, may become it, or never will."""
    if wait is Wait.NONE or status == COMPLETED or (wait is Wait.STARTED and status in _STARTED):
        return RunVerdict.SATISFIED
    return RunVerdict.FAILED if status in UNSUCCESSFUL else RunVerdict.PENDING


COMMAND: Final = "2025-01-01-preview"
OTHERS: Final = "2024-01-01-preview"


def version_for(properties: Mapping[str, Any]) -> str:
    """The api-version for a job.

    Args:
        properties: Of the job's body, or of a schedule's with the job in its action.
    """
    job = (properties.get("action") or {}).get("jobDefinition") or properties
    if not any(_beyond(job)):
        return API_VERSION
    return COMMAND if job.get("jobType") == "Command" and job is properties else OTHERS


def _beyond(job: Mapping[str, Any]) -> Iterator[bool]:
    """Yield for each property that 2025-12-01 does not know whether it is there."""
    trial = job.get("trial") or {}
    yield (job.get("queueSettings") or {}).get("priority") is not None
    for resources in (job.get("resources") or {}, trial.get("resources") or {}):
        yield any(resources.get(name) is not None for name in ("locations", "maxInstanceCount"))
    yield job.get("jobType") == "Sweep" and job.get("resources") is not None
    yield (job.get("samplingAlgorithm") or {}).get("logbase") is not None
    yield any((port or {}).get("assetVersion") is not None for port in (job.get("outputs") or {}).values())
    for one in (job, trial):
        yield (one.get("distribution") or {}).get("distributionType") == "Ray"


_COMPUTE_KEYS = frozenset({"computeId", "default_compute", "defaultCompute"})


class WorkspaceMissingError(Exception):
    """The workspace itself is not there: nothing is known of a record in it."""

    def __init__(self, workspace: str) -> None:
        self.workspace = workspace
        name = workspace.rsplit("/", 1)[-1]
        super().__init__(f"there is no workspace {name} ({workspace}); a run cannot be judged without it")


@dataclass(frozen=True, slots=True)
class Record:
    """A job record.

    Attributes:
        job_id: Its name in the workspace.
        status: E.g. ``Running``.
        properties: The ARM ``properties`` as the service gives them.
        delay: Seconds after which the service wants to be asked again, if it says so.
    """

    job_id: str
    status: str
    properties: dict[str, Any] = field(default_factory=dict)
    delay: float | None = None

    def _marked(self, name: str) -> str | None:
        value = (self.properties.get("properties") or {}).get(name)
        return None if value is None else str(value)

    def holds(self, names: Iterable[str]) -> bool:
        """True where it has each of these ARM properties, none of them empty."""
        return all(self.properties.get(name) for name in names)

    def cut(self, names: Iterable[str]) -> Record:
        """The record with these ARM properties alone."""
        return Record(self.job_id, self.status, {name: self.properties.get(name) for name in names}, self.delay)

    @property
    def identity(self) -> str | None:
        """Digest of what it runs; ``None`` when it is not one of ours."""
        return self._marked(IDENTITY)

    @property
    def owner(self) -> str | None:
        """``project/stack`` that created it."""
        return self._marked(OWNER)

    @property
    def derived(self) -> str | None:
        """Digest of the body that it was created with."""
        return self._marked(DERIVED)

    @property
    def stack(self) -> str | None:
        """Random id of the stack that created it; ``None`` for a stack without one."""
        return self._marked(STACK)

    @property
    def name(self) -> str:
        """The job's name; its id when it is not one of ours."""
        return self._marked(NAME) or self.job_id

    @property
    def resource(self) -> str | None:
        """``type::name`` of the resource that submitted it; ``None`` when it is not one of ours."""
        return self._marked(RESOURCE)

    @property
    def on_edit(self) -> str | None:
        """Its job's ``on_edit`` when it was submitted; ``None`` when it is not one of ours."""
        return self._marked(ON_EDIT)

    @property
    def kept_for(self) -> str:
        """The run that replaced it while it goes on, `amlstack.run_identity.NO_JOB`, or empty when it is not kept."""
        return str(self.tags.get(KEPT_FOR) or "")

    @property
    def computes(self) -> frozenset[str]:
        """ARM ids, in lower case, of what it runs on; a pipeline has one for each step that names its own."""
        return frozenset(_computes(self.properties))

    @property
    def tags(self) -> dict[str, str]:
        """Its tags."""
        return dict(self.properties.get("tags") or {})

    @property
    def experiment(self) -> str:
        """The experiment that it belongs to."""
        return str(self.properties.get("experimentName") or "Default")

    @property
    def services(self) -> dict[str, str]:
        """Name → endpoint of its services (Studio, tracking, …), without signatures."""
        found = {
            name: str(service.get("endpoint") or "")
            for name, service in (self.properties.get("services") or {}).items()
            if isinstance(service, dict)
        }
        return {name: scrub(endpoint) for name, endpoint in found.items() if endpoint}


class Runs:
    """Reads, starts, edits and ends runs. Safe for use by several threads.

    Attributes:
        plane: The data plane of their workspaces.
    """

    def __init__(self, arm: ArmClient, query: Mapping[str, str] | None = None) -> None:
        """Takes a client, and what a submission has in its query besides the version."""
        self._arm = arm
        self._query = query
        self.plane = DataPlane(arm)
        self._lock = threading.Lock()
        self._writes = 0

    @property
    def writes(self) -> int:
        """Another number after every write, and after its answer: what was read before either is not to be used."""
        return self._writes

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        self._wrote()
        try:
            yield
        finally:
            self._wrote()

    def _wrote(self) -> None:
        with self._lock:
            self._writes += 1

    def get(self, workspace: str, job_id: str) -> Record | None:
        """The record, or ``None`` when the workspace is there and the record is not.

        Raises:
            WorkspaceMissingError: The workspace is not there.
            ArmError: Anything else, above all 403.
        """
        record = self.find(workspace, job_id)
        if record is None:
            # A missing group or workspace is a 404 as well, and says nothing about the record.
            self.require_workspace(workspace)
        return record

    def find(self, workspace: str, job_id: str) -> Record | None:
        """The record, or ``None`` when it is not there, be it for want of a workspace: for who submits the run next.

        Raises:
            ArmError: Anything else than 404.
        """
        response = self._arm.get(f"{workspace}/jobs/{job_id}", allow=(404,))
        return None if response.status == 404 else _record(job_id, response)

    def require_workspace(self, workspace: str) -> None:
        """Raises `WorkspaceMissingError` unless the workspace answers."""
        if self._arm.get(workspace, allow=(404,)).status == 404:
            raise WorkspaceMissingError(workspace)

    def put(self, workspace: str, job_id: str, body: Mapping[str, Any]) -> Record:
        """Submits a run; the body goes on the wire as it is, by an api-version that knows all of it."""
        version = version_for(body["properties"])
        with self._writing():
            return _record(job_id, self._arm.put(f"{workspace}/jobs/{job_id}", body, version, query=self._query))

    def cancel(self, workspace: str, job_id: str) -> None:
        """Asks for the end of a run; a run that has ended or is gone meanwhile is no error."""
        try:
            with self._writing():
                self._arm.post(f"{workspace}/jobs/{job_id}/cancel", allow=(404,))
        except ArmError as error:
            # The service refuses to cancel a pipeline that has ended (400 UserError, azure-ai-ml's test_pipeline_job,
            # 2023-04-26), and answers 200 to other jobs. The record decides.
            record = self.get(workspace, job_id) if error.status in (400, 409) else None
            if record is None or record.status not in ("CancelRequested", "Completed", "Failed", "Canceled"):
                raise

    def delete(self, workspace: str, job_id: str) -> Response:
        """Deletes the record with its history."""
        with self._writing():
            return self._arm.delete(f"{workspace}/jobs/{job_id}", allow=(404,))

    def edit(self, workspace: str, record: Record, changes: Mapping[str, Any]) -> bool:
        """Changes metadata through the run history, as azure-ai-ml does; a PUT of the job is refused by the service.

        Args:
            workspace: ARM id of the workspace.
            record: The run.
            changes: Any of ``displayName``, ``description`` and ``tags``; tags are merged by the service.

        Returns:
            False when the history knows no such run.
        """
        address = self._run(workspace, record)
        with self._writing():
            return self._arm.patch(address, dict(changes), None, allow=(404,)).status != 404

    def remove_tags(self, workspace: str, record: Record, names: Iterable[str]) -> bool:
        """Removes tags through the run history; False when the service does not offer that for this run."""
        body = {"tagsToModify": {}, "tagsToDelete": sorted(names)}
        address = f"{self._run(workspace, record)}/tags"
        with self._writing():
            return self._arm.patch(address, body, None, allow=(400, 404, 405, 501)).status < 400

    def why(self, workspace: str, job_id: str) -> str:
        """The reason why a run failed, in the service's words; empty where it gives none. ARM's own record has none."""
        answer = self.plane.details(workspace, job_id) or {}
        error = (answer.get("error") or {}).get("error") or {}
        return scrub(str(error.get("message") or ""))

    def _run(self, workspace: str, record: Record) -> str:
        return (
            f"{self.plane.base(workspace)}/history/v1.0{workspace}/experiments/{record.experiment}/runs/{record.job_id}"
        )


def record_of(job_id: str, body: Any, delay: float | None = None) -> Record:
    """The record in a job's ARM body."""
    properties = body.get("properties") if isinstance(body, dict) else None
    properties = properties if isinstance(properties, dict) else {}
    return Record(job_id, str(properties.get("status") or "Unknown"), properties, delay)


def _record(job_id: str, response: Response) -> Record:
    return record_of(job_id, response.body, response.delay)


def _computes(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for key, item in value.items():
                if key in _COMPUTE_KEYS and isinstance(item, str) and item:
                    yield item.lower()
                else:
                    yield from _computes(item)
        case list():
            for item in value:
                yield from _computes(item)
