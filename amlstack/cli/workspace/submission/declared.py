"""The runs of a job file as a stack declares them, or a workspace without a stack; and all that is wrong with them."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, errors
from amlstack.base.paths import PROJECT
from amlstack.cli.workspace.place import settings_file
from amlstack.provider.arm import capacity
from infra.declaration import declare
from infra.settings import JobFile, parse, read_file

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Iterator
    from datetime import date
    from pathlib import Path

    from amlstack.cli.workspace.place import WorkspacePlace
    from infra.contents.assets import PlannedAsset
    from infra.declaration import Declaration
    from infra.runs import Run
    from infra.settings import Reading

OWNER: Final = ("no-stack", "submit")
"""Project and stack in the place of those that there are not."""
_ANYWHERE: Final = "westeurope"
"""The region assumed for a workspace that no stack declares; nothing of a job follows from it."""
_KNOWN_ELSEWHERE: Final = "cluster-unknown"


@dataclass(frozen=True, slots=True)
class DeclaredRuns:
    """What a job file declares, as it is meant here.

    Attributes:
        runs: Those of the file.
        others: All of the stack, which they may come after.
        findings: What is wrong with them; errors refuse them.
        project, stack: Whose runs they are.
        stack_id: The stack's id where its settings give it.
        secrets: The values of the stack's secrets, as far as they are readable.
        assets: The stack's data assets.
    """

    runs: tuple[Run, ...]
    others: tuple[Run, ...]
    findings: tuple[Finding, ...]
    project: str
    stack: str
    stack_id: str | None = None
    secrets: Any = None
    assets: tuple[PlannedAsset, ...] = ()


def of_stack(file: Path, stack: str, on: date) -> DeclaredRuns:
    """The runs of a file as ``pulumi up`` of a stack has them: listed by it, or as if it were listed alone.

    Raises:
        NoStackError: There is no such stack.
    """
    from amlstack.cli.stack.anywhere import judged

    path, name, project = settings_file(stack), stack.rpartition("/")[2], judged.project()
    reading, root = read_file(path), path.parent
    if reading.partial is None:
        return DeclaredRuns((), (), reading.findings, project, name)
    reading, index = _listing(reading, file, root)
    declaration = declare(reading, on=on, root=root, place=f"{name}::{project}")
    runs = _of_file(declaration, reading, index)
    findings = tuple(_meant(declaration.findings, file, index, runs, path))
    settings = reading.partial
    assert settings is not None  # noqa: S101 - see above
    return DeclaredRuns(
        runs, declaration.runs, findings, project, name, settings.stack_id, settings.secrets, declaration.data
    )


def of_workspace(file: Path, place: WorkspacePlace, on: date, cancelled: threading.Event) -> DeclaredRuns:
    """The runs of a file against the clusters that a workspace has; no stack declares anything.

    Raises:
        ArmError: The workspace's computes cannot be listed.
    """
    clusters = capacity.of_workspace(place.arm, {"workspace": place.workspace}, cancelled)["clusters"]
    settings = {
        "location": _ANYWHERE,
        "workspace": {"existing": place.workspace},
        "clusters": [
            {"name": row["name"], "size": row["size"], "nodes": {"min": 0, "max": max(1, row["max"])}}
            for row in clusters
        ],
        "jobs": [{"file": str(file.resolve())}],
    }
    reading = parse(settings)
    declaration = declare(replace(reading, findings=()), on=on, place="::".join(reversed(OWNER)))
    runs = _of_file(declaration, reading, 0)
    findings = [_of_no_stack(each) for each in _meant(declaration.findings, file, 0, runs, PROJECT / "none")]
    # A Kubernetes cluster or a compute instance has no size that is known here: the service judges it.
    known = {str(row).lower() for row in _names_of_computes(place)} if _unknown(findings) else set()
    computes = {
        str(part.job.compute or "").removeprefix("azureml:").lower() for run in runs for part in run.plan.parts.values()
    }
    if computes & known:
        findings = [each for each in findings if each.code != _KNOWN_ELSEWHERE]
    return DeclaredRuns(runs, declaration.runs, tuple(findings), *OWNER)


def _names_of_computes(place: WorkspacePlace) -> Iterator[str]:
    answer = place.arm.get(f"{place.workspace}/computes", allow=(404,))
    while True:
        yield from (str(row.get("name")) for row in answer.body.get("value") or ())
        if not answer.body.get("nextLink"):
            return
        answer = place.arm.request("GET", str(answer.body["nextLink"]), None)


def _unknown(findings: Iterable[Finding]) -> bool:
    return any(each.code == _KNOWN_ELSEWHERE for each in findings)


def _listing(reading: Reading, file: Path, root: Path) -> tuple[Reading, int]:
    """The settings with the file among their jobs, and where it is."""
    settings = reading.partial
    assert settings is not None  # noqa: S101 - who calls has looked
    for index, each in enumerate(settings.jobs):
        if (root / each.file).resolve() == file.resolve():
            return reading, index
    written = os.path.relpath(file.resolve(), root.resolve())
    more = settings.model_copy(update={"jobs": (*settings.jobs, JobFile(file=written))})
    return replace(reading, partial=more), len(settings.jobs)


def _of_file(declaration: Declaration, reading: Reading, index: int) -> tuple[Run, ...]:
    assert reading.partial is not None  # noqa: S101 - who calls has looked
    named = reading.partial.jobs[index].file
    names = {run for file, run in declaration.listed if file == named}
    return tuple(run for run in declaration.runs if run.name in names)


def _meant(
    findings: Iterable[Finding], file: Path, index: int, runs: Iterable[Run], settings: Path
) -> Iterator[Finding]:
    """What is about these runs, and what is wrong with the settings: of other jobs nothing."""
    folders = {code.root.resolve() for run in runs for code in run.codes.values()}
    for each in findings:
        place = None if each.file is None else (settings.parent / each.file).resolve()
        listed = each.where.startswith("amlstack:jobs[")
        own = listed and each.where.startswith(f"amlstack:jobs[{index}]")
        if place is not None and place.name != settings.name:
            own = place == file.resolve() or any(place.is_relative_to(folder) for folder in folders)
        elif not listed:
            own = bool(errors((each,)))
        if own:
            yield each


def _of_no_stack(finding: Finding) -> Finding:
    return replace(
        finding,
        seen=finding.seen.replace("The stack has no cluster", "The workspace has no cluster"),
        rule=finding.rule.replace("a cluster of its stack", "a cluster of its workspace"),
        remedy=finding.remedy.replace(
            "Declare it under amlstack:clusters.", "`az ml compute list` lists those there are."
        ),
    )
