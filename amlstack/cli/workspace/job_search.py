"""Jobs of a workspace by the names that people give them, the list of them, and their pages in the studio."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import text as text_module
from amlstack.cli.logs.follower import label
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.runs import Record, Runs, WorkspaceMissingError, is_active, record_of
from amlstack.sandbox.store.store import job_of

if TYPE_CHECKING:
    from amlstack.cli.workspace.workspace_place import WorkspacePlace

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,254}")
_ID: Final = re.compile(r"(?P<workspace>/subscriptions/.+/workspaces/[^/]+)/jobs/(?P<name>[^/]+)", re.IGNORECASE)
_SEARCHED: Final = 2_000
"""Jobs of a workspace that are looked through for a name that is no job's own."""
_SHOWN: Final = 8


class UnknownRunError(Exception):
    """No job has such a name, or several may be meant; the message names what there is."""


@dataclass(frozen=True, slots=True)
class WorkspaceJob:
    """A job of a workspace.

    Attributes:
        workspace: ARM id of the workspace.
        record: What the service keeps of it.
        created: When it was submitted; None where the service does not say.
    """

    workspace: str
    record: Record
    created: dt.datetime | None

    @property
    def name(self) -> str:
        """Its name in the workspace."""
        return self.record.job_id

    @property
    def arm_id(self) -> str:
        """Its ARM id."""
        return f"{self.workspace}/jobs/{self.name}"

    @property
    def kind(self) -> str:
        """``Command``, ``Sweep``, ``Pipeline`` or another type of the service."""
        return str(self.record.properties.get("jobType") or "Command")

    @property
    def active(self) -> bool:
        """True where it has not ended."""
        return is_active(self.record.status)


def job_of_body(workspace: str, body: Any) -> WorkspaceJob:
    """A job out of its ARM body."""
    made = (body.get("systemData") or {}).get("createdAt")
    return WorkspaceJob(workspace, record_of(str(body.get("name") or ""), body), when(made))


def when(text: Any) -> dt.datetime | None:
    """A moment as the service writes it; None for what is none."""
    try:
        found = dt.datetime.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", str(text)))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def listed(place: WorkspacePlace, most: int) -> list[WorkspaceJob]:
    """The jobs of a place without their children, newest first.

    Args:
        place: Its workspaces.
        most: How many are read of each workspace at least, if there are so many: pages are read whole.

    Raises:
        ArmError: They cannot be listed.
        WorkspaceMissingError: There is no such workspace.
    """
    found = [job for workspace in place.workspaces for job in _newest(place, workspace, most)]
    oldest = dt.datetime.min.replace(tzinfo=dt.UTC)
    return sorted(found, key=lambda job: job.created or oldest, reverse=True)


def find(place: WorkspacePlace, wanted: str, *, running: bool = False) -> WorkspaceJob:
    """The job that a person means.

    Args:
        place: Where it is looked for.
        wanted: A run's name or ARM id; or its job's name, as in the job's file, which means an active run before the
            newest; or a display name that one job has alone; or PARENT/STEP, PARENT/TRIAL.
        running: Of several active runs none is taken for another: it is going to end.

    Raises:
        UnknownRunError: There is none, or several may be meant.
        ArmError: They cannot be asked for.
        WorkspaceMissingError: There is no such workspace.
    """
    if given := _ID.fullmatch(wanted):
        job = _get(place, given["workspace"], given["name"])
        if job is None:
            Runs(place.arm).require_workspace(given["workspace"])
            raise UnknownRunError(f"There is no job `{given['name']}` in {given['workspace'].rpartition('/')[2]}.")
        return job
    parent, slash, step = wanted.partition("/")
    if slash:
        return _child(place, find(place, parent, running=running), step)
    if _NAME.fullmatch(wanted):
        exact = [job for workspace in place.workspaces if (job := _get(place, workspace, wanted)) is not None]
        if len(exact) > 1:
            ids = ", ".join(job.arm_id for job in exact)
            raise UnknownRunError(f"{len(exact)} workspaces have a job `{wanted}`. Give its ARM id, one of {ids}.")
        if exact:
            return exact[0]
    jobs = listed(place, _SEARCHED)
    named = {job.name: _job_of(place, job) for job in jobs}
    found = [job for job in jobs if named[job.name] == wanted]
    found = found or [job for job in jobs if job.record.properties.get("displayName") == wanted]
    active = [job for job in found if job.active]
    if len(active) > 1 and running:
        raise UnknownRunError(f"`{wanted}` names {len(active)} active jobs: {_names(active)}. Name one of them.")
    if len({named[job.name] for job in found}) > 1:
        raise UnknownRunError(f"`{wanted}` is shown as the name of {_names(found)}. Name one of them.")
    if found:
        return (active or found)[0]
    begun = [job for job in jobs if job.name.startswith(wanted)]
    hint = text_module.hint(wanted, dict.fromkeys((*named, *named.values())))
    if begun:
        hint = f" A whole name is needed; so begin: {_names(begun)}.{hint}"
    elif not hint:
        hint = f" There are {_names(jobs)}." if jobs else " There is none at all."
    where = ", ".join(workspace.rpartition("/")[2] for workspace in place.workspaces) or "any workspace"
    raise UnknownRunError(f"There is no job `{wanted}` in {where}.{hint}")


