"""Properties in the spelling of the readers, type tokens, and requests for resources of any type by their addresses."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from policies.evaluation.facts import GAP, Path, Unknown, dig, put_unknown, text
from policies.evaluation.subjects import (
    COMPUTES,
    FACTS,
    MACHINES,
    STRUCTURE,
    Address,
    address_of,
    resource_type,
    segments,
)

TWICE = "is written more than once, and Azure reads names without letter case"
_WORDS = """
    action apiVersion body computeLocation computeName computeType condition conda condaFile copy count defaultValue
    dependsOn deployment deploymentProperties details existing expressionEvaluationOptions id image
    environmentVersionProperties componentVersionProperties componentSpec input jobBaseProperties jobDefinition
    languageVersion library linkedTemplates location mainTemplate managedApplicationTemplate mode name
    nullable output outputs parameters parametersContent parametersBody parametersLink parentId parentResourcePath path
    policyRule properties reference relativePath resourceGroup resourceGroupName resourceId resourceName
    resourceProviderNamespace resourceType resources scheduleProperties scope sensitiveBody subscriptionId tags
    targetVMSize template templateBody templateContent templateLink templateSpecVersionId then type uri value variables
    version virtualNetworkName addressSpace addressPrefixes workspaceName machineLearningWorkspaceId
    artifacts identity method workspace uri jobInputType jobOutputType jobLimitsType distributionType codeId displayName
    experimentName description applicationDefinitionId blueprintId plan versionId isArchived jobServiceType identityType
"""
"""Names that say where something stands; those of facts come from the tables of their readers."""

_AS_THEY_ARE = frozenset({"environmentvariables", "environment_variables"})
"""Maps of a program's own names, which differ by letter case on the nodes."""
_NAMED = frozenset({"tags", "inputs", "outputs", "jobs"})
"""Maps whose names are a person's own, and whose values are read."""


_NESTED = frozenset({dict, list, tuple})

DEEPEST_BODY = 400
"""Most levels of a body: what reads it recurses."""


@lru_cache(maxsize=4096)  # bodies have the same few names
def _fold(key: str) -> str:
    return key.lower() if key.isascii() else unicodedata.normalize("NFKC", key).casefold()


@lru_cache(maxsize=1)
def spellings() -> dict[str, str]:
    """The readers' spelling of each name that they look for, by the name in small letters."""
    tables = [
        *(path for layout in FACTS.values() for paths in layout.values() for path in paths),
        *(path for _, paths in MACHINES.values() for path in paths),
    ]
    words = {*_WORDS.split(), *STRUCTURE, *COMPUTES.values(), *(word for path in tables for word in path)}
    return {_fold(word): word for word in sorted(words)}


@lru_cache(maxsize=1)
def _spelled_words() -> frozenset[str]:
    """Names in the readers' spelling; no two of them differ by letter case alone."""
    return frozenset(spellings().values())


def canonical(props: Any, unreadable: Iterable[Path] = ()) -> tuple[Any, tuple[Unknown, ...]]:
    """Properties in the readers' spelling, and the places at which a name stands twice.

    Args:
        props: Plain Python off the wire; it stays as it is.
        unreadable: Paths of values that were written, but could not be read.
    """
    twins: list[Unknown] = []
    try:
        made = _spelled(props, (), twins)
    except RecursionError:
        return {}, (Unknown("properties", "are nested too deep to be read here", unresolved=True),)
    for path in unreadable:
        put_unknown(made, path)
    return made, tuple(twins)


def _spelled(value: Any, path: tuple[str, ...], twins: list[Unknown]) -> Any:
    if len(path) > DEEPEST_BODY:
        raise RecursionError
    if type(value) is list or type(value) is tuple:
        return [_spelled(inner, (*path, str(index)), twins) for index, inner in enumerate(value)]
    around = path[-1].lower() if path else ""
    if type(value) is not dict or around in _AS_THEY_ARE:
        return value
    if around not in _NAMED and value.keys() <= _spelled_words():  # as nearly all that this project renders
        nested = _NESTED
        return {
            key: _spelled(inner, (*path, key), twins) if type(inner) in nested else inner
            for key, inner in value.items()
        }
    made: dict[str, Any] = {}
    folded: set[str] = set()
    known = {} if around in _NAMED else spellings()
    for key, inner in value.items():
        low = _fold(str(key))
        if low in folded:
            twins.append(Unknown(".".join((*path, key)), TWICE, unresolved=True))
        else:  # most values are texts and numbers, which need no call
            folded.add(low)
            name = str(known.get(low, key))
            made[name] = _spelled(inner, (*path, name), twins) if type(inner) in _NESTED else inner
    return made


def read_json(text: str) -> Any:
    """The value of a JSON text in the readers' spelling.

    Raises:
        ValueError: It is no JSON, is nested too deep, or names something twice in one object.
    """
    try:
        made, twins = canonical(json.loads(text, object_pairs_hook=_once))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if twins:
        raise ValueError(f"{twins[0].path} {twins[0].why}")
    return made


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


