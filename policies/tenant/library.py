"""A tenant's policies: files of Azure Policy, initiatives that many tenants assign, and each definition as it is asked.

Read are resources as the REST API has them (``{"name", "properties"}``), as `az policy … show` prints them (flat),
lists of either, and ARM templates that deploy them, whose expressions begin with two brackets. `data/initiatives.json`
lists members with their effects, `data/definitions.json` the rule of each, both with source and date. A rule is our
reading of the published one: it asks the same of the resources that a stack may have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from amlstack.base.arm_language.expressions import PolicyAround
from amlstack.base.arm_language.functions import OpenError
from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget, with_defaults
from amlstack.base.files import read_regular
from amlstack.base.findings import Finding

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
        if asked or "policy" in file.name.lower():
            library.findings.append(_wrong(file, f"is no JSON: {str(error)[:120]}"))
        return 0
    resources = list(_resources(document, 0))
    added = sum(_add(library, one, str(file)) for one in resources)
    if not added and asked:
        library.findings.append(_wrong(file, "holds no definition, initiative or assignment of Azure Policy"))
    return added


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
            resources = document["resources"]
            for one in resources.values() if isinstance(resources, Mapping) else resources or ():
                yield from _resources(_unescaped(one), depth + 1)
            return
        listed = document.get("value")
        if isinstance(listed, list) and "properties" not in document:
            yield from _resources(listed, depth + 1)
            return
        yield document


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
    version = properties.get("version") or (metadata.get("version") if isinstance(metadata, Mapping) else "")
    version = str(version or "")
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


_NOTHING = PolicyTarget("", "", {})


@dataclass(frozen=True, slots=True)
class AppliedPolicy:
    """One definition as it is asked.

    Attributes:
        id: Its id.
        definition: The definition; None where no file has it.
        parameters: Values of its parameters.
        source: What brings it: the title of an assignment or initiative; empty for the definition itself.
        reference: Its reference in the initiative.
        effect: An effect that an assignment sets instead of the definition's own; empty for none.
        scopes: The scope that an assignment reaches, and those that it leaves out.
        enforced: Whether it changes or refuses requests; otherwise it only reports.
        selectors: Which resources an assignment reaches, by type or region.
        message: What the assignment tells those whom it refuses.
        open: Why a parameter has no value.
        exempt: Why it asks nothing of this stack; empty where it does.
    """

    id: str
    definition: PolicyDefinition | None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    reference: str = ""
    effect: str = ""
    scopes: tuple[str, tuple[str, ...]] = ("", ())
    enforced: bool = True
    selectors: tuple[Mapping[str, Any], ...] = ()
    message: str = ""
    open: str = ""
    exempt: str = ""

    @property
    def title(self) -> str:
        """The definition's display name."""
        return self.definition.title if self.definition else self.id

    @property
    def version(self) -> str:
        """The definition's version; empty where none is given."""
        return self.definition.version if self.definition else ""


def applied(library: PolicyLibrary) -> list[AppliedPolicy]:
    """Every definition that the files ask for: by assignments, else by initiatives, else by itself."""
    found: list[AppliedPolicy] = []
    assigned: set[str] = set()
    for assignment in library.assignments:
        assigned.add(last(assignment.assigned))
        found += _of_assignment(library, assignment)
    for key, initiative in library.sets.items():
        if key not in assigned:
            found += _of_set(library, initiative, with_defaults(initiative.parameters, {}), source=initiative.title)
    members = {last(str(one["policyDefinitionId"])) for each in library.sets.values() for one in each.members}
    for key, definition in library.definitions.items():
        if key not in assigned | members:
            found.append(AppliedPolicy(definition.id, definition, with_defaults(definition.parameters, {})))
    return found


def _of_assignment(library: PolicyLibrary, assignment: PolicyAssignment) -> Iterator[AppliedPolicy]:
    properties = assignment.properties
    given = _given(properties.get("parameters"))
    more: dict[str, Any] = {
        "scopes": (str(properties.get("scope") or ""), tuple(map(str, properties.get("notScopes") or ()))),
        "enforced": str(properties.get("enforcementMode", "Default")).lower() == "default",
        "selectors": tuple(properties.get("resourceSelectors") or ()),
    }
    messages = [one for one in properties.get("nonComplianceMessages") or () if isinstance(one, Mapping)]
    initiative = library.initiative(assignment.assigned)
    if initiative is not None:
        values = with_defaults(initiative.parameters, given)
        for one in _of_set(library, initiative, values, source=assignment.title, **more):
            one = replace(one, exempt=_exempt(library, assignment, one.reference))  # noqa: PLW2901
            yield _overridden(one, properties.get("overrides") or (), messages)
        return
    definition = library.definition(assignment.assigned)
    values = with_defaults(definition.parameters, given) if definition else given
    exempt = _exempt(library, assignment, "")
    own = AppliedPolicy(assignment.assigned, definition, values, assignment.title, exempt=exempt, **more)
    yield _overridden(own, properties.get("overrides") or (), messages)


