"""Which of a stack's data assets and datastores a job means, by name; near misses, and what only looks alike."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean, near
from infra.contents.datastores import OWN, named_in
from infra.settings import dotted
from jobs.local_data import all_inputs, bare_datastore

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import jobs
    from infra.contents.assets import PlannedAsset, StackData
    from infra.settings import Reading, Settings
    from jobs.values import Input

LATEST: Final = "latest"
_ASSET: Final = re.compile(r"azureml:(?P<name>[^/:@]+)(?::(?P<version>[^@]+)|@(?P<label>[^@]+))?")
_DATA_TYPES: Final = frozenset({"uri_file", "uri_folder", "mltable"})
"""Of inputs; the others name models."""


@dataclass(frozen=True, slots=True)
class MeantData:
    """What a run reads of the stack's data assets.

    Attributes:
        by_input: The asset by the input's place.
        labelled: ``azureml:NAME:VERSION`` of inputs that name one by a label, by place.
        findings: Names that are nearly those of the stack's, labels that data have not, other types.
    """

    by_input: Mapping[str, PlannedAsset]
    labelled: Mapping[str, str]
    findings: tuple[Finding, ...]


def meant(plan: jobs.Planned, known: StackData) -> MeantData:
    """What of the stack's data a run reads by name."""
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


def of_settings(reading: Reading, settings: Settings, known: StackData) -> Iterator[Finding]:
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
        seen = f"`{reference[0]}` is no data of the stack"
        rule = "It can be data that somebody else has registered in the workspace; what a job names must be there"
        return None, Finding(
            "data-unknown", "", seen, rule, did_you_mean(name, close), Level.WARNING
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
    seen = f"The input is of the type {value.type}, and `{asset.spec.name}` is of the type {asset.spec.type}"
    rule = "A job reads a data asset as what it is registered as"
    return Finding("data-type", "", seen, rule, f"Write `type: {asset.spec.type}`.", Level.WARNING)


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
    seen = f"`{name}` is no datastore of the stack, and none that every workspace has"
    rule = "It can be one that somebody else has registered in the workspace; what a job names must be there"
    return Finding("datastore-unknown", where, seen, rule, did_you_mean(name, close), Level.WARNING)
