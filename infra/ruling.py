"""The rules on a stack's declaration: what the program would register, judged as the policy pack judges it.

Findings come back to the place that a person wrote: a path in the settings, or in a job file.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import jobs
from amlstack.base.findings import Finding, Level
from infra import cluster
from jobs.wire.keys import field_of
from policies.checks.cluster import managed_identity, public_ip, subnet_present
from policies.checks.job import job_timeout
from policies.config import CODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.settings import Reading, Settings
    from policies.gate import Gate

COMPUTE, JOB = "azure-native:machinelearningservices:Compute", "amlstack:jobs:Job"
SCHEDULE = "amlstack:schedules:Schedule"
ENVIRONMENT, COMPONENT = "amlstack:environments:Version", "amlstack:components:Version"
WORKSPACE = "/subscriptions/-/resourceGroups/-/providers/Microsoft.MachineLearningServices/workspaces/-"
"""Stands for the workspace, which a rule never looks at, in ids."""

STACK_IDENTITY = "/subscriptions/-/resourceGroups/-/providers/Microsoft.ManagedIdentity/userAssignedIdentities/-"
"""Stands for the stack's identity, likewise."""

_LOCATED = {
    "group": "azure-native:resources:ResourceGroup",
    "storage": "azure-native:storage:StorageAccount",
    "key-vault": "azure-native:keyvault:Vault",
    "logs": "azure-native:operationalinsights:Workspace",
    "insights": "azure-native:applicationinsights:Component",
    "registry": "azure-native:containerregistry:Registry",
    "workspace": "azure-native:machinelearningservices:Workspace",
    "identity": "azure-native:managedidentity:UserAssignedIdentity",
}
"""Resources beside the clusters that carry the stack's region and tags."""

_IN_SETTINGS: Mapping[str, str] = {
    managed_identity.REMEDY: "Write identity: stack, identity: system, or identity: {user_assigned: [ID]}",
    subnet_present.REMEDY: "Write the subnet's ARM id, subnet: /subscriptions/…/virtualNetworks/NET/subnets/NAME",
    public_ip.REMEDY: "Write node_public_ip: false",
}
"""What rules advise for a resource, in the words of the settings; a test applies them."""


def of_cluster(gate: Gate, reading: Reading, settings: Settings, index: int) -> tuple[Finding, ...]:
    """What the rules say of one cluster of the settings, and what the gate then knows for the jobs on it."""
    if reading.doubts("clusters", index, "size"):
        return ()
    spec = settings.clusters[index]
    doubtful = reading.doubts("clusters", index, "nodes")
    told = spec.model_copy(update={"nodes": spec.nodes.model_copy(update={"min": 0, "max": 1})}) if doubtful else spec
    location = spec.location or (None if reading.doubts("location") else settings.location)
    found = gate.judge(
        COMPUTE,
        spec.name,
        {
            "computeName": spec.name,
            **cluster.properties(told, location=location, tags=settings.tags, stack_identity=STACK_IDENTITY),
        },
        parent="amlstack:infra:RdmaCluster",
    )
    told_of = [finding for finding in found if not (doubtful and "scaleSettings" in finding.where)]
    return tuple(_in_settings(reading, ("clusters", index, *cluster.setting_of(one.where)), one) for one in told_of)


def _in_settings(reading: Reading, loc: tuple[str | int, ...], finding: Finding) -> Finding:
    from infra.settings import dotted  # noqa: PLC0415

    return reading.locate(loc, replace(_worded(finding, _IN_SETTINGS), where=dotted(loc)))


def _worded(finding: Finding, words: Mapping[str, str]) -> Finding:
    """A finding whose remedy is worded for the place in which its reader writes; what an exception adds stays."""
    for of_the_resource, here in words.items():
        if finding.remedy.startswith(of_the_resource):
            return replace(finding, remedy=here + finding.remedy.removeprefix(of_the_resource))
    return finding


def _in_job(finding: Finding, planned: object, file: str | None) -> Finding:
    python = "Write limits=jobs.Limits(timeout=SECONDS)"
    # A single job's plan is asked about first: the name of the other would load what sweeps need.
    if not isinstance(planned, jobs.Plan) and isinstance(planned, jobs.SweepPlan):
        python = "Write timeout=SECONDS in its jobs.SweepLimits"
    words = python if (file or "").endswith(".py") else "Write limits: {timeout: SECONDS}"
    return _worded(finding, {job_timeout.REMEDY: words})


def of_the_rest(gate: Gate, reading: Reading, settings: Settings) -> tuple[Finding, ...]:
    """What the rules on regions and tags say of all that lies where the stack lies, each thing once."""
    location = None if reading.doubts("location") else settings.location
    props = {"location": location, "tags": dict(settings.tags)}
    found = [
        _in_settings(reading, (finding.where,), finding)
        for name, token in _LOCATED.items()
        for finding in gate.judge(token, name, props, parent="amlstack:infra:Workspace")
    ]
    return tuple(dict.fromkeys(found))