_AZURE_NATIVE = r"(?:azure-native(?:_[a-z]+_v\w+)?|azure-nextgen):(?P<module>\w+)(?:/(?:v\w+|latest))?:(?P<type>\w+)"
AZAPI = re.compile(r"azapi:(?:[\w/]+:)?\w*(?:Resource|ResourceAction)")
"""azapi's resources, bridged from Terraform's provider, in whatever module the bridge puts them."""
_TERRAFORM = re.compile(
    r"azure:machinelearning/compute(?:Cluster|Instance):Compute(?P<classic>Cluster|Instance)|"
    r"azurerm:(?:[\w/]+:)?MachineLearningCompute(?P<bridged>Cluster|Instance)",
    re.IGNORECASE,
)
OWN_COMPONENT = "amlstack:components:Version"
OWN_ENVIRONMENT = "amlstack:environments:Version"
OWN_JOBS: Mapping[str, Path] = {
    "amlstack:jobs:Job": ("body", "properties"),
    "amlstack:schedules:Schedule": ("body", "properties", "action", "jobDefinition"),
}
"""Resources of our own that hold a job, and where."""

_OURS = frozenset({*OWN_JOBS, OWN_ENVIRONMENT, OWN_COMPONENT})
_JUDGED = {
    *(("machinelearningservices", kind) for kind in MACHINES),
    ("machinelearningservices", "Compute"),
    ("machinelearningservices", "MachineLearningCompute"),
    ("machinelearningservices", "Job"),
    ("machinelearningservices", "EnvironmentVersion"),
    ("machinelearningservices", "ComponentVersion"),
    ("resources", "Resource"),
    ("resources", "ResourceGroup"),
    ("network", "VirtualNetwork"),
}
_TEMPLATES = (
    r"\w+:(?:DeploymentAt|DeploymentStack|TemplateSpecVersion|TemplateArtifact|PolicyDefinition)\w*|"
    r"\w+:(?:ApplicationDefinition|ContentTemplate|VendorSkus|ManagementConfiguration)|"
    r"resources:Deployment|blueprint:Assignment|solutions:Application"
)
"""Types of azure-native that deploy a template, or keep one for others to deploy."""
CLASSIC_TEMPLATE = re.compile(
    r"(?:azure|azurerm):(?:[\w/]+:)?(?:\w*TemplateDeployment|ManagedApplication(?:Definition)?|BlueprintAssignment)|"
    r"azure:(?:managedapplication/(?:definition:Definition|application:Application)|blueprint/assignment:Assignment)"
)


@lru_cache(maxsize=1024)  # a stack has few types and many resources
def judged(resource_type: str, *, everything: bool = False) -> bool:
    """True where any rule may speak about resources of a type; cheap, so that the others are never read.

    Args:
        resource_type: Pulumi's type token.
        everything: Whether a rule on all Azure resources (tags, regions) is configured.
    """
    if resource_type in _OURS or terraform_compute(resource_type):
        return True
    kind = azure_native_type(resource_type)
    if kind is None:
        return any(known.fullmatch(resource_type) is not None for known in (CLASSIC_TEMPLATE, AZAPI))
    return everything or kind in _JUDGED or holds_template(*kind)


@lru_cache(maxsize=1024)
def holds_template(module: str, kind: str) -> bool:
    """True where a type of azure-native is given an ARM template."""
    return re.fullmatch(_TEMPLATES, f"{module}:{kind}") is not None


@lru_cache(maxsize=1024)
def terraform_compute(resource_type: str) -> str:
    """``cluster`` or ``instance`` for a compute of Terraform, classic or bridged anew; empty for the rest."""
    token = _TERRAFORM.fullmatch(resource_type)
    return "" if token is None else (token["classic"] or token["bridged"]).lower()


@lru_cache(maxsize=1024)
def azure_native_type(resource_type: str) -> tuple[str, str] | None:
    """Module and type of a token of azure-native's; None for any other."""
    token = re.fullmatch(_AZURE_NATIVE, resource_type)
    return None if token is None else (token["module"], token["type"])


_ML = "microsoft.machinelearningservices"
_PROVIDERS = frozenset(
    {"microsoft.authorization", "microsoft.blueprint", "microsoft.network", "microsoft.operationsmanagement",
     "microsoft.resources", "microsoft.securityinsights", "microsoft.solutions", "microsoft.hybridnetwork", _ML}
)  # fmt: skip
"""Providers of the types that are judged: what azapi sends to another is not read."""
_ADDRESS = ("resourceProviderNamespace", "parentResourcePath", "resourceType", "resourceName")


