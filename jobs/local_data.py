"""Data of this machine that a declaration names as inputs: found, scanned, exchanged for addresses of uploads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from amlstack import snapshot
from amlstack.base.findings import Finding, errors
from amlstack.snapshot import folder
from jobs.planning.job_checks import local_path
from jobs.values import Input, Model

if TYPE_CHECKING:
    from jobs.kinds import Planned

DATASTORE = "workspaceblobstore"
"""The datastore that azure-ai-ml uploads to where an input names none."""
MISSING = "input-path-missing"
"""A finding that is a warning of a job file, and refuses a stack, which uploads the data now."""


class LocalInput(NamedTuple):
    """An input whose data lie on this machine.

    Attributes:
        where: Its place in the declaration, ``inputs.raw`` or ``jobs.train.inputs.raw``.
        path: The file or folder; relative paths start from the job file's folder.
        type: The input's type.
        datastore: Name of the datastore that it is uploaded to.
    """

    where: str
    path: Path
    type: str
    datastore: str


class DataUpload(NamedTuple):
    """A file or folder, and the datastore that it goes to.

    Attributes:
        path: Where it lies.
        datastore: Name of the datastore.
        content: What is uploaded of it.
    """

    path: Path
    datastore: str
    content: snapshot.Snapshot

    @property
    def name(self) -> str:
        """The last part of its address."""
        return folder.name_of(self.path)

    def address(self, asset_type: str) -> str:
        """The address at which a job reads it, as an input of a type."""
        return folder.address(self.content, self.name, self.datastore, asset_type)


@dataclass(frozen=True, slots=True)
class LocalData:
    """The data of one run.

    Attributes:
        uploads: By the input's place (``inputs.raw``, ``jobs.train.inputs.raw``).
        addresses: Addresses of the same inputs, by place.
        assets: ``azureml:NAME:VERSION`` of inputs that name a data asset by another version than that: by a label.
    """

    uploads: Mapping[str, DataUpload] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    assets: Mapping[str, str] = field(default_factory=dict)

    def addressed(self, declared: Any) -> Any:
        """A declaration whose inputs have the addresses of their uploads and the versions of their data assets."""
        return (
            with_addresses(declared, {**self.assets, **self.addresses}.get) if self.uploads or self.assets else declared
        )

    def identity(self, declaration: Any) -> Any:
        """A run's declaration for its identity: with the content of its data, where it has such."""
        result = declaration
        if self.uploads:
            contents = {where: each.content.hash for where, each in sorted(self.uploads.items())}
            result = {**result, "local_data": contents}
        return {**result, "data_assets": dict(sorted(self.assets.items()))} if self.assets else result


@dataclass(slots=True)
class DataFolders:
    """The data of a stack's runs. Each file or folder is read and hashed once, however many runs name it."""

    _scanned: dict[Path, snapshot.Snapshot] = field(default_factory=dict)

    def scanned(self, plan: Planned) -> tuple[LocalData, list[Finding]]:
        """The data of a run, and what is wrong with them; the places of findings are those of inputs, or files."""
        uploads: dict[str, DataUpload] = {}
        addresses: dict[str, str] = {}
        found: list[Finding] = []
        known = {finding.where for finding in plan.findings if finding.code == MISSING}
        # What a schedule starts may stand in a file of its own.
        base = (plan.runs or plan).base
        for each in local_inputs(plan.job, base):
            content = self.content(each.path)
            found += (one for one in wrong(each, content) if one.where not in known)
            if content.hash:
                uploads[each.where] = upload = DataUpload(each.path, each.datastore, content)
                addresses[each.where] = upload.address(each.type)
        return LocalData(uploads, addresses), list(dict.fromkeys(found))

    def content(self, path: Path) -> snapshot.Snapshot:
        """The content of an upload of a file or folder."""
        if path not in self._scanned:
            self._scanned[path] = snapshot.scan_data(path)
        return self._scanned[path]


