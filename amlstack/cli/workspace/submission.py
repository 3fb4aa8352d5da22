"""A job file submitted to a workspace as `pulumi up` would submit it: judged, registered and named by the same code.

A run is submitted once more by its own body, with what is to be another.
"""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, errors
from amlstack.base.paths import PROJECT
from amlstack.base.text import did_you_mean
from amlstack.cli.workspace.downloads import ProgressHost
from amlstack.cli.workspace.workspace_place import WorkspacePlace, settings_file
from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError, client
from amlstack.provider.resource import Call, Resource, Services
from amlstack.provider.runs import OnEdit, Record, Runs, Wait
from amlstack.provider.types import versions
from amlstack.provider.types.jobs import JobRuns
from amlstack.rpc import Failures, Host, ProviderError
from amlstack.sandbox.scale import QUERY, RehearsalScale
from infra import resource_types
from infra.declaration import Declaration, declare
from infra.names import Names
from infra.runs.registration import Registration, job_inputs
from infra.settings import JobFile, parse, read_file
from infra.settings.checks import REDACTED
from jobs.wire.command import secrets_in, with_secrets

if TYPE_CHECKING:
    from datetime import date

    from amlstack.cli.console import Progress
    from amlstack.cli.workspace.job_search import WorkspaceJob
    from infra.data import PlannedAsset
    from infra.runs import Run
    from jobs.local_data import DataUpload
    from policies.gate import Gate

OWNER: Final = ("no-stack", "submit")
"""Project and stack in the place of those that there are not."""
_ANYWHERE: Final = "westeurope"
"""The region assumed for a workspace that no stack declares; nothing of a job follows from it."""
_KNOWN_ELSEWHERE: Final = "cluster-unknown"