def of_plan(gate: Gate, name: str, planned: jobs.Planned, source: jobs.Source) -> tuple[Finding, ...]:
    """All findings on one run: the plan's own, and the rules', all of them at the configured levels.

    Args:
        gate: Knows the stack's clusters; of others it is told here what the plan knows.
        name: Name of the run.
        planned: The plan.
        source: The job's file.
    """
    if not isinstance(planned, jobs.Plan) and isinstance(planned, jobs.SchedulePlan):
        if planned.started is None:
            return planned.findings
        file = planned.job.file
        of_start = _ruled(gate, name, planned.started, planned.findings, "" if file else "create_job.", timed=True)
        locate = jobs.load(file).source.locate if file else source.locate
        found = (finding if finding.file else locate(finding) for finding in of_start)
        return tuple(_in_job(finding, planned.started, finding.file) for finding in found)
    found = (
        source.locate(finding) if finding.file is None else finding
        for finding in _ruled(gate, name, planned, planned.findings, "")
    )
    return tuple(_in_job(finding, planned, finding.file) for finding in found)


def _ruled(
    gate: Gate,
    name: str,
    planned: jobs.Plan | jobs.SweepPlan | jobs.PipelinePlan,
    told: tuple[Finding, ...],
    prefix: str,
    *,
    timed: bool = False,
) -> Iterator[Finding]:
    ruled: dict[tuple[str, str], list[Finding]] = {}
    for finding in judged(gate, name, planned, timed=timed):
        place = _place(planned, finding.where)
        under = finding if not prefix else replace(finding, where=f"{prefix}{finding.where}")
        ruled.setdefault((place, finding.code), []).append(under)
    clusters = {place: part.target.cluster for place, part in jobs.parts(planned).items()}
    covered: set[tuple[str, str]] = set()
    for finding in told:
        place = _place(planned, finding.where.removeprefix(prefix))
        key = (place, finding.code)
        of_the_cluster = finding.where.endswith("compute")  # its size; the gate judges the job itself
        if finding.code in CODES and key in ruled and not of_the_cluster:
            covered.add(key)
            # A plan is lenient where Azure ML itself takes what the rule does not know.
            lenient = finding.code == "size-unknown" and finding.level is not Level.ERROR
            like = ruled[key][0]
            yield finding if lenient else replace(finding, level=like.level, remedy=like.remedy or finding.remedy)
            continue
        settled = gate.settled(finding, name, clusters.get(place) or name)
        if settled is not None:
            yield settled
    for key, findings in ruled.items():
        if key not in covered:
            yield from findings


def judged(
    gate: Gate, name: str, planned: jobs.Plan | jobs.SweepPlan | jobs.PipelinePlan, *, timed: bool = False
) -> Iterator[Finding]:
    """What the rules say of what a plan registers, each finding at its field in the declaration.

    Args:
        gate: Knows the clusters.
        name: Name of the run, or of the schedule that starts it.
        planned: The run.
        timed: A schedule registers it.
    """
    refs: dict[str, jobs.Refs] = {}
    for place, part in jobs.parts(planned).items():
        if part.target.cluster and part.target.size:
            gate.knows(part.target.cluster, part.target.size)
        environment_id = None
        if isinstance(environment := part.enriched.environment, jobs.Environment):
            environment_id = f"{WORKSPACE}/environments/{environment.name or 'inline'}/versions/-"
            for finding in gate.judge(ENVIRONMENT, environment.name or name, {"body": {"image": environment.image}}):
                yield (
                    replace(finding, where="environment.image").under(place)
                    if place
                    else replace(finding, where="environment.image")
                )
        refs[place.removeprefix("jobs.")] = jobs.Refs(WORKSPACE, None, environment_id)
    whole = refs.get("trial", refs.get("", jobs.Refs(WORKSPACE)))
    if not isinstance(planned, jobs.Plan) and isinstance(planned, jobs.PipelinePlan):
        for body in jobs.components(planned.enriched, whole, refs).values():
            *_, component, _, version = jobs.component_id(body, whole).split("/")
            gate.judge(COMPONENT, component, {"name": component, "version": version, "body": body["properties"]})
    body = jobs.render(planned.enriched, whole, refs)
    token, parent = JOB, "amlstack:infra:Training"
    if timed:
        token, parent = SCHEDULE, "amlstack:infra:Timetable"
        body = {"properties": {"action": {"jobDefinition": body["properties"]}}}
    for finding in gate.judge(token, name, {"name": name, "body": body}, parent=parent):
        yield replace(finding, where=_field(planned, finding.where))


def _field(planned: jobs.Planned, where: str) -> str:
    """The field of the declaration that became a path of the body."""
    path = where.removeprefix("body.properties.").removeprefix("action.jobDefinition.")
    place = _place(planned, path)
    inner = path.removeprefix(place).removeprefix(".")
    for piece in ("trial.", "component."):
        inner = inner.removeprefix(piece)
    inner = field_of(inner)
    if place == "trial" and inner.startswith("limits."):  # a sweep has limits of its own
        return inner
    return f"{place}.{inner}" if place else inner


def _place(planned: jobs.Planned, where: str) -> str:
    """The part of a plan that a path belongs to, as `jobs.parts` names it."""
    if isinstance(planned, jobs.Plan):
        return ""
    if isinstance(planned, jobs.SweepPlan):
        return "trial"
    if isinstance(planned, jobs.PipelinePlan):
        places = [place for place in jobs.parts(planned) if where == place or where.startswith(f"{place}.")]
        return max(places, key=len, default="")
    return ""
