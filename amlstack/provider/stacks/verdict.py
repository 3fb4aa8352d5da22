"""The fate of active runs when a part of the stack goes: pure functions of records and declarations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.provider.states import OnEdit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from amlstack.provider.runs import Record

_REMEDY = "Wait for its end or cancel it"
_FIRST = "let a first `up` record it and change nothing else"


@dataclass(frozen=True, slots=True)
class Going:
    """The things that an `up` takes away.

    Attributes:
        jobs: ``on_edit`` of the jobs that are no longer declared, by name; None where only the run's record knows it.
        clusters: What happens to each cluster that goes, ``replaced`` or ``removed``, by its ARM id in lower case.
        workspace: The workspace, or what it stands on, is replaced.
        reached_by: An identity or the network that runs reach their data by is replaced.
        every_other: Any job that is not in ``declared`` counts as no longer declared.
        declared: ``on_edit`` of the jobs that are declared, by name.
    """

    jobs: Mapping[str, str] = field(default_factory=dict)
    clusters: Mapping[str, str] = field(default_factory=dict)
    workspace: bool = False
    reached_by: bool = False
    every_other: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.clusters or self.workspace or self.reached_by or self.every_other)


@dataclass(frozen=True, slots=True)
class GuardVerdict:
    """The verdict: things that are refused, announced and kept.

    Attributes:
        refused: One sentence for each run that stands against it.
        announced: One sentence for each run that ends or goes on.
        kept: Ids of runs that go on although their job goes.
    """

    refused: tuple[str, ...]
    announced: tuple[str, ...]
    kept: tuple[str, ...]


def judge(records: Iterable[Record], going: Going) -> GuardVerdict:
    """The verdict on the active runs of a stack."""
    refused, announced, kept = [], [], []
    for record in records:
        seen = f"run {record.job_id} is {record.status}"
        if place := _place(record.computes, going):
            if record.kept_for:
                refused.append(f"{seen} by an earlier `on_edit: keep`, and {place}. {_REMEDY}")
            elif (mode := _mode(record, going)) is OnEdit.CANCEL:
                announced.append(f"{seen} and is ended first (on_edit: cancel): {place}")
            else:
                why = "`on_edit: keep` cannot hold there. " if mode is OnEdit.KEEP else ""
                # What is replaced is judged by the recorded words of its jobs, before the new ones are registered.
                first = "" if "removed" in place else f": {_FIRST}"
                refused.append(f"{seen}, and {place}. {why}{_REMEDY}, or end it by `on_edit: cancel`{first}")
            continue
        if record.name not in going.jobs and not (going.every_other and _unknown(record, going)):
            continue
        job = f"job {record.name} is no longer declared"
        match _mode(record, going):
            case OnEdit.CANCEL:
                announced.append(f"{seen} and is ended (on_edit: cancel): {job}")
            case OnEdit.KEEP:
                announced.append(f"{seen} and goes on (on_edit: keep), though {job}")
                kept.append(record.job_id)
            case _:
                refused.append(
                    f"{seen}, and {job}. {_REMEDY}; or declare the job again with `on_edit: cancel` (it is ended) or "
                    f"`on_edit: keep` (it goes on), and {_FIRST}"
                )
    return GuardVerdict(tuple(refused), tuple(announced), tuple(kept))


def _place(computes: Collection[str], going: Going) -> str:
    """The place of a run that is about to go, in words; empty when none is."""
    if going.workspace:
        return "its workspace, or what that stands on, would be replaced"
    for place in sorted(computes):
        if place in going.clusters:
            return f"its cluster {place.rsplit('/', 1)[-1]} would be {going.clusters[place]}"
    if going.reached_by:
        return "the identity or the network that it reaches its data by would be replaced"
    return ""


def _unknown(record: Record, going: Going) -> bool:
    """True where nothing speaks for a run: a kept one was promised to go on."""
    return record.name not in going.declared and not record.kept_for


def _mode(record: Record, going: Going) -> OnEdit:
    on_edit = going.declared.get(record.name) or going.jobs.get(record.name) or record.on_edit
    return OnEdit(on_edit) if on_edit in tuple(OnEdit) else OnEdit.REFUSE
