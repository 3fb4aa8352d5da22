"""Registrations of one run in the workspace, in order; `up` and `rehearse` both follow it.

All ids are composed from content, so that the body is known before anything is registered and a preview shows it.

The fabric check of a cluster is a job of the stack too: amlnode's preflight, then all-reduce, over the cluster's nodes.
The cluster's jobs come after it. It is declared where the stack runs something on the cluster, so that no nodes start
for a cluster without work, and it runs again when the cluster becomes another one, not when its jobs change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack.base.findings import Finding, Level, stated
from amlstack.run_identity import sha256
from infra.data import named_in
from infra.properties import CLUSTER_SETTINGS
from infra.runs.order import OrderedRun, RegisteredEnvironment, Wanted
from infra.settings.model.base import SettingsModel
from infra.settings.model.cluster import Cluster
from jobs.local_data import DataUpload, LocalData
from jobs.planning.plans import costs

if TYPE_CHECKING:
    from amlstack import snapshot
    from infra.names import Names
    from infra.runs import Run

CODE = Path(__file__).parent / "fabric_check_code"
PREFLIGHT = "python -m amlnode preflight && python -m amlnode bandwidth"
"""A change of these words repeats every check."""
ENVIRONMENT = "acpt-pytorch-2.8-cuda12.6"
TIMEOUT = 1800


def name_of(cluster: str) -> str:
    """The name of a cluster's check, for ``after``."""
    return f"fabric-check-{cluster}"


def job_of(cluster: Cluster, *, location: str) -> jobs.Job:
    """The check of a cluster that has one.

    Args:
        cluster: The cluster.
        location: The stack's region.
    """
    check = cluster.fabric_check
    if check is None:
        raise ValueError(cluster.name)
    expect = "" if check.expect is None else f" --expect {check.expect:g}"
    return check_job(
        name_of(cluster.name),
        display_name=f"Fabric check of {cluster.name}",
        command=PREFLIGHT + expect,
        environment=check.environment or ENVIRONMENT,
        compute=cluster.name,
        nodes=check.nodes or cluster.nodes.max,
        rerun="-".join(filter(None, (check.rerun, _ground(cluster, location)))),
        # One that is under way for a cluster that was since declared otherwise proves nothing.
        on_edit="cancel",
        wait="completed",
    )


def check_job(name: str, **more: Any) -> jobs.Job:
    """Preflight and all-reduce as a job, one rank for each GPU in the curated environment unless told otherwise."""
    plain = {"command": PREFLIGHT, "environment": ENVIRONMENT, "launcher": jobs.PerProcess()}
    return jobs.Job(name=name, code=".", limits=jobs.Limits(timeout=TIMEOUT), **{**plain, **more})


def on_cluster(declared: Iterable[Run], cluster: Cluster) -> list[Run]:
    """The runs and schedules of which a part runs on a cluster of the stack."""
    name = cluster.name.lower()
    return [
        run for run in declared if any((part.target.cluster or "").lower() == name for part in run.plan.parts.values())
    ]