def _of_set(
    library: PolicyLibrary, initiative: PolicySet, values: Mapping[str, Any], *, source: str, **more: Any
) -> Iterator[AppliedPolicy]:
    around = PolicyAround(_NOTHING, PolicyPlace(), values)
    for member in initiative.members:
        wanted = str(member["policyDefinitionId"])
        definition, why = library.definition(wanted), ""
        given: dict[str, Any] = {}
        for name, value in _given(member.get("parameters")).items():
            try:
                given[name] = around.worked_out(value)
            except OpenError as error:
                why = f"its parameter `{name}` is open: {error.why}"
        parameters = with_defaults(definition.parameters, given) if definition else given
        reference = str(member.get("policyDefinitionReferenceId") or "")
        yield AppliedPolicy(wanted, definition, parameters, source, reference, open=why, **more)


def _exempt(library: PolicyLibrary, assignment: PolicyAssignment, reference: str) -> str:
    """The reason why an exemption among the files takes a member out; empty where none does."""
    for exemption in library.exemptions:
        named = {str(name).lower() for name in exemption.get("policyDefinitionReferenceIds") or ()}
        of_it = last(str(exemption.get("policyAssignmentId", ""))) == last(assignment.id)
        if of_it and (not named or reference.lower() in named):
            return str(exemption.get("displayName") or exemption.get("description") or "an exemption in the files")
    return ""


def _overridden(one: AppliedPolicy, overrides: Any, messages: list[Mapping[str, Any]]) -> AppliedPolicy:
    effect = ""
    for override in overrides:
        if str(override.get("kind")).lower() == "policyeffect" and _selects(override.get("selectors") or (), one):
            effect = str(override.get("value") or "")
    about = [str(each.get("message", "")) for each in messages
             if each.get("policyDefinitionReferenceId") in {None, "", one.reference}]  # fmt: skip
    return replace(one, effect=effect, message=" ".join(about))


def _selects(selectors: Any, one: AppliedPolicy) -> bool:
    for selector in selectors:
        if str(selector.get("kind")).lower() != "policydefinitionreferenceid":
            continue
        named = {str(name).lower() for name in selector.get("in") or ()}
        left_out = {str(name).lower() for name in selector.get("notIn") or ()}
        if (named and one.reference.lower() not in named) or one.reference.lower() in left_out:
            return False
    return True


def _given(parameters: Any) -> dict[str, Any]:
    """Parameters as files give them, ``{name: {"value": …}}``, or by `az … --params` the same."""
    if not isinstance(parameters, Mapping):
        return {}
    return {
        name: one["value"] if isinstance(one, Mapping) and "value" in one else one for name, one in parameters.items()
    }


@dataclass(frozen=True, slots=True)
class Initiative:
    """An initiative: those of its members that judge what a stack may have.

    Attributes:
        word: How it is asked for: ``alz``.
        name: Its display name.
        version: Its version.
        members: Members that judge types which a stack may have.
        members_in_all: How many members it has; the others judge other types.
        checked: The day on which it was read, an ISO date.
    """

    word: str
    name: str
    version: str
    members: tuple[AppliedPolicy, ...]
    members_in_all: int
    checked: str


def words() -> tuple[str, ...]:
    """The words by which initiatives are asked for."""
    return tuple(read_data("initiatives")["initiatives"])


@cache
def definitions() -> Mapping[str, PolicyDefinition]:
    """All definitions by their ids, in small letters."""
    return {
        key.lower(): PolicyDefinition(
            key, row["name"], row["version"], row["mode"], row.get("rule", {}), row.get("parameters", {}),
            judges=row.get("judges", ""),
        )
        for key, row in read_data("definitions")["definitions"].items()
    }  # fmt: skip


@cache
def initiative(word: str) -> Initiative:
    """An initiative; raises KeyError for another word."""
    data = read_data("initiatives")
    row = data["initiatives"][word]
    source = row["name"] if row["id"] else ""
    members = tuple(_member(one, source) for one in row["members"])
    return Initiative(word, row["name"], row["version"], members, row["members_in_all"], data["checked"])


def _member(row: Mapping[str, Any], source: str) -> AppliedPolicy:
    definition = definitions()[row["definition"].lower()]
    parameters = with_defaults(definition.parameters, row.get("parameters", {}))
    return AppliedPolicy(definition.id, definition, parameters, source, row.get("reference", ""), effect=row["effect"])


@cache
def read_data(name: str) -> Any:
    """A table of `data`."""
    return json.loads((Path(__file__).with_name("data") / f"{name}.json").read_text("utf-8"))
