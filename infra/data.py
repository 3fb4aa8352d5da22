"""Datastores and data assets of a stack: what the settings mean on the wire, and which of them a job names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack import run_identity
from amlstack.base import yamltext
from amlstack.base.findings import Finding, Level, errors, stated
from amlstack.base.text import did_you_mean, near
from amlstack.snapshot import folder
from infra.roles import Role, needed
from infra.settings import DataAsset, Datastore, Reading, Settings, dotted
from jobs.local_data import DATASTORE, DataFolders, DataUpload, LocalInput, absolute, all_inputs, bare_datastore, wrong

if TYPE_CHECKING:
    import jobs
    from infra.names import Names
    from jobs.values import Input

OWN: Final = ("workspaceblobstore", "workspaceartifactstore", "workspacefilestore", "workspaceworkingdirectory")
"""The datastores of every new workspace (learn.microsoft.com/azure/machine-learning/how-to-datastore, 2026-11-22)."""

_TYPES: Final = {
    "blob": ("AzureBlob", "containerName"),
    "adls_gen2": ("AzureDataLakeGen2", "filesystem"),
    "file": ("AzureFile", "fileShareName"),
}
"""By kind: the wire's type, and the property that names the container."""
_ENDPOINTS: Final = (("gov", "core.usgovcloudapi.net"), ("china", "core.chinacloudapi.cn"))
"""By a part of a cloud's name in ``azure-native:environment``; in Azure's public cloud the service's own default."""
_BLOB: Final = dict(zip((False, True), needed("blobs"), strict=True))
_FILE: Final = dict(zip((False, True), needed("files"), strict=True))
"""By whether jobs only read."""
ROLES: Final = (*_BLOB.values(), *_FILE.values())
"""All that the identity of a cluster may get on a datastore's account; a datastore takes one of them."""


def role_of(spec: Datastore) -> Role:
    """The role that a cluster's identity needs on a datastore's account."""
    return (_FILE if spec.kind == "file" else _BLOB)[spec.read_only]


def account_id(spec: Datastore, names: Names) -> str:
    """ARM id of a datastore's account: a bare name is one in the stack's resource group, none the workspace's own."""
    if spec.account is None:
        return names.id("storage")
    return spec.account if spec.account.startswith("/") else names.id_of(_ACCOUNTS, spec.account)


def is_created(spec: Datastore, settings: Settings) -> bool:
    """True where the stack creates the container of a datastore: where it creates the account."""
    workspace = settings.workspace
    own = not (workspace.existing or workspace.adopted or workspace.storage.existing)
    return own and spec.account is None


def datastore_properties(spec: Datastore, account: str, cloud: str = "") -> dict[str, Any]:
    """The wire properties of a datastore without credentials.

    Args:
        spec: The settings.
        account: ARM id of its account.
        cloud: As ``azure-native:environment`` names it; empty for Azure's public cloud.
    """
    kind, container = _TYPES[spec.kind]
    _, _, subscription, _, group, *_ = account.split("/")
    endpoint = next((each for part, each in _ENDPOINTS if part in cloud.lower()), None)
    return {
        "datastoreType": kind,
        "accountName": account.rpartition("/")[2],
        container: spec.container,
        "credentials": {"credentialsType": "None"},
        # The place of the account, as an account of another group or subscription cannot be found by its name.
        "subscriptionId": subscription,
        "resourceGroup": group,
        **({"endpoint": endpoint} if endpoint else {}),
        **({"description": spec.description} if spec.description else {}),
        "tags": dict(spec.tags),
    }


_ACCOUNTS: Final = "Microsoft.Storage/storageAccounts"
_NAMED: Final = re.compile(
    r"(?:azureml://(?:subscriptions/\S*?/workspaces/[^/\s]+/)?|/workspaces/[^/\s]+/)datastores/([^/\s]+)"
)