@dataclass(slots=True)
class FabricChecks:
    """The checks of a stack.

    Attributes:
        runs: One for each checked cluster.
        gates: Run → the checks that it comes after.
        findings: What is wrong with them, and what they cost.
    """

    runs: list[Run] = field(default_factory=list)
    gates: dict[str, tuple[str, ...]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def add(self, check: Run, on_it: Iterable[Run]) -> None:
        """One more, with the runs on its cluster."""
        self.runs.append(check)
        for run in on_it:
            self.gates[run.name] = (*self.gates.get(run.name, ()), check.name)

    def gated(self, members: Iterable[OrderedRun]) -> Iterator[OrderedRun]:
        """Yield the runs in their order, the checks included."""
        for member in members:
            gates = () if member.is_schedule else self.gates.get(member.name, ())
            wanted = tuple(Wanted(name, lambda finding: finding) for name in gates)
            yield member._replace(wanted=(*member.wanted, *wanted)) if wanted else member
        yield from (OrderedRun(run.name) for run in self.runs)


def faults(cluster: Cluster, declared: Iterable[Run], where: str) -> list[Finding]:
    """The faults that keep a cluster's check from being declared."""
    found = [one] if (one := _takes_too_many(cluster, where)) is not None else []
    if (name := name_of(cluster.name)) in {run.name for run in declared if not run.is_schedule}:
        seen, rule = f"A job of the stack is named `{name}`", "That is the name of the cluster's fabric check"
        found.append(Finding("job-twice", where, seen, rule, "Give the job another `name`"))
    return found


def _takes_too_many(cluster: Cluster, where: str) -> Finding | None:
    """A check of more nodes than the cluster has, or of none."""
    wanted = cluster.fabric_check.nodes if cluster.fabric_check is not None else None
    if cluster.nodes.max == 0:
        seen, remedy = "The cluster never has a node to check", "Raise `nodes.max`, or leave the check out"
    elif wanted is not None and wanted > cluster.nodes.max:
        seen, remedy = f"The check takes {wanted} nodes, and the cluster has {cluster.nodes.max} at most", ""
    else:
        return None
    return Finding("fabric-check-nodes", where, seen, "A fabric check runs on the nodes of its cluster", remedy)


def announced(run: Run, where: str) -> Finding:
    """The announcement of the check and its highest cost."""
    (plan,) = run.plan.parts.values()
    nodes = f"{plan.nodes} node{'' if plan.nodes == 1 else 's'} of {plan.target.size}"
    price = costs(run.plan).get("")
    cost = f"; it costs {price}" if price is not None else "; the catalogue has no price of that size"
    return stated("fabric-check", where, Level.INFO, run=run, nodes=nodes, cost=cost)


def _ground(cluster: Cluster, location: str) -> str:
    """A word for what makes the cluster another one: the settings that replace it, as far as they are given.

    Only what differs from its default counts, so that a setting that a later version adds repeats no check.
    """
    given: dict[str, Any] = {"location": cluster.location or location}
    names = {setting.path[0] for setting in CLUSTER_SETTINGS if setting.replaces}
    if cluster.identity_change == "replace":
        names.add("identity")
    for name in sorted(names - given.keys()):
        value, default = getattr(cluster, name), Cluster.model_fields[name]
        if value != default.get_default(call_default_factory=True, validated_data={}):
            given[name] = value.model_dump(mode="json") if isinstance(value, SettingsModel) else value
    return sha256(given)[:8]


@dataclass(frozen=True, slots=True)
class RunPart:
    """The requirements of a run's command job, cluster first.

    Attributes:
        cluster: Name of the cluster it names; None for none.
        code: Its folder's content; None when nothing is uploaded.
        beside: Folders that travel with the code.
        environment: The environment that is registered for it; None when it refers to one.
    """

    cluster: str | None
    code: snapshot.Snapshot | None
    beside: tuple[Path, ...]
    environment: RegisteredEnvironment | None

    def refs(self, names: Names) -> jobs.Refs:
        """The references to its code and environment."""
        return jobs.Refs(
            names.workspace_id,
            f"{names.workspace_id}/codes/{self.code.hash}/versions/1" if self.code else None,
            self.environment.id_in(names) if self.environment else None,
        )


@dataclass(frozen=True, slots=True)
class ComponentVersion:
    """A component version of a pipeline's step.

    Attributes:
        label: Name of the run and of the first step that has this component.
        name: Name in the workspace.
        version: Made from its content.
        properties: ARM properties.
    """

    label: str
    name: str
    version: str
    properties: Mapping[str, Any]

    @property
    def is_pipeline(self) -> bool:
        """True where it names the components of its own steps, which come before it."""
        return bool(self.properties["componentSpec"].get("type") == "pipeline")


@dataclass(frozen=True, slots=True)
class Registration:
    """All of one run: first its parts, then the component versions, then the body.

    Attributes:
        parts: By what each command job needs.
        uploads: Data of this machine that it reads, each once.
        components: In the order in which they are registered, each once.
        body: Of the job or schedule.
        assets: ``azureml:NAME:VERSION`` of the stack's data assets that it reads, each once.
        datastores: Names of the datastores that body and components name.
    """

    parts: tuple[RunPart, ...]
    components: tuple[ComponentVersion, ...]
    body: dict[str, Any]
    uploads: tuple[DataUpload, ...] = ()
    assets: tuple[str, ...] = ()
    datastores: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        plan: jobs.Planned,
        codes: Mapping[str, snapshot.Snapshot],
        names: Names,
        data: LocalData | None = None,
        *,
        assets: tuple[str, ...] = (),
    ) -> Registration:
        """Compose what a plan needs.

        Args:
            name: Name of the run; its components are labelled with it.
            plan: Of a job, a sweep or a pipeline, or of a schedule.
            codes: The content of each part's folder, by the part's place.
            names: The workspace.
            data: Data of this machine that are uploaded; without it the body keeps their paths.
            assets: The stack's data assets that it reads.
        """
        data = data or LocalData()
        parts = {place: _part(part, codes.get(place)) for place, part in plan.parts.items()}
        refs = {place.removeprefix("jobs."): part.refs(names) for place, part in parts.items()}
        # A job and a sweep have one part; of a pipeline each step has its own references.
        whole = refs.get("", refs.get("trial", jobs.Refs(names.workspace_id)))
        rendered = jobs.render(data.addressed(plan.enriched), whole, refs)
        uploads = {(each.path, each.datastore): each for each in data.uploads.values()}
        components = tuple(_components(name, rendered, whole))
        stores = named_in([rendered.body, *rendered.components.values()])
        return cls(
            tuple(parts.values()), components, rendered.body, tuple(uploads.values()), assets, tuple(sorted(stores))
        )


def _part(plan: jobs.Plan, code: snapshot.Snapshot | None) -> RunPart:
    environment = plan.enriched.environment
    return RunPart(
        plan.target.cluster,
        code,
        plan.beside,
        RegisteredEnvironment.of(environment, plan.base) if isinstance(environment, jobs.Environment) else None,
    )


def _components(name: str, rendered: jobs.Rendered, whole: jobs.Refs) -> Iterator[ComponentVersion]:
    seen: set[str] = set()
    for step, body in rendered.components.items():
        component_id = jobs.component_id(body, whole)
        if component_id not in seen:
            seen.add(component_id)
            *_, component, _, version = component_id.split("/")
            yield ComponentVersion(f"{name}.{step}", component, version, jobs.registered_component(body))


def job_inputs(run: Run) -> dict[str, Any]:
    """The inputs of a run's resource that its declaration and code alone decide, by their names in the schema."""
    return {
        "name": run.name,
        "declaration": run.data.identity(run.plan.declaration),
        "codeHash": run.own.hash,
        "codeFiles": run.own.files or None,
        "rerun": run.declared.rerun or "",
        "deleteHistory": run.declared.delete_history,
    }
