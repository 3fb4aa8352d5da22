"""The rules on a stack's declaration: what the program would register, judged as the policy pack judges it.

Findings come back to the place that a person wrote: a path in the settings, or in a job file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import jobs
from amlstack.base.findings import Finding, Level
from amlstack.base.text import camel
from infra import properties, resource_types
from jobs.planning.program_checks import knows_where_it_was
from jobs.wire.command import LOCAL
from jobs.wire.keys import BLOCKS, field_of
from policies.checks import cluster
from policies.checks.job import JOB_TIMEOUT_REMEDY
from policies.gate import NO_COMPUTE, Gate

if TYPE_CHECKING:
    from infra.settings import Reading, Settings

WORKSPACE = "/subscriptions/-/resourceGroups/-/providers/Microsoft.MachineLearningServices/workspaces/-"
"""Stands for the workspace, which a rule never looks at, in ids."""

STACK_IDENTITY = "/subscriptions/-/resourceGroups/-/providers/Microsoft.ManagedIdentity/userAssignedIdentities/-"
"""Stands for the stack's identity, likewise."""

_LOCATED = {
    "group": resource_types.RESOURCE_GROUP,
    "storage": resource_types.STORAGE_ACCOUNT,
    "key-vault": resource_types.KEY_VAULT,
    "logs": resource_types.LOGS,
    "insights": resource_types.INSIGHTS,
    "registry": resource_types.REGISTRY,
    "workspace": resource_types.WORKSPACE,
    "identity": resource_types.IDENTITY,
}
"""Resources beside the clusters that carry the stack's region and tags."""

_IN_SETTINGS: Mapping[str, str] = {
    cluster.MANAGED_IDENTITY_REMEDY: "Write identity: stack, identity: system, or identity: {user_assigned: [ID]}",
    cluster.SUBNET_PRESENT_REMEDY: "Write the subnet's ARM id, subnet: "
    "/subscriptions/…/virtualNetworks/NET/subnets/NAME",
    cluster.PUBLIC_IP_REMEDY: "Write node_public_ip: false",
    cluster.LOCAL_AUTH_REMEDY: "Write disable_local_auth: true, and no `ssh`: its accounts are local ones",
    cluster.SSH_REMEDY: "Write public_access: false in `ssh`",
}
"""Advice of the rules for a resource, in the words of the settings; a test applies them."""


def of_cluster(gate: Gate, reading: Reading, settings: Settings, index: int) -> tuple[Finding, ...]:
    """The rules' findings on one cluster of the settings; the gate then knows it for the jobs on it."""
    from infra.network.plan import placed  # noqa: PLC0415 - it loads the settings, which a lone job file has none of

    if reading.doubts("clusters", index, "size"):
        return ()
    spec = placed(settings.clusters[index], settings)
    doubtful = reading.doubts("clusters", index, "nodes")
    nodes = spec.nodes.model_copy(update={"min": 0, "max": 1}) if doubtful else spec.nodes
    location = spec.location or (None if reading.doubts("location") else settings.location)
    found = gate.judge(
        resource_types.COMPUTE,
        spec.name,
        {
            "computeName": spec.name,
            **properties.cluster_properties(
                spec.model_copy(update={"nodes": nodes}),
                location=location,
                tags=settings.tags,
                stack_identity=STACK_IDENTITY,
            ),
        },
        parent=resource_types.CLUSTERS,
    )
    certain = [finding for finding in found if not (doubtful and "scaleSettings" in finding.where)]
    return tuple(_in_settings(reading, ("clusters", index, *properties.setting_of(one.where)), one) for one in certain)


def _in_settings(reading: Reading, loc: tuple[str | int, ...], finding: Finding) -> Finding:
    return reading.about(loc, _worded(finding, _IN_SETTINGS))


def _worded(finding: Finding, words: Mapping[str, str]) -> Finding:
    """A finding whose remedy is worded for the place in which its reader writes; what an exception adds stays."""
    for of_the_resource, here in words.items():
        if finding.remedy.startswith(of_the_resource):
            return finding.changed(remedy=here + finding.remedy.removeprefix(of_the_resource))
    return finding