class Request(NamedTuple):
    """The request for one resource.

    Attributes:
        kind: Its full type, in small letters.
        props: Properties in which it lies.
        at: Its path.
        place: Where it is.
        names: The names in its address, outermost first.
    """

    kind: str
    props: Any
    at: Path = ()
    place: Address = Address()
    names: tuple[str, ...] = ()


def address_of_child(name: str | None, group: str | None) -> Address:
    """The address of a workspace's resource by its full name ``workspace/name``, of which parts may be gaps."""
    known = address_of(name) if name else Address()
    unknown = None
    if known.name is not None and GAP in known.name:
        unknown = Unknown("name", f"is `{name}`, which only Azure knows", unresolved=True)
    return Address(None, group.lower() if group else None, known.workspace, None if unknown else known.name, unknown)


def by_azure_native(props: Any) -> Iterator[Request | Unknown]:
    """azure-native's resource of any type, whatever way its address is cut into the four properties.

    Args:
        props: Its properties.
    """
    given = {key: text(props, key) for key in _ADDRESS}
    known = {key: value for key, value in given.items() if isinstance(value, str)}
    if not isinstance(given["resourceType"], str) or not isinstance(given["resourceProviderNamespace"], str):
        yield from (value for value in given.values() if isinstance(value, Unknown))
        return
    group = text(props, "resourceGroupName")
    address = "/".join(known.get(key, "") for key in _ADDRESS)
    parts = segments(f"/resourcegroups/{group if isinstance(group, str) else '-'}/providers/{address}")
    kind, names = resource_type(parts)
    kinds = {kind}
    if not isinstance(given["resourceName"], str) or not isinstance(given["parentResourcePath"], str):
        # A part is not known, or the type is written whole, without the names between.
        own = segments(f"{known['resourceProviderNamespace']}/{known['resourceType']}")
        parents = segments(known.get("parentResourcePath", ""))[::2]
        kinds |= {"/".join(own), "/".join((*own[:1], *parents, *own[1:]))}
        if own[:1] == (_ML,) and len(own) == 2:
            kinds.add(f"{_ML}/workspaces/{own[1]}")
    else:
        kinds.add("/".join(segments(f"{known['resourceProviderNamespace']}/{known['resourceType']}")))
    at_id = address_of("/".join(parts))
    place = Address(None, at_id.group, at_id.workspace, at_id.name if known.get("resourceName") else None)
    yield from (Request(kind, props, (), place, names) for kind in sorted(kinds))


def by_azapi(props: Any) -> Iterator[Request | Unknown]:
    """A resource, an update or an action of azapi: its type with a version, its body as object or JSON text.

    Args:
        props: Its properties.
    """
    said = text(props, "type")
    kinds, place, names = _azapi_kinds(said if isinstance(said, str) else "", props)
    if isinstance(said, Unknown) and not kinds:
        yield said
    if not any(kind.partition("/")[0] in _PROVIDERS for kind in kinds):
        return
    body: Any = {key: value for key in ("name", "location", "tags", "identity") if (value := dig(props, key))}
    for key in ("body", "sensitiveBody"):
        inner = dig(props, key)
        if isinstance(inner, str):
            try:
                inner = read_json(inner)
            except ValueError:
                inner = Unknown(key, "is no JSON that can be read here", unresolved=True)
        if isinstance(inner, Mapping):
            body = _merged(body, inner)
        elif inner is not None:
            yield inner if isinstance(inner, Unknown) else Unknown(key, "is no body that can be read", unresolved=True)
    whole, _ = canonical({"body": body})
    for kind in sorted(kinds):
        yield Request(kind, whole, ("body",), place, names)


def _azapi_kinds(said: str, props: Any) -> tuple[set[str], Address, tuple[str, ...]]:
    own = segments(said.partition("@")[0])
    parent, whole, action = (text(props, key) for key in ("parentId", "resourceId", "action"))
    name = text(props, "name")
    kinds, address = {"/".join(own)}, ""
    if isinstance(whole, str):
        address = f"{whole}/{action if isinstance(action, str) else ''}"
    elif isinstance(parent, str) and own:
        provider = "" if "/providers/" in parent.lower() and len(own) > 2 else f"providers/{own[0]}/"
        address = f"{parent}/{provider}{own[-1]}/{name if isinstance(name, str) else ''}"
    elif isinstance(action, str):
        kinds.add("/".join((*own, *segments(action)[::2])))
    kind, names = resource_type(segments(address))
    kinds.add(kind)
    place = address_of(address) if address else Address(name=name.lower() if isinstance(name, str) else None)
    if isinstance(name, Unknown):
        place = Address(place.subscription, place.group, place.workspace, None, name)
    return kinds - {""}, place, names


def _merged(one: Any, two: Any) -> Any:
    """Both bodies as azapi sends them, the second over the first."""
    if not isinstance(one, Mapping) or not isinstance(two, Mapping):
        return two
    return {**one, **{key: _merged(one[key], value) if key in one else value for key, value in two.items()}}