def local_inputs(declared: Any, base: Path) -> tuple[LocalInput, ...]:
    """The inputs whose data lie on this machine: of a job, a sweep, a pipeline with its steps, a schedule of such."""
    return tuple(
        LocalInput(where, absolute(value.path, base), value.type, bare_datastore(value.datastore))
        for where, value in all_inputs(declared).items()
        if value.path and local_path(value.path)
    )


def all_inputs(declared: Any) -> dict[str, Input]:
    """The data that a declaration reads, by place: of a job, a sweep, a pipeline with its steps, a schedule of such."""
    found: dict[str, Input] = {}

    def take(where: str, value: Input) -> Input:
        found[where] = value
        return value

    _changed(declared, "", take)
    return found


def with_addresses(declared: Any, address: Callable[[str], str | None]) -> Any:
    """The same declaration with other paths for some of its inputs.

    Args:
        declared: A job, a sweep, a pipeline or a schedule.
        address: From an input's place to its path; None for one that stays as it is.
    """

    def exchange(where: str, value: Input) -> Input:
        path = address(where)
        return value if path is None else value.model_copy(update={"path": path, "datastore": None})

    return _changed(declared, "", exchange)


def _changed(value: Any, where: str, change: Callable[[str, Input], Input]) -> Any:
    """A part of a declaration with each of its inputs changed; itself where nothing was."""
    update: dict[str, Any] = {}
    given = getattr(value, "inputs", {})
    inputs = {
        name: change(f"{where}inputs.{name}", each) if isinstance(each, Input) else each for name, each in given.items()
    }
    if any(each is not given[name] for name, each in inputs.items()):
        update["inputs"] = inputs
    # What a schedule starts has its places as if nothing were around it.
    inner = where if value.HOLDS == "create_job" else f"{where}{value.HOLDS}."
    held = getattr(value, value.HOLDS, None) if value.HOLDS else None
    if isinstance(held, dict):
        steps = {name: _changed(step, f"{inner}{name}.", change) for name, step in held.items()}
        if any(step is not held[name] for name, step in steps.items()):
            update[value.HOLDS] = steps
    elif isinstance(held, Model) and (changed := _changed(held, inner, change)) is not held:
        update[value.HOLDS] = changed
    return value.model_copy(update=update) if update else value


def absolute(written: str, base: Path) -> Path:
    """The path that a declaration means, which starts from ``base`` where it is relative."""
    return base.absolute() / (unquote(urlsplit(written).path) if written.startswith("file:") else written)


def bare_datastore(written: str | None) -> str:
    """The bare name; ``azureml:NAME`` and an ARM id are taken too, as azure-ai-ml takes them."""
    return written.removeprefix("azureml:").rstrip("/").rpartition("/")[2] if written else DATASTORE


def wrong(each: LocalInput, content: snapshot.Snapshot) -> Iterator[Finding]:
    """Findings on data of this machine: missing, unreadable, of another kind than their type says."""
    where = f"{each.where}.path"
    for finding in content.findings:
        if finding.code == MISSING:
            yield Finding(finding.code, where, finding.seen, finding.rule, finding.remedy)
        else:
            place = str(content.root / finding.file) if finding.file else None
            yield Finding(
                finding.code, "", finding.seen, finding.rule, finding.remedy, finding.level, place, finding.line
            )
    is_folder = content.root.is_dir()
    if not errors(content.findings) and is_folder is (each.type == "uri_file"):
        got, wanted = ("folder", "a file") if is_folder else ("file", "a folder")
        if is_folder or each.type in {"uri_folder", "mltable"}:
            seen, rule = f"`{each.path.name}` is a {got}", f"An input of the type {each.type} is {wanted}"
            remedy = f"Write `type: {'uri_folder' if is_folder else 'uri_file'}`, or name {wanted}."
            yield Finding("input-path-kind", where, seen, rule, remedy)