def _job_of(place: WorkspacePlace, job: WorkspaceJob) -> str:
    """The name of the job that a run is of. A rehearsal's run tells it by its name alone, in a sandbox only."""
    if place.is_local:
        return job_of(job.name, job.record.properties)
    return job.record.name if job.record.identity else job.name


def children(place: WorkspacePlace, job: WorkspaceJob) -> list[dict[str, Any]]:
    """The children that run history has of a sweep or pipeline."""
    return (
        Runs(place.arm).plane.children(job.workspace, job.name) if job.kind in {"Sweep", "Pipeline", "AutoML"} else []
    )


def _child(place: WorkspacePlace, parent: WorkspaceJob, step: str) -> WorkspaceJob:
    below = children(place, parent)
    first, _, rest = step.partition("/")
    shown = {str(one["runId"]): {str(one["runId"]).rsplit("_", 1)[-1], str(one.get("displayName"))} for one in below}
    meant = [first] if first in shown else [name for name, others in shown.items() if first in others]
    if len(meant) > 1:
        runs = ", ".join(f"`{parent.name}/{name}`" for name in meant)
        raise UnknownRunError(f"`{first}` below the job `{parent.name}` may be one of {runs}. Name one of them.")
    job = _get(place, parent.workspace, meant[0]) if meant else None
    if job is not None:
        return _child(place, job, rest) if rest else job
    names = [label(parent.kind, child).removeprefix("trial ") for child in below]
    hint = text_module.did_you_mean(first, names)
    raise UnknownRunError(f"The job `{parent.name}` has nothing named `{first}` below it. {hint}".rstrip())


def _get(place: WorkspacePlace, workspace: str, name: str) -> WorkspaceJob | None:
    answer = place.arm.get(f"{workspace}/jobs/{name}", allow=(404,))
    return None if answer.status == 404 else job_of_body(workspace, answer.body)


def _newest(place: WorkspacePlace, workspace: str, most: int) -> list[WorkspaceJob]:
    found: list[WorkspaceJob] = []
    try:
        for page in place.arm.pages(f"{workspace}/jobs", query={"listViewType": "ActiveOnly"}):
            found += [job_of_body(workspace, row) for row in page]
            if len(found) >= most:
                break
    except ArmError as error:
        raise WorkspaceMissingError(workspace) if error.status == 404 else error from None
    return found


def _names(jobs: Iterable[WorkspaceJob]) -> str:
    names = [f"`{job.name}`" for job in jobs]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def studio_of_workspace(arm: ArmClient, workspace_id: str) -> str:
    """The page of a workspace."""
    return f"{arm.cloud.studio}/?wsid={workspace_id}"


def studio_of_run(arm: ArmClient, workspace_id: str, name: str) -> str:
    """The page of a run."""
    return f"{arm.cloud.studio}/runs/{name}?wsid={workspace_id}"


def studio_of_job(arm: ArmClient, found: WorkspaceJob) -> str:
    """The page of a job: as the service gives it, else composed."""
    given = found.record.services.get("Studio", "")
    return given if given.startswith("https://") else studio_of_run(arm, found.workspace, found.name)