@dataclass(frozen=True, slots=True)
class DeclaredRuns:
    """The runs that a job file declares, as they are meant here.

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
    from amlstack.cli import stack_files

    path, name, project = settings_file(stack), stack.rpartition("/")[2], stack_files.project_name()
    reading, root = read_file(path), path.parent
    settings = reading.partial
    if settings is None:
        return DeclaredRuns((), (), reading.findings, project, name)
    files = [(root / each.file).resolve() for each in settings.jobs]
    if file.resolve() not in files:
        added = JobFile(file=os.path.relpath(file.resolve(), root.resolve()))
        settings = settings.model_copy(update={"jobs": (*settings.jobs, added)})
    index = [*files, file.resolve()].index(file.resolve())
    declaration = declare(replace(reading, partial=settings), on=on, root=root, place=f"{name}::{project}")
    runs = _of_file(declaration, settings.jobs[index].file)
    findings = tuple(_meant(declaration.findings, file, index, runs, path))
    return DeclaredRuns(
        runs, declaration.runs, findings, project, name, settings.stack_id, settings.secrets, declaration.data
    )


def of_workspace(file: Path, place: WorkspacePlace, on: date, cancelled: threading.Event) -> DeclaredRuns:
    """The runs of a file against the clusters that a workspace has; no stack declares anything.

    Raises:
        ArmError: The workspace's computes cannot be listed.
    """
    clusters = client.read_clusters(place.arm, {"workspace": place.workspace}, cancelled)["clusters"]
    settings = {
        "location": _ANYWHERE,
        "workspace": {"existing": place.workspace},
        "clusters": [
            {"name": row["name"], "size": row["size"], "nodes": {"min": 0, "max": max(1, row["max"])}}
            for row in clusters
        ],
        "jobs": [{"file": str(file.resolve())}],
    }
    declaration = declare(replace(parse(settings), findings=()), on=on, place="::".join(reversed(OWNER)))
    runs = _of_file(declaration, str(file.resolve()))
    findings = [_of_no_stack(each) for each in _meant(declaration.findings, file, 0, runs, PROJECT / "none")]
    if any(each.code == _KNOWN_ELSEWHERE for each in findings):
        # A Kubernetes cluster or a compute instance has no size that is known here: the service judges it.
        known = {str(row.get("name")).lower() for row in place.arm.rows(f"{place.workspace}/computes", allow=(404,))}
        computes = (str(part.job.compute or "") for run in runs for part in run.plan.parts.values())
        if any(each.removeprefix("azureml:").lower() in known for each in computes):
            findings = [each for each in findings if each.code != _KNOWN_ELSEWHERE]
    return DeclaredRuns(runs, declaration.runs, tuple(findings), *OWNER)


def _of_file(declaration: Declaration, named: str) -> tuple[Run, ...]:
    """The runs of a file, as the settings name it."""
    names = {run for file, run in declaration.listed if file == named}
    return tuple(run for run in declaration.runs if run.name in names)


def _meant(
    findings: Iterable[Finding], file: Path, index: int, runs: Iterable[Run], settings: Path
) -> Iterator[Finding]:
    """Yield the findings about these runs and about the settings: none of other jobs."""
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


def register(
    services: Services, workspace: str, registration: Registration, assets: Iterable[PlannedAsset] = ()
) -> None:
    """Registers code, environments, data and component versions; what is there already is taken as it is.

    Args:
        services: The provider's, with a host that takes the progress.
        workspace: ARM id of the workspace.
        registration: What the run needs.
        assets: The stack's data assets, of which those are registered that the run reads.

    Raises:
        ArmError, ProviderError: The service refused something.
    """

    def create(kind: type[Resource], **given: Any) -> None:
        kind(services).create(Call(urn=""), {"workspace": workspace, **given})

    def upload(data: DataUpload) -> None:
        create(versions.DataUploads, path=str(data.path), hash=data.content.hash, datastore=data.datastore)

    for part in registration.parts:
        if (code := part.code) is not None:
            beside = os.pathsep.join(map(str, part.beside))
            create(versions.Snapshots, path=str(code.root), hash=code.hash, beside=beside)
        if (environment := part.environment) is not None:
            create(versions.RegisteredEnvironments, name=environment.name, body=environment.body)
    for data in registration.uploads:
        upload(data)
    for asset in assets:
        if asset.reference in registration.assets:
            if asset.upload is not None:
                upload(asset.upload)
            create(versions.RegisteredData, name=asset.spec.name, version=asset.version, body=asset.body)
    for component in registration.components:
        body = dict(component.properties)
        create(versions.RegisteredComponents, name=component.name, version=component.version, body=body)


@dataclass
class Submission:
    """The runs of a job file, against one workspace.

    Attributes:
        place: The workspace.
        declared: What the file declares.
        progress: Where its progress is shown.
        cancelled: Ends requests and uploads when it is set.
        scale: What the sandbox starts at most; None for all.
    """

    place: WorkspacePlace
    declared: DeclaredRuns
    progress: Progress
    cancelled: threading.Event = field(default_factory=threading.Event)
    scale: RehearsalScale | None = None
    _services: Services = field(init=False)
    _jobs: JobRuns = field(init=False)

    def __post_init__(self) -> None:
        arm, query = self.place.arm, None if self.scale is None else {QUERY: str(self.scale)}
        self._services = Services(arm, Runs(arm, query), ProgressHost(self.progress.note), self.cancelled)
        self._jobs = JobRuns(self._services)

    @property
    def names(self) -> Names:
        """Ids in the workspace."""
        _, _, subscription, _, group, *_, workspace = self.place.workspace.split("/")
        return Names(subscription, group, workspace)

    def foreseen(self, run: Run) -> tuple[str, Record | None]:
        """The run's name in the workspace, and its record where it is there already.

        Raises:
            ProviderError: A run that is there keeps this one from being submitted.
            ArmError: The workspace cannot be asked.
        """
        _, state = self._jobs.create(self._call(run, preview=True), self._inputs(run, self.registration(run)))
        name = str(state["jobId"]).rpartition("/")[2]
        return name, self._services.runs.find(self.place.workspace, name)

    def send(self, run: Run) -> str:
        """Registers what the run needs and submits it, unless it is there already.

        Returns:
            Its name in the workspace.

        Raises:
            ProviderError, ArmError: The service refused something; nothing was submitted then.
        """
        registration = self.registration(run)
        register(self._services, self.place.workspace, registration, self.declared.assets)
        run_id, _ = self._jobs.create(self._call(run), self._inputs(run, registration, submits=True))
        return run_id

    def registration(self, run: Run) -> Registration:
        """The requirements of the run, and its body."""
        return Registration.of(run.name, run.plan, run.codes, self.names, run.data, assets=run.assets)

    @cached_property
    def _stack_id(self) -> str | None:
        """That of the settings, else the one that the stack's runs bear: its state is the engine's alone."""
        if self.declared.stack_id or self.place.stack is None:
            return self.declared.stack_id
        owner = f"{self.declared.project}/{self.declared.stack}"
        return run_lists.stack_id_of(self.place.arm, self.place.workspace, owner) or None

    def _call(self, run: Run, *, preview: bool = False) -> Call:
        """With the URN that the engine gives the run's resource: what its record then says of its owner."""
        where = f"urn:pulumi:{self.declared.stack}::{self.declared.project}"
        return Call(f"{where}::{resource_types.JOBS}${resource_types.JOB}::{run.name}", preview=preview)

    def _inputs(self, run: Run, registration: Registration, *, submits: bool = False) -> dict[str, Any]:
        """The inputs of the run's resource, as `infra.components.runs` composes them."""
        job = run.declared
        inputs = {
            **job_inputs(run),
            "workspace": self.place.workspace,
            "body": self._filled(registration.body) if submits else registration.body,
            "onEdit": job.on_edit if self.place.stack else OnEdit.KEEP.value,
            "wait": Wait.NONE.value,
            "stackId": self._stack_id,
            "after": [self._before(name) for name in run.after] if submits else None,
        }
        failures = Failures()
        checked = self._jobs.check(
            self._call(run), {key: value for key, value in inputs.items() if value is not None}, failures
        )
        if failures:
            raise ProviderError("; ".join(failures.reasons))
        return checked

    def _before(self, name: str) -> dict[str, str]:
        """A run that this one comes after, as the provider looks it up."""
        other = next(run for run in self.declared.others if run.name == name)
        silent = JobRuns(replace(self._services, host=Host()))
        _, state = silent.create(self._call(other, preview=True), self._inputs(other, self.registration(other)))
        return {"job": name, "run": str(state["jobId"]), "status": ""}

    def _filled(self, body: dict[str, Any]) -> dict[str, Any]:
        values = {name: value for name, value in (self.declared.secrets or {}).items() if value != REDACTED}
        closed = sorted({secret for _, secret in secrets_in(body) if secret not in values})
        if closed:
            shown = ", ".join(f"`{name}`" for name in closed)
            stack = f" --stack {self.place.stack}" if self.place.stack else ""
            raise ProviderError(
                f"The job has variables with secrets of the stack ({shown}), and only Pulumi opens its encrypted "
                f"settings. `amlstack up{stack}` submits it."
            )
        found: dict[str, Any] = with_secrets(body, values)
        return found