def named_in(value: Any) -> set[str]:
    """Names of the datastores that a body or an address refers to, by whatever form."""
    match value:
        case str():
            return set(_NAMED.findall(value)) if "datastores/" in value else set()
        case dict():
            return set().union(*map(named_in, value.values()))
        case list() | tuple():
            return set().union(*map(named_in, value))
        case _:
            return set()


_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(-[a-z0-9]+)*\Z")
"""Of containers and shares alike (learn.microsoft.com/rest/api/storageservices, 'Naming and Referencing Containers,
Blobs, and Metadata' and '… Shares, Directories, Files, and Metadata', 2026-11-22)."""
_WORDS: Final = {"blob": "container", "adls_gen2": "file system", "file": "share"}


def check_containers(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """Containers that cannot be created as they are declared, and those that a person may wait for in vain.

    Args:
        reading: Where things were written, and what of it is made up.
        settings: The settings, mended.
    """
    for index, spec in enumerate(settings.datastores):
        if reading.doubts("datastores", index) or reading.doubts("workspace"):
            continue
        key, finding = _judged(spec, created=is_created(spec, settings))
        if finding is not None:
            yield reading.about(("datastores", index, key), finding)


def _judged(spec: Datastore, *, created: bool) -> tuple[str, Finding | None]:
    """The key that a finding is about, and the finding."""
    word = _WORDS[spec.kind]
    if created and spec.kind == "adls_gen2":
        return "kind", stated("datastore-without-namespace", "", spec=spec)
    if created and not _NAME.match(spec.container):
        return "container", stated("datastore-container-name", "", spec=spec, word=word)
    if spec.account is None and not created:
        return "container", stated(
            "datastore-container-exists", "", Level.INFO, word=word, spec=spec, command=_command(spec)
        )
    return "", None


def _command(spec: Datastore) -> str:
    """The command that creates a container in an account that exists, without a key."""
    if spec.kind == "file":
        return f"az storage share-rm create --storage-account ACCOUNT --name {spec.container}"
    return f"az storage container create --account-name ACCOUNT --auth-mode login --name {spec.container}"


MLTABLE: Final = "MLTable"
"""The file that makes a folder a table."""
_PATHS: Final = ("file", "folder", "pattern")
"""The kinds of entries in its `paths`."""


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
    """The data assets that jobs of a stack may name.

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
    uri = folder.address(content, upload.name, store, "")
    version = run_identity.content_version({"dataType": spec.type, "dataUri": uri})
    return PlannedAsset(spec, version, uri, upload, referenced), found


def _references(file: Path) -> tuple[tuple[str, ...], list[Finding]]:
    """The references of a table, and the findings about its file."""
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


LATEST: Final = "latest"
_ASSET: Final = re.compile(r"azureml:(?P<name>[^/:@]+)(?::(?P<version>[^@]+)|@(?P<label>[^@]+))?")
_DATA_TYPES: Final = frozenset({"uri_file", "uri_folder", "mltable"})
"""Of inputs; the others name models."""


@dataclass(frozen=True, slots=True)
class MeantData:
    """The data assets of the stack that a run reads.

    Attributes:
        by_input: The asset by the input's place.
        labelled: ``azureml:NAME:VERSION`` of inputs that name one by a label, by place.
        findings: Names that are nearly those of the stack's, labels that data have not, other types.
    """

    by_input: Mapping[str, PlannedAsset]
    labelled: Mapping[str, str]
    findings: tuple[Finding, ...]


def meant(plan: jobs.Planned, known: StackData) -> MeantData:
    """The stack's data that a run reads by name."""
    by_input: dict[str, PlannedAsset] = {}
    labelled: dict[str, str] = {}
    found: list[Finding] = []
    for where, value in all_inputs(plan.job).items():
        reference = _ASSET.fullmatch(value.path or "")
        if reference is None or value.type not in _DATA_TYPES:
            continue
        asset, finding = _resolved(reference, known)
        if asset is not None:
            by_input[where] = asset
            if reference["label"]:
                labelled[where] = asset.reference
            finding = _other_type(value, asset)
        if finding is not None:
            found.append(replace(finding, where=f"{where}.path"))
    return MeantData(by_input, labelled, (*found, *_datastores(plan, known)))


def asset_of(path: str, known: StackData) -> PlannedAsset | None:
    """The stack's data asset that an input's path names; None where it is somebody else's, or an address."""
    reference = _ASSET.fullmatch(path)
    return None if reference is None else _resolved(reference, known)[0]


def check_settings(reading: Reading, settings: Settings, known: StackData) -> Iterator[Finding]:
    """Datastores named like those of every workspace, and data assets at datastores with nearly known names."""
    for index, store in enumerate(settings.datastores):
        if store.name in OWN and not reading.doubts("datastores", index):
            where: tuple[str | int, ...] = ("datastores", index, "name")
            seen, rule = f"`{store.name}` is a datastore that every workspace has", "A stack does not change those"
            yield reading.locate(where, Finding("datastore-own", dotted(where), seen, rule, "Give it another name."))
    for index, spec in enumerate(settings.data):
        key = "datastore" if spec.datastore else "path"
        names = {spec.datastore} if spec.datastore else named_in(spec.path)
        for name in sorted(names):
            loc = ("data", index, key)
            if not reading.doubts(*loc) and (finding := _unknown_datastore(name, dotted(loc), known)) is not None:
                yield reading.locate(loc, finding)


def _resolved(reference: re.Match[str], known: StackData) -> tuple[PlannedAsset | None, Finding | None]:
    name, version, label = reference["name"], reference["version"], reference["label"]
    versions = known.assets.get(name)
    if versions is None:
        close = () if known.doubtful else near(name, known.assets)
        return None, stated(
            "data-unknown", "", Level.WARNING, reference=reference[0], remedy=did_you_mean(name, close)
        ) if close else None
    latest = versions[-1]
    if label == LATEST:
        return latest, None
    if version is None:
        seen = f"`{reference[0]}` has the label `{label}`" if label else f"`{reference[0]}` names no version"
        rule = "Data are named with a version, `azureml:NAME:VERSION`, or with their only label, `azureml:NAME@latest`"
        return None, Finding("data-version", "", seen, rule, f"Write `azureml:{name}@{LATEST}`.")
    for each in versions:
        if each.version == version:
            return each, None
    if not all(each.version for each in versions):
        return None, None  # it may be that of data which have not been read
    seen = f"The stack declares `{name}` in version {' and '.join(each.version for each in versions)}, not in {version}"
    rule = "Another version can be there from earlier or from somebody else"
    remedy = f"Write `azureml:{name}@{LATEST}` for what the stack declares"
    return None, Finding("data-version", "", seen, rule, remedy, Level.WARNING)


def _other_type(value: Input, asset: PlannedAsset) -> Finding | None:
    if value.type == asset.spec.type:
        return None
    return stated("data-type", "", Level.WARNING, value=value, asset=asset)


def _datastores(plan: jobs.Planned, known: StackData) -> Iterator[Finding]:
    """Datastores that inputs and outputs name, whose names are nearly those of known ones."""
    named: list[tuple[str, str]] = []
    for where, value in all_inputs(plan.job).items():
        named += ((f"{where}.path", name) for name in named_in(value.path))
        if value.datastore is not None:
            named.append((f"{where}.datastore", bare_datastore(value.datastore)))
    for place, part in plan.parts.items():
        prefix = f"{place}." if place else ""
        for name, output in part.job.outputs.items():
            named += ((f"{prefix}outputs.{name}.path", each) for each in named_in(getattr(output, "path", None)))
    for where, name in named:
        if (finding := _unknown_datastore(name, where, known)) is not None:
            yield finding


def _unknown_datastore(name: str, where: str, known: StackData) -> Finding | None:
    names = (*known.datastores, *OWN)
    if name in names or "{{" in name or known.doubtful or not (close := near(name, names)):
        return None
    return stated("datastore-unknown", where, Level.WARNING, name=name, remedy=did_you_mean(name, close))
