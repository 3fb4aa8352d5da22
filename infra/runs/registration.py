"""Registrations of one run in the workspace, in order; `up` and `rehearse` both follow it.

All ids are composed from content, so that the body is known before anything is registered and a preview shows it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jobs
from infra.data import named_in
from infra.runs.references import RegisteredEnvironment
from jobs.local_data import LocalData

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from amlstack import snapshot
    from infra.names import Names
    from infra.runs import Run
    from jobs.local_data import DataUpload


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