def _in_job(finding: Finding, planned: object, source: jobs.Source) -> Finding:
    python = "Write limits=jobs.Limits(timeout=SECONDS)"
    if source.sdk:
        python = "Call its set_limits(timeout=SECONDS)"
    elif isinstance(planned, jobs.SweepPlan):
        python = "Write timeout=SECONDS in its jobs.SweepLimits"
    words = python if (finding.file or "").endswith(".py") else "Write limits: {timeout: SECONDS}"
    worded = _worded(finding, {JOB_TIMEOUT_REMEDY: words})
    # An object of azure-ai-ml gets its limits by a call, which `check --fix` does not write.
    return worded.changed(by_hand=bool(source.sdk)) if worded is not finding else finding


def of_the_rest(gate: Gate, reading: Reading, settings: Settings) -> tuple[Finding, ...]:
    """The findings of the rules on regions and tags for all that lies in the stack's region, each once."""
    location = None if reading.doubts("location") else settings.location
    props = {"location": location, "tags": dict(settings.tags)}
    # An existing resource has its own region and tags, which nobody here decides.
    mine = set(_LOCATED) if not settings.workspace.existing else {"identity"}
    parts = {name: getattr(settings.workspace, name.replace("-", "_"), None) for name in mine}
    mine -= {name for name, part in parts.items() if getattr(part, "existing", None)}
    if settings.resource_group and settings.resource_group.existing:
        mine -= {"group"}
    found = [
        _in_settings(reading, (finding.where,), finding)
        for name, token in _LOCATED.items()
        if name in mine
        for finding in gate.judge(token, name, props, parent=resource_types.WORKSPACE_PARENT)
    ]
    return tuple(dict.fromkeys(found))


def of_plan(gate: Gate, name: str, planned: jobs.Planned, source: jobs.Source) -> tuple[Finding, ...]:
    """All findings on one run: the plan's own, then the rules' on what it registers, at the configured levels.

    Args:
        gate: Knows the stack's clusters; of others it learns here what the plan knows.
        name: Name of the run.
        planned: The plan.
        source: The job's file.
    """
    placed = (finding if finding.file else source.locate(finding) for finding in planned.findings)
    found = [finding for each in placed if (finding := gate.at_level(each, name)) is not None]
    if not isinstance(planned, jobs.SchedulePlan):
        ruled = tuple(judged(gate, name, planned, source))
        return tuple(_in_job(finding, planned, source) for finding in (*found, *ruled))
    if planned.started is not None:
        own_file = planned.job.source
        prefix = "" if own_file else "create_job"
        found += judged(gate, name, planned.started, own_file or source, timed=True, prefix=prefix)
        found = [_in_job(finding, planned.started, source) for finding in found]
    return tuple(found)


def judged(
    gate: Gate,
    name: str,
    planned: jobs.Plan | jobs.SweepPlan | jobs.PipelinePlan,
    source: jobs.Source,
    *,
    timed: bool = False,
    prefix: str = "",
) -> Iterator[Finding]:
    """The rules' findings on what a plan registers, each at its place in the declaration.

    Args:
        gate: Knows the clusters.
        name: Name of the run, or of the schedule that starts it.
        planned: The run.
        source: The file that declares it.
        timed: A schedule registers it.
        prefix: Key of the file under which the run is declared; empty for the file itself.
    """
    parts = planned.parts
    refs: dict[str, jobs.Refs] = {}
    for index, (place, part) in enumerate(parts.items()):
        if part.target.size and part.job.compute != LOCAL:
            gate.knows(part.target.cluster or NO_COMPUTE, part.target.size)
        environment_id = None
        if isinstance(environment := part.enriched.environment, jobs.Environment):
            environment_id, found = _environment(gate, environment, part, name=name, version=f"{name}-{index}")
            for finding in found:
                yield _located(finding, planned, place, source, prefix)
        refs[place.removeprefix("jobs.")] = jobs.Refs(WORKSPACE, None, environment_id)
    whole = refs.get("trial", refs.get("", jobs.Refs(WORKSPACE)))
    rendered = jobs.render(planned.enriched, whole, refs)
    token, parent = (
        (resource_types.SCHEDULE, resource_types.SCHEDULES) if timed else (resource_types.JOB, resource_types.JOBS)
    )
    for body in rendered.components.values():
        *_, component, _, version = jobs.component_id(body, whole).split("/")
        props = {"name": component, "version": version, "body": body["properties"]}
        gate.judge(resource_types.COMPONENT, component, props, parent=parent)
    body = rendered.body
    at: tuple[str, ...] = ("body", "properties")
    if timed:
        at = (*at, "action", "jobDefinition")
        body = {"properties": {"action": {"jobDefinition": body["properties"]}}}
    unreadable = [(*at, *_on_wire(path, prefix)) for path in source.unreadable]
    props = {"name": name, "body": body}
    of_steps = {path[1] for path in source.unreadable if len(path) > 1 and path[0] == "jobs"}
    lost = of_steps - set(getattr(planned.job, "jobs", None) or {}) if of_steps else of_steps
    dropped = tuple(f"{'.'.join(at)}.jobs.{name}." for name in sorted(lost))
    for finding in gate.judge(token, name, props, parent=parent, unreadable=unreadable):
        if finding.where.startswith(dropped):
            continue  # a step that could not be read is not known to lack anything
        place, field = _field(parts, finding.where.removeprefix(f"{'.'.join(at)}."))
        if finding.code == "restart-without-checkpoint" and place in parts and knows_where_it_was(parts[place]):
            continue
        level = finding.level
        # Azure ML itself takes such a job in its own words, and on one node there is no fabric to judge.
        if level is Level.ERROR and finding.code == "size-unknown" and (asked := parts.get(place)):
            level = Level.WARNING if asked.nodes == 1 and not asked.job.typed else level
        yield _located(finding.changed(where=field, level=level), planned, place, source, prefix)


