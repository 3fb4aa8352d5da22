"""Named outputs of rehearsals: where they lie afterwards, and how a rehearsal starts without those of earlier ones.

An output with a path of its own is one folder for all rehearsals of its job: there checkpoints are found again.
"""

from __future__ import annotations

import json
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from amlstack.base import paths
from amlstack.cli import consent
from amlstack.cli.rehearsal.inputs import rehearsal_workspace
from amlstack.sandbox.contract.spec import RefusedError
from amlstack.sandbox.files.storage import Location, Storage
from amlstack.sandbox.store.places import folder, private
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import jobs
    from amlstack.cli.logs.follower import Follower
    from amlstack.cli.progress import Progress

SET_ASIDE = "set-aside-"
"""Prefix of the folders, beside those of the storage accounts, to which ``--fresh`` moves earlier outputs."""


@dataclass(frozen=True, slots=True)
class EarlierOutput:
    """The files that earlier rehearsals left in a named output.

    Attributes:
        label: ``NAME`` or ``STEP.NAME``.
        place: In the sandbox's storage.
        files: How many files they are.
        users: Jobs that have not ended and write there.
    """

    label: str
    place: Location
    files: int
    users: tuple[str, ...] = ()


def lines(job: Follower) -> Iterator[str]:
    """A line for the folder of each named output, of trials and steps too."""
    children = {child.files.folder: f"{child.label} · " for child in job.children.values()}
    for path, label in ({job.folder: ""} | children).items():
        try:
            report = json.loads((path / "report.json").read_text())
        except (OSError, ValueError):
            continue
        for output, places in (report.get("named_outputs") or {}).items():
            first, *more = places
            rest = f" (and {len(more)} more, one of each node)" if more else ""
            yield f"{label}output {output}: {first}{rest}"


def earlier_outputs(home: Path, workspace: str, plans: Sequence[jobs.Planned]) -> tuple[EarlierOutput, ...]:
    """The outputs of earlier rehearsals that a rehearsal would find; each place once."""
    if not (folder(home) / "state.db").is_file():
        return ()
    found: dict[Location, EarlierOutput] = {}
    with closing(Store(home)) as store:
        storage = Storage(store, workspace)
        active = store.jobs.list(active=True)
        for label, uri in (pair for plan in plans for pair in _declared(plan)):
            try:
                place = storage.locate(uri, f"The output {label!r}")
            except RefusedError:
                continue
            if not isinstance(place, Location) or not place.path or place in found:
                continue
            names = {name for name, _ in storage.files(place)}
            mount = _mount(home, place)
            names |= {str(file.relative_to(mount)) for file in mount.rglob("*") if file.is_file()}
            users = tuple(row.name for row in active if _writes(row.properties, uri))
            if names:
                found[place] = EarlierOutput(label, place, len(names), users)
    return tuple(found.values())


def set_aside(home: Path, workspace: str, outputs: Sequence[EarlierOutput]) -> Path:
    """Moves earlier outputs out of the way, out of the storage too; the folder that holds them from now on."""
    mounts = private(folder(home) / "mounts")
    kept = Path(tempfile.mkdtemp(prefix=f"{SET_ASIDE}{time.strftime('%Y%m%d-%H%M%S')}-", dir=mounts))
    with closing(Store(home)) as store:
        storage = Storage(store, workspace)
        for each in outputs:
            place = each.place
            target = kept / place.container / place.path
            target.parent.mkdir(parents=True, exist_ok=True)
            storage.mount(place).rename(target)
            blobs = store.blobs.under(place.account, place.container, f"{place.path}/")
            one = store.blobs.get(place.account, place.container, place.path)
            for blob in (*blobs, *([one] if one is not None else [])):
                store.blobs.delete(blob)
    return kept


def start_afresh(progress: Progress, plans: Sequence[jobs.Planned], *, yes: bool) -> None:
    """Sets aside what earlier rehearsals left in the named outputs; on a terminal after a question.

    Raises:
        typer.Exit: With 1: a job that has not ended writes there, or the answer was no.
    """
    home, workspace = paths.home(), rehearsal_workspace()
    earlier = earlier_outputs(home, workspace, plans)
    if not earlier:
        progress.step("no earlier outputs: nothing to set aside")
        return
    if users := sorted({name for each in earlier for name in each.users}):
        progress.fail(f"{', '.join(users)} still writes to these outputs: wait for its end, or `amlstack cancel` it")
        raise typer.Exit(1)
    progress.step("set aside, so that the rehearsal starts without them:")
    for each in earlier:
        progress.note(f"output {each.label}: {each.files} file{'' if each.files == 1 else 's'} of earlier rehearsals")
    if not yes and consent.on_a_terminal() and not consent.given("Set these aside?"):
        progress.note("nothing was set aside, nothing was submitted")
        raise typer.Exit(1)
    progress.note(f"they are kept in {set_aside(home, workspace, earlier)}")


def _declared(plan: jobs.Planned) -> Iterator[tuple[str, str]]:
    """Label and address of each named output that has an address of its own."""
    whole = {"": getattr(plan.job, "outputs", {})}
    parts = {place.removeprefix("jobs."): part.job.outputs for place, part in plan.parts.items()}
    for step, outputs in (whole | parts).items():
        for name, output in outputs.items():
            if path := getattr(output, "path", None):
                yield f"{step}.{name}".lstrip("."), str(path)


def _mount(home: Path, place: Location) -> Path:
    return folder(home) / "mounts" / place.account / place.container / place.path


def _writes(properties: object, uri: str) -> bool:
    outputs = properties.get("outputs") if isinstance(properties, dict) else None
    return any(
        isinstance(each, dict) and str(each.get("uri") or "").rstrip("/") == uri.rstrip("/")
        for each in (outputs or {}).values()
    )