_WRITTEN: Final = ("status", "parameters", "properties", "isArchived", "displayName")
"""Properties that the service writes, that say whose run it was, or by which it is known."""
_OF_THE_SERVICE: Final = ("Tracking", "Studio")
_PLAIN: Final = {
    "compute": ("computeId",),
    "display_name": ("displayName",),
    "experiment_name": ("experimentName",),
    "instance_count": ("resources", "instanceCount"),
    "timeout": ("limits", "timeout"),
}
"""Settings by the names of job files, and their keys in the body."""
SETTINGS: Final = (*_PLAIN, "inputs.NAME", "environment_variables.NAME", "tags.NAME")


class NoSettingError(Exception):
    """A ``--set`` that cannot be applied; the message says why."""


def body_of(job: WorkspaceJob, changes: Iterable[str]) -> dict[str, Any]:
    """The body of a run that does the same, but for the changes.

    Args:
        job: The run.
        changes: ``NAME=VALUE`` each; names as in `SETTINGS`.

    Raises:
        NoSettingError: There is no such setting, or it has no such value.
    """
    kept = {name: copy.deepcopy(each) for name, each in job.record.properties.items() if name not in _WRITTEN}
    services = kept.get("services") or {}
    kept["services"] = {name: each for name, each in services.items() if name not in _OF_THE_SERVICE}
    outputs = kept.get("outputs") or {}
    kept["outputs"] = {name: each for name, each in outputs.items() if "/dcid." not in str((each or {}).get("uri"))}
    kept["tags"] = {name: each for name, each in job.record.tags.items() if not name.startswith("amlstack.")}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals:
            raise NoSettingError(f"`--set {change}` is no NAME=VALUE.")
        _set(kept, name, value)
    return {"properties": kept}


