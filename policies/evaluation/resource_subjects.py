"""Resources as the rules see them: clusters, jobs, environments, whatever the provider calls them.

The same cluster has many type tokens: azure-native's current, versioned and local-package form, the classic provider's,
the generic resource of ARM, a line in an ARM template. Jobs name a size only when they are serverless.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from amlstack.catalog.images import Registered
from policies.evaluation.facts import Facts, Path, Unknown, dig, text
from policies.evaluation.requests import (
    AZAPI,
    CLASSIC_TEMPLATE,
    OWN_COMPONENT,
    OWN_ENVIRONMENT,
    OWN_JOBS,
    Request,
    address_of_child,
    azure_native_type,
    by_azapi,
    by_azure_native,
    holds_template,
    terraform_compute,
)
from policies.evaluation.subjects import (
    MACHINES,
    Address,
    Subject,
    address_of,
    classic_cluster,
    complete,
    component_key,
    compute_subjects,
    jobs_in,
    machine_subjects,
    name_of,
)

_NONE: Mapping[str, Any] = {}
_NOWHERE = Address()
_SENT = ("Resource", ":ResourceAction")
"""Ends of the tokens of resources that send a body of any type."""
_JOBS_AT: tuple[Path, ...] = (
    *OWN_JOBS.values(),
    ("properties",),
    ("jobBaseProperties",),
    ("properties", "action", "jobDefinition"),
    ("scheduleProperties", "action", "jobDefinition"),
)
_ML = "microsoft.machinelearningservices/"


def component(resource_type: str, props: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The key and the spec of a component version; None for every other resource."""
    if resource_type.endswith(_SENT):
        for one in _requests(resource_type, props):
            if isinstance(one, Request) and one.kind.endswith("/components/versions") and len(one.names) > 2:
                sent_spec = dig(one.props, *one.at, "properties", "componentSpec")
                return ("/".join(one.names[1:3]), sent_spec) if isinstance(sent_spec, Mapping) else None
        return None
    if not resource_type.endswith((OWN_COMPONENT, ":ComponentVersion")):
        return None
    spec = next(
        (
            found
            for at in ("body", "properties", "componentVersionProperties")
            if isinstance(found := dig(props, at, "componentSpec"), Mapping)
        ),
        None,
    )
    key = component_key(f"{dig(props, 'name')}:{dig(props, 'version')}")
    return None if spec is None or key is None else (key, spec)


def image(resource_type: str, props: Any) -> tuple[str, Registered] | None:
    """The key and the image of an environment version; None for every other resource, and where it is not known."""
    if not resource_type.endswith((OWN_ENVIRONMENT, ":EnvironmentVersion")):
        return None
    for at in ("body", "properties", "environmentVersionProperties"):
        name, version, found = dig(props, "name"), dig(props, "version"), dig(props, at, "image")
        if isinstance(name, str) and isinstance(version, str) and isinstance(found, str):
            return f"{name}/{version}".lower(), Registered(found, dig(props, at, "condaFile") is not None)
    return None


def fill(resource_type: str, props: Any, components: Mapping[str, Any]) -> None:
    """Write the stack's components into the steps of a job, in place, so that their commands are judged."""
    if components and resource_type.endswith((":Job", ":Schedule", *_SENT)):
        for at in _JOBS_AT:
            complete(dig(props, *at), components)


def subjects(resource_type: str, props: Any, groups: Mapping[str, Any] = _NONE) -> tuple[Subject, ...]:
    """The subjects that a resource asks for; empty for resources that no rule speaks about.

    Args:
        resource_type: Pulumi's type token.
        props: The properties off the wire.
        groups: Locations of the stack's resource groups, by name in small letters.
    """
    return tuple(_subjects(resource_type, props, groups))


