"""Resources in a group or workspace that the stack does not own, apart from those that Azure itself makes there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.api_versions import RESOURCES
from amlstack.provider.runs import Record, is_active, record_of
from amlstack.run_identity import OWNER

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient

VARIABLE: Final = "AMLSTACK_DELETE_FOREIGN"
"""Names, with commas between them, that may go with a stack although it does not own them; ``*`` for all."""
_EMPTY: Final = (404, 501)
"""A group or workspace that is not there holds nothing. The sandbox has no endpoints and says so."""
_SHOWN: Final = 20
_OF_SCHEDULE: Final = re.compile(r"(?P<schedule>.+)-\d{8}T\d{6}Z", re.IGNORECASE)
"""The service's name of a run that a schedule has started, which bears no mark of a stack:
learn.microsoft.com/azure/machine-learning/how-to-schedule-pipeline-job, read 2026-11-24."""
_GUID: Final = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class AzureMade:
    """A resource that Azure makes beside one of the stack, and deletes with it or with its group.

    Attributes:
        type: Its resource type, in lower-case letters.
        name: Pattern of its name; ``{name}`` stands for the name of a resource of the stack.
        beside: Type of that resource, in lower-case letters; empty where the name has none.
        source: Where that is written.
    """

    type: str
    name: str
    beside: str
    source: str


AZURE_MADE: Final = tuple(
    AzureMade(row["type"], row["name"].replace("{guid}", _GUID), row["beside"], row["source"])
    for row in json.loads((Path(__file__).parent / "made_by_azure.json").read_text("utf-8"))
)
_IN_WORKSPACE: Final = ("computes", "onlineEndpoints", "batchEndpoints", "schedules", "datastores", "environments")
_AZURES_OWN: Final[Mapping[str, re.Pattern[str]]] = {
    # Every workspace has them from its beginning: learn.microsoft.com/azure/machine-learning/concept-data, 2026-11-24.
    "datastores": re.compile("workspace(blob|file|artifact)store|workspaceworkingdirectory"),
    # Curated ones, and those of jobs that bring their environment without a name.
    "environments": re.compile("azureml-.*|cliv2anonymousenvironment", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Foreign:
    """Something that is not the stack's.

    Attributes:
        kind: Last word of its type: ``storageAccounts``, ``jobs``.
        name: Its name.
        id: Its ARM id.
        active: Of a run of another stack that has not ended: a sentence that says so.
    """

    kind: str
    name: str
    id: str
    active: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    def is_named(self, words: Collection[str]) -> bool:
        """True where one of some words, in lower-case letters, names it."""
        return not {"*", f"{self.kind}/*".lower(), str(self).lower(), self.name.lower(), self.id.lower()}.isdisjoint(
            words
        )


def in_group(arm: ArmClient, group: str, owned: Iterable[str]) -> list[Foreign]:
    """The resources of a group that are neither of some ids nor Azure's own; none where there is no such group.

    Args:
        arm: Azure Resource Manager.
        group: ARM id of the group.
        owned: ARM ids of what the stack owns.

    Raises:
        ArmError: The list could not be read to its end.
    """
    own = {one.lower() for one in owned}
    return [
        Foreign(str(one["type"]).rpartition("/")[2], str(one["name"]).rpartition("/")[2], str(one["id"]))
        for one in arm.rows(f"{group}/resources", RESOURCES, allow=_EMPTY)
        if str(one.get("id")).lower() not in own and not _of_azure(one, own)
    ]


def in_workspace(
    arm: ArmClient, workspace: str, owned: Iterable[str], owners: Collection[str], stack_id: str
) -> list[Foreign]:
    """The resources of others that go with a workspace; none where there is no such workspace.

    Models, data assets and components are not among it: nothing says whose they are.

    Args:
        arm: Azure Resource Manager.
        workspace: ARM id of the workspace.
        owned: ARM ids of what the stack owns.
        owners: What the stack is called, now and formerly.
        stack_id: Its random id; empty when it has none.

    Raises:
        ArmError: A list could not be read to its end.
    """
    own = {one.lower() for one in owned}
    found = []
    for kind in _IN_WORKSPACE:
        for one in arm.rows(f"{workspace}/{kind}", allow=_EMPTY):
            name, known = str(one.get("name")), str(one.get("id")).lower()
            of_stack = known in own or any(each.startswith(f"{known}/") for each in own)
            azures = _AZURES_OWN.get(kind)
            if of_stack or (azures and azures.fullmatch(name)) or _marked(one, owners) or _by_content(kind, one):
                continue
            found.append(Foreign(kind, name, str(one.get("id"))))
    return [*found, *_jobs(arm, workspace, own, owners, stack_id)]


def _jobs(
    arm: ArmClient, workspace: str, own: Collection[str], owners: Collection[str], stack_id: str
) -> Iterator[Foreign]:
    rows = arm.rows(f"{workspace}/jobs", query={"listViewType": "All"}, allow=_EMPTY)
    records = {str(one.get("id")): record_of(str(one.get("name") or ""), one) for one in rows}
    schedules = frozenset(each.rpartition("/")[2] for each in own if "/schedules/" in each)
    for key, one in records.items():
        if one.owner is None and _started_by(one) in schedules:
            continue
        ours = one.stack == stack_id if one.stack and stack_id else one.owner in owners
        if not ours and key.lower() not in own:
            running = f"run {one.job_id} of stack {one.owner} is {one.status}"
            yield Foreign("jobs", one.job_id, key, running if one.owner and is_active(one.status) else "")


def _started_by(record: Record) -> str:
    """The schedule that started a run, in lower-case letters; empty where its names do not tell."""
    shown = (str(record.properties.get("displayName") or ""), record.job_id)
    return next((found["schedule"].lower() for each in shown if (found := _OF_SCHEDULE.fullmatch(each))), "")


def unnamed(found: Iterable[Foreign], words: str | None = None) -> list[Foreign]:
    """Those that nobody has named as what may go.

    Args:
        found: What is not the stack's.
        words: Names with commas between them; by default those of `VARIABLE`.
    """
    given = os.environ.get(VARIABLE, "") if words is None else words
    named = {word.strip().lower() for word in given.split(",") if word.strip()}
    return [one for one in found if not one.is_named(named)]


def listed(found: Collection[Foreign]) -> str:
    """``storageAccounts/stdata, jobs/a and 3 more``."""
    shown = ", ".join(str(one) for one in list(found)[:_SHOWN])
    return shown if len(found) <= _SHOWN else f"{shown} and {len(found) - _SHOWN} more"


def _marked(item: Mapping[str, Any], owners: Collection[str]) -> bool:
    """True where the stack's own mark is on it, as on schedules."""
    properties = item.get("properties") or {}
    return (properties.get("properties") or {}).get(OWNER) in owners


def _by_content(kind: str, item: Mapping[str, Any]) -> bool:
    """True where it is an environment under the hash of its content: stacks share these and leave them behind."""
    latest = (item.get("properties") or {}).get("latestVersion")
    return kind == "environments" and re.fullmatch("[0-9a-f]{12,64}", str(latest)) is not None


def _of_azure(item: Mapping[str, Any], own: Collection[str]) -> bool:
    """True where Azure has made it beside what the stack owns, or manages it for that."""
    if str(item.get("managedBy") or "").lower() in own:
        return True
    kind, name = str(item.get("type")).lower(), str(item.get("name")).lower()
    for rule in AZURE_MADE:
        beside = [one.rpartition("/")[2] for one in own if f"/providers/{rule.beside}/" in one] if rule.beside else [""]
        if rule.type == kind and any(re.fullmatch(rule.name.replace("{name}", re.escape(one)), name) for one in beside):
            return True
    return False
