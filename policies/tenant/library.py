"""Files of Azure Policy: definitions, initiatives, assignments and exemptions, in the forms that they are kept in.

Read are resources as the REST API has them (``{"name", "properties"}``), as `az policy … show` prints them (flat),
lists of either, and ARM templates that deploy them, whose expressions begin with two brackets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.base.files import read_regular
from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from pathlib import Path

NOT_READ = "tenant-policy-file"
_DEPTH = 60


@dataclass(frozen=True, slots=True)
class PolicyDefinition:
    """One definition.

    Attributes:
        id: Its ARM id, or its name where a file gives no id.
        title: Its display name.
        version: Its version; empty where there is none.
        mode: ``All``, ``Indexed``, or what a resource provider judges itself.
        rule: ``{"if", "then"}``.
        parameters: Its declared parameters.
        file: Where it was read.
        judges: What it judges instead of resources of a stack, where that is known; empty for the others.
    """

    id: str
    title: str
    version: str
    mode: str
    rule: Mapping[str, Any]
    parameters: Mapping[str, Any]
    file: str = ""
    judges: str = ""


@dataclass(frozen=True, slots=True)
class PolicySet:
    """An initiative: its members as files have them (``policyDefinitionId``, ``parameters`` …)."""

    id: str
    title: str
    version: str
    members: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, Any]
    file: str = ""


@dataclass(frozen=True, slots=True)
class PolicyAssignment:
    """An assignment of a definition or an initiative.

    Attributes:
        id: Its ARM id or name.
        title: Its display name.
        assigned: Id of what it assigns.
        properties: All of it.
        file: Where it was read.
    """

    id: str
    title: str
    assigned: str
    properties: Mapping[str, Any]
    file: str = ""


@dataclass(slots=True)
class PolicyLibrary:
    """All that was read; keys are ids in small letters, and the last part of each."""

    definitions: dict[str, PolicyDefinition] = field(default_factory=dict)
    sets: dict[str, PolicySet] = field(default_factory=dict)
    assignments: list[PolicyAssignment] = field(default_factory=list)
    exemptions: list[Mapping[str, Any]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def definition(self, wanted: str) -> PolicyDefinition | None:
        """A definition by its id."""
        return self.definitions.get(last(wanted))

    def initiative(self, wanted: str) -> PolicySet | None:
        """An initiative by its id."""
        return self.sets.get(last(wanted))


def last(arm_id: str) -> str:
    """The common part of two ids of one definition, wherever it is kept: the last part, in small letters."""
    return arm_id.rstrip("/").rpartition("/")[2].lower()


def read(paths: list[Path]) -> PolicyLibrary:
    """Read files, and all JSON files of folders; what is wrong with one is a finding, and the others are read."""
    library = PolicyLibrary()
    for path in paths:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        found = sum(_add_file(library, file, asked=not path.is_dir()) for file in files)
        if not found and path.is_dir():
            library.findings.append(_wrong(path, "holds no definition, initiative or assignment of Azure Policy"))
    return library


def _add_file(library: PolicyLibrary, file: Path, *, asked: bool) -> int:
    try:
        document = json.loads(read_regular(file).decode("utf-8-sig"))
    except FileNotFoundError:
        library.findings.append(_wrong(file, "does not exist"))
        return 0
    except OSError as error:
        library.findings.append(_wrong(file, f"cannot be read: {error.strerror}"))
        return 0
    except (ValueError, RecursionError) as error:
        if asked or _names_policies(file):
            library.findings.append(_wrong(file, f"is no JSON: {str(error)[:120]}"))
        return 0
    resources = list(_resources(document, 0))
    added = sum(_add(library, one, str(file)) for one in resources)
    if not added and asked:
        library.findings.append(_wrong(file, "holds no definition, initiative or assignment of Azure Policy"))
    return added


def _names_policies(file: Path) -> bool:
    return "policy" in file.name.lower()


def _wrong(path: Path, what: str) -> Finding:
    rule = "`--against` takes `alz`, `mcsb`, `cis`, or JSON of Azure Policy: definitions, initiatives, assignments"
    return Finding(NOT_READ, "", f"`{path}` {what}", rule, file=str(path))


def _resources(document: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """The objects of a document that may be resources."""
    if depth > _DEPTH:
        return
    if isinstance(document, list):
        for one in document:
            yield from _resources(one, depth + 1)
    elif isinstance(document, Mapping):
        if "deploymenttemplate.json" in str(document.get("$schema", "")).lower() and "resources" in document:
            for one in _values(document["resources"]):
                yield from _resources(_unescaped(one), depth + 1)
            return
        listed = document.get("value")
        if isinstance(listed, list) and "properties" not in document:
            yield from _resources(listed, depth + 1)
            return
        yield document


def _values(resources: Any) -> list[Any]:
    return list(resources.values()) if isinstance(resources, Mapping) else list(resources or ())


def _unescaped(value: Any) -> Any:
    """A value of a template, which writes the brackets of a policy's expressions twice."""
    if isinstance(value, str):
        return value[1:] if value.startswith("[[") else value
    if isinstance(value, list):
        return [_unescaped(one) for one in value]
    if isinstance(value, Mapping):
        return {key: _unescaped(one) for key, one in value.items()}
    return value


def _add(library: PolicyLibrary, resource: Mapping[str, Any], file: str) -> bool:
    inner = resource.get("properties")
    properties: Mapping[str, Any] = inner if isinstance(inner, Mapping) else resource
    name = str(resource.get("id") or resource.get("name") or file.rpartition("/")[2].removesuffix(".json"))
    title = str(properties.get("displayName") or last(name))
    metadata = properties.get("metadata")
    version = (
        str(properties.get("version") or (metadata or {}).get("version") or "") if isinstance(metadata, Mapping) else ""
    )
    version = version or str(properties.get("version") or "")
    declared = properties.get("parameters")
    parameters = declared if isinstance(declared, Mapping) else {}
    if isinstance(rule := properties.get("policyRule"), Mapping):
        mode = str(properties.get("mode") or "Indexed")
        library.definitions[last(name)] = PolicyDefinition(name, title, version, mode, rule, parameters, file)
    elif isinstance(members := properties.get("policyDefinitions"), list):
        listed = tuple(one for one in members if isinstance(one, Mapping) and one.get("policyDefinitionId"))
        library.sets[last(name)] = PolicySet(name, title, version, listed, parameters, file)
    elif properties.get("exemptionCategory"):
        library.exemptions.append(properties)
    elif properties.get("policyDefinitionId"):
        assigned = str(properties["policyDefinitionId"])
        library.assignments.append(PolicyAssignment(name, title, assigned, properties, file))
    else:
        return False
    return True
