"""Jobs of a workspace by the names that people give them, and the list of those that are there."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import near_misses, printable
from amlstack.provider.runs import Runs, WorkspaceMissingError, record_of
from amlstack.provider.states import is_active

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amlstack.cli.workspace.place import WorkspacePlace
    from amlstack.provider.runs import Record

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
        """Whether it has not ended."""
        return is_active(self.record.status)


def of_body(workspace: str, body: Any) -> WorkspaceJob:
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
    found = [job for workspace in place.workspaces for job in _pages(place, workspace, most)]
    oldest = dt.datetime.min.replace(tzinfo=dt.UTC)
    return sorted(found, key=lambda job: job.created or oldest, reverse=True)


def find(place: WorkspacePlace, wanted: str, *, ends: bool = False) -> WorkspaceJob:
    """The job that a person means.

    Args:
        place: Where it is looked for.
        wanted: A run's name or ARM id; or the name in the job's file, which means the active run before the newest; or
            what the studio shows as its name; or a beginning that one job alone has; or PARENT/STEP, PARENT/TRIAL.
        ends: The job is going to end: a beginning is no name then, also where one job alone has it.

    Raises:
        UnknownRunError: There is none, or several may be meant.
        ArmError: They cannot be asked for.
        WorkspaceMissingError: There is no such workspace.
    """
    if named := _ID.fullmatch(wanted):
        job = _get(place, named["workspace"], named["name"])
        if job is None:
            Runs(place.arm).require_workspace(named["workspace"])
            raise UnknownRunError(f"There is no job `{named['name']}` in {named['workspace'].rpartition('/')[2]}.")
        return job
    parent, slash, step = wanted.partition("/")
    if slash:
        return _child(place, find(place, parent, ends=ends), step)
    if _NAME.fullmatch(wanted):
        own = [job for workspace in place.workspaces if (job := _get(place, workspace, wanted)) is not None]
        if own:
            return _only(own, f"are called `{wanted}`", ids=True)
    jobs = listed(place, _SEARCHED)
    declared = [job for job in jobs if job.record.name == wanted]
    found = declared or [job for job in jobs if job.record.properties.get("displayName") == wanted]
    active = [job for job in found if job.active]
    if found:
        return _only(active, f"active jobs are called `{wanted}`") if len(active) > 1 else (active or found)[0]
    begun = [job for job in jobs if wanted and job.name.startswith(wanted)]
    if begun and ends:
        raise UnknownRunError(f"No job is called `{wanted}`, and a beginning ends none. There are {_names(begun)}.")
    if begun:
        return _only(begun, f"jobs begin with `{wanted}`")
    stems = dict.fromkeys(name for job in jobs for name in (job.name, job.record.name))
    hint = near_misses.hint(wanted, stems) or (f" There are {_names(jobs)}." if jobs else " There is none at all.")
    where = ", ".join(workspace.rpartition("/")[2] for workspace in place.workspaces) or "any workspace"
    raise UnknownRunError(f"There is no job `{wanted}` in {where}.{hint}")


def _only(found: list[WorkspaceJob], what: str, *, ids: bool = False) -> WorkspaceJob:
    """The one job of a list.

    Raises:
        UnknownRunError: There are several; they are named.
    """
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"`{job.arm_id}`" for job in found) if ids else _names(found)
    raise UnknownRunError(f"{len(found)} {what}: {names}. Name one of them.")


def children(place: WorkspacePlace, job: WorkspaceJob) -> list[dict[str, Any]]:
    """What run history has below a sweep or pipeline."""
    return (
        Runs(place.arm).plane.children(job.workspace, job.name) if job.kind in {"Sweep", "Pipeline", "AutoML"} else []
    )


def label(kind: str, child: dict[str, Any]) -> str:
    """``trial 3``, or a step's name."""
    name = str(child.get("runId"))
    own = f"trial {name.rsplit('_', 1)[-1]}" if kind == "Sweep" else str(child.get("displayName") or name)
    return printable.line(own)


def _child(place: WorkspacePlace, parent: WorkspaceJob, step: str) -> WorkspaceJob:
    below = children(place, parent)
    first, _, rest = step.partition("/")
    for child in below:
        name = str(child["runId"])
        if first in {name, name.rsplit("_", 1)[-1], str(child.get("displayName"))}:
            job = _get(place, parent.workspace, name)
            if job is not None:
                return _child(place, job, rest) if rest else job
    names = [label(parent.kind, child).removeprefix("trial ") for child in below]
    hint = near_misses.did_you_mean(first, names)
    raise UnknownRunError(f"The job `{parent.name}` has nothing named `{first}` below it. {hint}".rstrip())


def _get(place: WorkspacePlace, workspace: str, name: str) -> WorkspaceJob | None:
    answer = place.arm.get(f"{workspace}/jobs/{name}", allow=(404,))
    return None if answer.status == 404 else of_body(workspace, answer.body)


def _pages(place: WorkspacePlace, workspace: str, most: int) -> Iterator[WorkspaceJob]:
    count = 0
    answer = place.arm.get(f"{workspace}/jobs", query={"listViewType": "ActiveOnly"}, allow=(404,))
    if answer.status == 404:
        raise WorkspaceMissingError(workspace)
    while True:
        rows = answer.body.get("value") or ()
        for row in rows:
            yield of_body(workspace, row)
        count += len(rows)
        if not answer.body.get("nextLink") or count >= most:
            return
        answer = place.arm.request("GET", str(answer.body["nextLink"]), None)


def _names(jobs: Iterable[WorkspaceJob]) -> str:
    names = [f"`{job.name}`" for job in jobs]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