def _environment(
    gate: Gate, environment: jobs.Environment, part: jobs.Plan, *, name: str, version: str
) -> tuple[str, tuple[Finding, ...]]:
    """The id by which a rule on the job looks its image up, and the findings; those with one environment share both."""
    called = environment.name or (name if gate.config.exceptions else "")  # only exceptions ask for a name
    same = called, environment.image, repr(environment.conda_file), part.base
    if (known := gate.shared.get(same)) is None:
        named = environment.name or "inline"
        inside = {"image": environment.image, "condaFile": _conda(environment, part)}
        props = {"name": named, "version": version, "body": inside}
        found = gate.judge(resource_types.ENVIRONMENT, environment.name or name, props)
        at_image = tuple(finding.changed(where="environment.image") for finding in found)
        known = gate.shared[same] = f"{WORKSPACE}/environments/{named}/versions/{version}", at_image
    return known


def _conda(environment: jobs.Environment, part: jobs.Plan) -> str | None:
    """The text in which an inline environment names its packages; None where there is none that can be read."""
    given = environment.conda_file
    if not isinstance(given, str):
        return None if given is None else str(given)
    try:
        return (part.base / given).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None  # a finding of the plan's


def _located(
    finding: Finding,
    planned: jobs.Plan | jobs.SweepPlan | jobs.PipelinePlan,
    place: str,
    source: jobs.Source,
    prefix: str,
) -> Finding:
    """A finding on a field of a part of a plan, at its place in the file."""
    finding = planned.placed(place, finding)
    if finding.file is not None:
        return finding
    return source.locate(finding.under(prefix) if prefix else finding)


def _on_wire(path: tuple[str, ...], prefix: str) -> tuple[str, ...]:
    """Path in the body of a key of a job file; in nodes of a pipeline rules look for these names too."""
    if prefix and path[0] == prefix:
        path = path[1:]
    # The key after `jobs` is a step's name, which the body has as it is written.
    return tuple(
        key if index and path[index - 1] == "jobs" else BLOCKS.get(key) or camel(key) for index, key in enumerate(path)
    )


def _field(parts: Mapping[str, jobs.Plan], path: str) -> tuple[str, str]:
    """The part of a plan that a path of the body belongs to, and the field of its declaration."""
    path = path.replace(".component.jobs.", ".jobs.")
    if "trial" in parts:
        place = "trial"
    else:
        place = max((each for each in parts if path == each or path.startswith(f"{each}.")), key=len, default="")
    inner = path.removeprefix(place).removeprefix(".")
    for piece in ("trial.", "component."):
        inner = inner.removeprefix(piece)
    return place, field_of(inner)