def _set(properties: dict[str, Any], name: str, value: str) -> None:
    group, _, key = name.partition(".")
    if path := _PLAIN.get(name.removeprefix("resources.").removeprefix("limits.")):
        _set_plain(properties, path, name, value)
    elif group == "inputs" and key:
        inputs = properties.get("inputs") or {}
        if not isinstance(given := inputs.get(key), dict):
            raise NoSettingError(f"The job has no input `{key}`. {did_you_mean(key, list(inputs))}".rstrip())
        given["value" if given.get("jobInputType") == "literal" else "uri"] = value
    elif group in ("environment_variables", "tags") and key:
        wire = "environmentVariables" if group == "environment_variables" else group
        properties[wire] = {**(properties.get(wire) or {}), key: value}
    else:
        raise NoSettingError(f"`{name}` cannot be set. {did_you_mean(name, list(SETTINGS))}")


def _set_plain(properties: dict[str, Any], path: tuple[str, ...], name: str, value: str) -> None:
    found: Any = value
    if path[-1] in ("instanceCount", "timeout"):
        if not re.fullmatch(r"[1-9]\d{0,7}", value):
            unit = "seconds" if path[-1] == "timeout" else "nodes"
            raise NoSettingError(f"`{name}` is a whole number of {unit}, got `{value}`.")
        found = int(value) if path[-1] == "instanceCount" else f"PT{value}S"
    if path == ("computeId",):
        old = str(properties.get("computeId") or "")
        found = value if value.startswith("/") else f"{old.rpartition('/')[0]}/{value}"
    holder = properties
    for step in path[:-1]:
        holder[step] = holder = dict(holder.get(step) or {})
    if path[-1] == "timeout":
        holder.setdefault("jobLimitsType", str(properties.get("jobType") or "Command"))
    holder[path[-1]] = found


def judge(place: WorkspacePlace, job: WorkspaceJob, body: dict[str, Any], gate: Gate) -> tuple[Finding, ...]:
    """The findings of the policy pack's rules on the new body; its cluster is read from the workspace."""
    compute = str(body["properties"].get("computeId") or "")
    try:
        answer = place.arm.look(compute) if "/computes/" in compute else None
    except ArmError:
        answer = None
    inner = (((answer.body if answer is not None else None) or {}).get("properties") or {}).get("properties") or {}
    if size := inner.get("vmSize"):
        gate.knows(compute.rpartition("/")[2], str(size))
    given = {"jobBaseProperties": body["properties"], "id": job.name, "workspaceName": job.workspace.rpartition("/")[2]}
    return gate.judge("azure-native:machinelearningservices:Job", job.name, given)


def new_name(job: WorkspaceJob) -> str:
    """A name for the new run: the old one's, and six letters that no other run has."""
    return f"{job.name[:240]}-{os.urandom(3).hex()}"