def _subjects(resource_type: str, props: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    if resource_type in OWN_JOBS:
        yield from _jobs(props, OWN_JOBS[resource_type], _of_the_workspace(dig(props, "workspace")))
    elif resource_type == OWN_ENVIRONMENT:
        yield from _environment(props, ("body",))
    elif (token := azure_native_type(resource_type)) is not None:
        yield from _azure_native(*token, props, groups)
    elif compute := terraform_compute(resource_type):
        yield from _terraform(compute, props)
    elif CLASSIC_TEMPLATE.fullmatch(resource_type):
        yield from _template(props, (), groups)
    elif AZAPI.fullmatch(resource_type):
        yield from _as_sent(_requests(resource_type, props), props, groups)


def _terraform(compute: str, props: Any) -> Iterator[Subject]:
    """A compute of the classic provider or of azurerm, whose names are those of Terraform."""
    if compute == "instance":
        yield from machine_subjects(props, (("virtualMachineSize",),))
    else:
        yield from classic_cluster(props, _of_the_workspace(dig(props, "machineLearningWorkspaceId")) or _NOWHERE)
    yield from _located(props, ())


def _azure_native(module: str, kind: str, props: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    if module == "machinelearningservices" and kind in MACHINES:
        yield from machine_subjects(props, MACHINES[kind][1])
    if holds_template(module, kind):
        yield from _template(props, (), groups)
        return
    place = _named(props, "workspaceName", "computeName") if module == "machinelearningservices" else _NOWHERE
    match module, kind:
        case "machinelearningservices", "Compute" | "MachineLearningCompute":
            yield from compute_subjects(props, (), place)
        case "machinelearningservices", "Job":
            # The first since azure-native's default version of 2025-12-01, the second in the older ones.
            yield from _jobs(props, ("properties",), place)
            yield from _jobs(props, ("jobBaseProperties",), place)
        case "machinelearningservices", "Schedule":
            yield from _jobs(props, ("properties", "action", "jobDefinition"), place)
            yield from _jobs(props, ("scheduleProperties", "action", "jobDefinition"), place)
        case "machinelearningservices", "EnvironmentVersion":
            yield from _environment(props, ("properties",))
            yield from _environment(props, ("environmentVersionProperties",))
        case "resources", "Resource":
            yield from _as_sent(_requests(f":{kind}", props), props, groups)
        case "resources", "ResourceGroup":
            facts = Facts(props, {"name": (("resourceGroupName",),), "location": (("location",),)})
            yield Subject("group", "location", None, 0, facts)
        case "network", "VirtualNetwork":
            yield from _network(props, ("virtualNetworkName",), ("addressSpace", "addressPrefixes"))
    yield from _located(props, ())


def _named(props: Any, workspace: str, name: str) -> Address:
    """The address of a resource that gives it in parts."""
    group, around, own = (text(props, key) for key in ("resourceGroupName", workspace, name))
    return Address(
        None,
        group.lower() if isinstance(group, str) else None,
        name_of(around) if isinstance(around, str) else None,
        name_of(own) if isinstance(own, str) else None,
        own if isinstance(own, Unknown) else None,
    )


def _of_the_workspace(given: Any) -> Address | None:
    return address_of(f"{given}/computes/-") if isinstance(given, str) else None


def _requests(resource_type: str, props: Any) -> Iterator[Request | Unknown]:
    return by_azapi(props) if AZAPI.fullmatch(resource_type) else by_azure_native(props)


def _as_sent(requests: Iterable[Request | Unknown], given: Any, groups: Mapping[str, Any]) -> Iterator[Subject]:
    """The requests of a resource of any type, in the resource manager's own layout."""
    for one in requests:
        if isinstance(one, Unknown):
            yield Subject("cluster", one.path, one, 1, Facts(given, {}))
            continue
        yield from _arm(one.kind, one.props, one.at, one.place)
        from policies.evaluation.templates import HOLDERS  # noqa: PLC0415 - most jobs bring no template

        if HOLDERS.fullmatch(one.kind):
            yield from _template(one.props, one.at, groups)
        if one.at:
            yield from _located(one.props, one.at)


def _network(props: Any, name: Path, ranges: Path) -> Iterator[Subject]:
    yield Subject("network", ".".join(ranges), None, 0, Facts(props, {"name": (name,), "ranges": (ranges,)}))


def _located(props: Any, at: Path) -> Iterator[Subject]:
    """Any Azure resource that lies somewhere, and clusters anyway: what tags and regions are judged on."""
    if dig(props, *at, "location") is not None or dig(props, *at, "properties", "computeType") is not None:
        paths = {"location": ((*at, "location"),), "tags": ((*at, "tags"),)}
        yield Subject("resource", ".".join((*at, "location")), None, 0, Facts(props, paths))


def _jobs(props: Any, at: Path, place: Address | None) -> Iterator[Subject]:
    if isinstance(dig(props, *at), Mapping):
        yield Subject("text", ".".join(at), None, 0, Facts(props, {"whole": (at,)}))
    for found in jobs_in(props, at):
        yield Subject("job", found.where, found.size, found.nodes, found.facts, compute=found.compute, place=place)


def _environment(props: Any, at: Path) -> Iterator[Subject]:
    if isinstance(dig(props, *at), Mapping | Unknown):
        paths = {"image": ((*at, "image"),), "conda": ((*at, "condaFile"),)}
        yield Subject("environment", ".".join((*at, "image")), None, 0, Facts(props, paths))


def _arm(kind: str, props: Any, at: Path, place: Address) -> Iterator[Subject]:
    """One resource in ARM's own layout: what any provider sends, or one of a template."""
    match kind.removeprefix(_ML):
        case "workspaces/computes":
            yield from compute_subjects(props, at, place)
        case "workspaces/computes/resize":
            yield from machine_subjects(props, (("targetVMSize",),), at)
        case "workspaces/jobs":
            yield from _jobs(props, (*at, "properties"), place)
        case "workspaces/schedules":
            yield from _jobs(props, (*at, "properties", "action", "jobDefinition"), place)
        case "workspaces/environments/versions" | "workspaces/versions":
            yield from _environment(props, (*at, "properties"))
        case "microsoft.network/virtualnetworks":
            yield from _network(props, (*at, "name"), (*at, "properties", "addressSpace", "addressPrefixes"))
    for arm, paths in MACHINES.values():
        if arm == kind:
            yield from machine_subjects(props, paths, at)


def _read_whole(kind: str) -> bool:
    return kind.startswith(_ML) or kind == "microsoft.network/virtualnetworks"


def _template(props: Any, at: Path, groups: Mapping[str, Any]) -> Iterator[Subject]:
    """Whatever the templates in a resource deploy, jobs after all else, as a template keeps no order.

    Args:
        props: The resource's properties.
        at: The path of its body in them.
        groups: Locations of the stack's resource groups, by name in small letters.
    """
    from policies.evaluation.template_scope import Around  # noqa: PLC0415 - as above
    from policies.evaluation.templates import pieces  # noqa: PLC0415

    around = Around(location=dig(props, "location"))
    if isinstance(group := dig(props, "resourceGroupName"), str):
        around = Around(group, groups.get(group.lower()), dig(props, "location"))
    last: list[Subject] = []
    for piece in pieces(props, at, around, _read_whole):
        if isinstance(piece, Unknown):
            yield Subject("cluster", piece.path, piece, 1, Facts(props, {}))
            continue
        place = address_of_child(piece.name, piece.group)
        found = (*_arm(piece.kind.lower(), piece.props, piece.at, place), *_located(piece.props, piece.at))
        yield from (subject for subject in found if subject.kind != "job")
        last += (subject for subject in found if subject.kind == "job")
    yield from last
