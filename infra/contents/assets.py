"""The data assets of a stack: the version, the address and the body of each, known before anything is registered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack import run_identity
from amlstack.base import yamltext
from amlstack.base.findings import Finding, errors
from amlstack.snapshot import data
from jobs.local_data import DATASTORE, DataUpload, LocalInput, absolute, wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from infra.settings import DataAsset, Reading, Settings
    from jobs.local_data import DataFolders

MLTABLE: Final = "MLTable"
"""The file that makes a folder a table."""
_PATHS: Final = ("file", "folder", "pattern")
"""What an entry of its `paths` may be."""


@dataclass(frozen=True, slots=True)
class PlannedAsset:
    """One version of a data asset.

    Attributes:
        spec: The settings.
        version: As declared, or sixteen hex digits made from type, content, name and datastore; empty for data of this
            machine that have not been read.
        uri: Where the data lie, or will; empty likewise.
        upload: What is uploaded of this machine; None for data at an address.
        referenced: What a table on this machine refers to.
    """

    spec: DataAsset
    version: str
    uri: str
    upload: DataUpload | None = None
    referenced: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """``azureml:NAME:VERSION``, as a job names it."""
        return f"azureml:{self.spec.name}:{self.version}"

    @property
    def label(self) -> str:
        """Its name in the stack. Data of this machine keep it when their version changes, so that this is an edit."""
        return self.spec.name if self.upload is not None else f"{self.spec.name}:{self.version}"

    @property
    def body(self) -> dict[str, Any]:
        """ARM properties of the version, as azure-ai-ml registers it."""
        body: dict[str, Any] = {"dataType": self.spec.type, "dataUri": self.uri, "tags": dict(self.spec.tags)}
        if self.spec.description:
            body["description"] = self.spec.description
        if self.referenced:
            body["referencedUris"] = list(self.referenced)
        return body


@dataclass(frozen=True, slots=True)
class StackData:
    """What jobs of a stack may name.

    Attributes:
        assets: The versions of each data asset by its name, in the order of the settings.
        datastores: Names of the stack's datastores.
        doubtful: Something of it could not be read, so that an unknown name may be there.
    """

    assets: Mapping[str, tuple[PlannedAsset, ...]] = field(default_factory=dict)
    datastores: tuple[str, ...] = ()
    doubtful: bool = False

    @classmethod
    def unread(cls, settings: Settings) -> StackData:
        """The same without a look at data of this machine, whose versions are therefore not known."""
        assets: dict[str, tuple[PlannedAsset, ...]] = {}
        for spec in settings.data:
            version, uri = ("", "") if spec.local else (str(spec.version), spec.path)
            assets[spec.name] = (*assets.get(spec.name, ()), PlannedAsset(spec, version, uri))
        return cls(assets, tuple(each.name for each in settings.datastores))

    @property
    def all_assets(self) -> tuple[PlannedAsset, ...]:
        """All versions."""
        return tuple(each for versions in self.assets.values() for each in versions)


def planned(reading: Reading, settings: Settings, root: Path, folders: DataFolders) -> tuple[StackData, list[Finding]]:
    """The data assets and datastores of a stack, and what is wrong with the data of this machine.

    Args:
        reading: The settings, for the places of findings.
        settings: The same, mended.
        root: The folder that paths start from.
        folders: What has been scanned already.
    """
    found: list[Finding] = []
    assets: dict[str, tuple[PlannedAsset, ...]] = {}
    for index, spec in enumerate(settings.data):
        if reading.doubts("data", index):
            continue
        asset, faults = _planned(spec, root, folders)
        found += (_located(reading, index, fault) for fault in faults)
        if asset is not None:
            assets[spec.name] = (*assets.get(spec.name, ()), asset)
    doubtful = reading.doubts("data") or reading.doubts("datastores")
    return StackData(assets, tuple(each.name for each in settings.datastores), doubtful), found


def _planned(spec: DataAsset, root: Path, folders: DataFolders) -> tuple[PlannedAsset | None, list[Finding]]:
    if not spec.local:
        return PlannedAsset(spec, str(spec.version), spec.path), []
    store = spec.datastore or DATASTORE
    path = absolute(spec.path, root)
    content = folders.content(path)
    found = list(wrong(LocalInput("", path, spec.type, store), content))
    referenced: tuple[str, ...] = ()
    if spec.type == "mltable" and path.is_dir():
        referenced, faults = _references(path / MLTABLE)
        found += faults
    if not content.hash:
        return None, found
    upload = DataUpload(path, store, content)
    uri = data.address(content, upload.name, store, "")
    version = run_identity.content_version({"dataType": spec.type, "dataUri": uri})
    return PlannedAsset(spec, version, uri, upload, referenced), found


def _references(file: Path) -> tuple[tuple[str, ...], list[Finding]]:
    """What a table refers to, and what is wrong with its file."""
    if not file.is_file():
        rule = f"Data of the type mltable are a folder with a file `{MLTABLE}` that says how it is read"
        return (), [Finding("mltable-missing", "path", f"There is no `{file.parent.name}/{MLTABLE}`", rule)]
    text = yamltext.read(file)
    if errors(text.findings):
        return (), list(text.findings)
    paths = text.data.get("paths") if isinstance(text.data, dict) else None
    entries: Sequence[Any] = paths if isinstance(paths, list) else ()
    named = [next((each[key] for key in _PATHS if key in each), None) for each in entries if isinstance(each, dict)]
    if not named or not all(isinstance(each, str) for each in named):
        seen = f"`{file.parent.name}/{MLTABLE}` has no list `paths` of entries with one of {', '.join(_PATHS)}"
        return (), [Finding("mltable-paths", "", seen, "A table says which files it is made of", file=str(file))]
    return tuple(map(str, named)), []


def _located(reading: Reading, index: int, finding: Finding) -> Finding:
    """A finding on data at the place of their setting; one on a file of theirs keeps that."""
    if finding.file is not None:
        return finding
    loc = ("data", index, finding.where.rpartition(".")[2] or "path")
    return reading.about(loc, finding)
