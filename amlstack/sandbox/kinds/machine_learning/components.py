"""Components of a workspace with their versions, whose specification the service completes.

Every number and truth value is text, inputs say that they are not optional, and a command has one node. Modes, the size
of nodes, and of a pipeline its steps and settings are kept but not shown.

Source: recordings of azure-ai-ml's tests, 2022-11 to 2026-03 (``azure-sdk-assets`` in
``amlstack/catalog/data/sources.json``, and a fork of azure-sdk-for-python of June 2023).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from amlstack.sandbox.files.environments import expanded
from amlstack.sandbox.kinds.machine_learning.assets import Containers, Versions, is_archived
from amlstack.sandbox.orchestration import pipeline_body
from amlstack.sandbox.protocol.refusals import Refused, invalid

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.protocol.kind import Body, KindContext
    from amlstack.sandbox.store.store import ResourceRow

DEFAULT_VERSION = "azureml_default"
"""Under this name azure-ai-ml asks for a component without a version: the newest one that is not archived."""
ANONYMOUS: Final = "azureml_anonymous"
"""Whatever version a request names in this component, the service chooses one by the content."""
_NOT_FOUND: Final = "NotFound", "ComponentNotFound"
_LABELS: Final = ("display_name", "description", "tags")
"""The keys of a specification that a later PUT may change."""
_HIDDEN: Final = frozenset(
    {*("_source", "compute", "experiment_name", "id", "jobs", "properties", "settings", "sourceJobId"), "source_job_id"}
)
_KEPT: Final = frozenset({"automl", "data_transfer", "spark"})
"""Types that are kept and answered although the sandbox runs none: a job with one is refused by name."""
_HIDDEN_OF_PORTS: Final = frozenset({"mode", "datastore_mode"})
_ADDED: Final[Mapping[str, Body]] = {
    "parallel": {
        "error_threshold": "-1",
        "logging_level": "INFO",
        "retry_settings": {"max_retries": "3", "timeout": "60"},
    },
    "pipeline": {"is_deterministic": "False"},
    "spark": {"is_deterministic": "True"},
}
"""By type, what the service fills in."""
_DISTRIBUTIONS: Final = {"mpi": "Mpi", "pytorch": "Pytorch", "tensorflow": "TensorFlow"}


class ComponentContainers(Containers):
    """The container of a component: a version without a number is named after the time."""

    newest_first = True

    def listed(self, context: KindContext, resource: ResourceRow) -> Body:
        """With who made and changed it, which only the list says."""
        return {**self.render(context, resource), "systemData": super().stamp(resource)}

    def stamp(self, resource: ResourceRow) -> Body:
        """Without who made and changed it."""
        return {name: at for name, at in super().stamp(resource).items() if name.endswith("At")}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """No latest version, and the time with seven digits of a second as the next one."""
        del context, resource
        now = dt.datetime.now(dt.UTC)
        return {"latestVersion": None, "nextVersion": f"{now:%Y-%m-%d-%H-%M-%S-%f}0"}

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        return Refused(404, "UserError", f"Not found component {path.name}.", inner=_NOT_FOUND)


class ComponentVersions(Versions):
    """Component versions: a command, a parallel task or a pipeline, with declared inputs and outputs."""

    type = "Microsoft.MachineLearningServices/workspaces/components/versions"
    word = "component"

    def absent(self, path: ArmPath) -> Refused:
        """Its own words."""
        return Refused(404, "UserError", f"Not found component {path.names[-2]}.", inner=_NOT_FOUND)

    def meant(self, context: KindContext, path: ArmPath) -> str:
        """The default version's own id, where it is asked for by its other name."""
        if path.name.lower() != DEFAULT_VERSION:
            return path.text
        rows = context.store.resources.under(path.parent, self.type)
        active = [row for row in rows if not is_archived(row)]
        return active[-1].id if active else path.text

    def named(self, path: ArmPath) -> Body:
        """The default version is answered under its label."""
        return {"id": f"{path.parent}/labels/default"} if path.name.lower() == DEFAULT_VERSION else {}

    def placed(self, path: ArmPath, body: Body) -> ArmPath:
        """An anonymous component lies under the hash of its content, not under the version of the request."""
        if path.names[-2].lower() != ANONYMOUS:
            return path
        spec = body["properties"].get("componentSpec") or {}
        own = spec.get("version") == path.name  # then it is the service's version that counts
        left = ("_source", "id", *(("version",) if own else ()))
        content = {name: value for name, value in spec.items() if name not in left}
        digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        name = str(uuid.UUID(digest[:32], version=4))
        if own:
            spec["version"] = name
        return replace(path, text=f"{path.parent}/versions/{name}", names=(*path.names[:-1], name))

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A new version is judged whole; of one that is registered, nothing but the labels changes."""
        _take_over(context, path, body["properties"].get("componentSpec"))
        if before is None:
            self.check_new(context, path, body["properties"])
            return
        kept, given = before.body["properties"]["componentSpec"], body["properties"].get("componentSpec") or {}
        old, new = (completed(spec, path.name) for spec in (kept, given))
        if given.get("jobs"):  # which no answer has, so that what a GET gave may come back without
            old, new = {**old, "jobs": kept.get("jobs")}, {**new, "jobs": given["jobs"]}
        names = (name for name in (*old, *new) if name not in _LABELS and old.get(name) != new.get(name))
        if (wrong := next(names, None)) is not None and given:
            message = (
                f'Failed to update component {path.names[-2]} since field "{wrong}" is immutable, try specifying a new '
                "version."
            )
            raise Refused(400, "UserError", message, inner=("BadArgument", "ArgumentInvalid", "UpdateComponentFailed"))

    def check_new(self, context: KindContext, path: ArmPath, properties: Body) -> None:
        """It has a specification; what that runs in must be there when a job is made of it."""
        where, spec = "properties.componentSpec", properties.get("componentSpec")
        if spec is None:
            raise invalid(where, "the required property 'componentSpec' of a component version is missing.")
        if not isinstance(spec, dict) or pipeline_body.kind_of(spec) not in _KEPT:
            pipeline_body.check(spec, where)
        for name, step in (spec.get("jobs") or {}).items():
            # They come first, so that no component can be a step of itself.
            if isinstance(step, dict) and isinstance(step.get("componentId"), str):
                pipeline_body.find(context.store, step["componentId"], f"{where}.jobs.{name}")

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """Its labels are taken over, those in the specification too."""
        kept = super().keep(body, before)
        old, new = kept["properties"]["componentSpec"], body["properties"].get("componentSpec") or {}
        spec = {name: value for name, value in old.items() if name not in _LABELS}
        labels = {name: new[name] for name in _LABELS if name in new}
        return {**kept, "properties": {**kept["properties"], "componentSpec": {**spec, **labels}}}

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """The version with its completed specification; the description stands in that alone."""
        shown = super().render(context, resource)
        anonymous = resource.key.split("/")[-3] == ANONYMOUS
        spec = _with_early_outputs(context, shown["properties"]["componentSpec"])
        spec = completed(spec, None if anonymous else resource.name)
        return {**shown, "properties": {**shown["properties"], "description": None, "componentSpec": spec}}


def _take_over(context: KindContext, path: ArmPath, spec: Any) -> None:
    """Gives a pipeline that is made of a job the job's steps, inputs and outputs.

    Source: test_create_pipeline_component_from_job of azure-ai-ml, 2023-05.
    """
    source = spec.get("sourceJobId") if isinstance(spec, dict) and not spec.get("jobs") else None
    if not isinstance(source, str):
        return
    workspace = "/".join(path.text.split("/")[:9])
    job = context.store.jobs.find(context.store.resources[workspace].key, source.rpartition("/")[2])
    if job is None:
        raise invalid("properties.componentSpec.sourceJobId", f"the job '{source}' was not found in the workspace.")
    given = job.properties
    ports = {side: given.get(side) or {} for side in ("inputs", "outputs")}
    spec["jobs"] = given.get("jobs") or {}
    spec["inputs"] = {name: _declared(port) for name, port in ports["inputs"].items()}
    spec["outputs"] = {
        name: {"type": port.get("jobOutputType", "uri_folder")} for name, port in ports["outputs"].items()
    }


def _declared(port: Body) -> Body:
    if port.get("jobInputType") != "literal":
        return {"type": "path"}
    value = str(port.get("value"))
    try:
        float(value)
    except ValueError:
        return {"type": "string", "default": value}
    return {"type": "number", "default": value}


def _with_early_outputs(context: KindContext, spec: Body) -> Body:
    """A pipeline whose outputs are known early where those of its steps are."""
    outputs = dict(spec.get("outputs") or {})
    for step in (spec.get("jobs") or {}).values():
        row = context.store.resources.get(str(step.get("componentId"))) if isinstance(step, dict) else None
        inner = (row.body["properties"]["componentSpec"].get("outputs") or {}) if row is not None else {}
        for port, bound in ((step.get("outputs") or {}) if inner else {}).items():
            source = pipeline_body.sole_binding(str(bound.get("value"))) if isinstance(bound, dict) else None
            if source is not None and source.name in outputs and "early_available" in inner.get(port, {}):
                outputs[source.name] = {**outputs[source.name], "early_available": inner[port]["early_available"]}
    return {**spec, "outputs": outputs} if outputs else spec


def completed(spec: Mapping[str, Any], version: str | None) -> Body:
    """A specification as the service answers it.

    Args:
        spec: As it was registered.
        version: The version that one without a version gets; None where it stays without.
    """
    kind = pipeline_body.kind_of(spec)
    shown: Body = {
        name: _text(value, name)
        for name, value in {"version": version, **_ADDED.get(kind, {}), **spec}.items()
        if name not in _HIDDEN and value is not None and value != {}
    }
    for side in ("inputs", "outputs"):
        if isinstance(shown.get(side), dict):
            lowers = (kind, side) == ("command", "outputs")  # test_pipeline_with_data of azure-ai-ml, 2023-05-30
            shown[side] = {name.lower() if lowers else name: _port(port, side) for name, port in shown[side].items()}
    for holder in (shown, shown.get("task")):
        if isinstance(holder, dict) and isinstance(holder.get("environment"), str):
            holder["environment"] = expanded(holder["environment"])
    resources = {"instance_count": "1", **shown.pop("resources", {})}
    if kind == "automl":
        shown.pop("is_deterministic", None)
    elif kind == "command":
        shown["resources"] = {name: value for name, value in resources.items() if name != "instance_type"}
    if isinstance(distribution := shown.get("distribution"), dict):
        word = str(distribution.get("type"))
        shown["distribution"] = {**distribution, "type": _DISTRIBUTIONS.get(word.lower(), word)}
    return shown


def _port(port: Any, side: str) -> Any:
    if not isinstance(port, dict):
        return port
    shown = {name: value for name, value in port.items() if name not in _HIDDEN_OF_PORTS}
    if isinstance(shown.get("default"), str):
        shown["default"] = shown["default"].removeprefix("azureml:")
    return {"optional": "False", **shown} if side == "inputs" else shown


def _text(value: Any, name: str = "") -> Any:
    """Numbers and truth values as text, at any depth; those of Spark's ``conf`` in small letters."""
    if isinstance(value, dict):
        shown = {key: _text(entry) for key, entry in value.items() if entry is not None}
        small = {key: str(entry).lower() for key, entry in value.items() if isinstance(entry, bool)}
        return {**shown, **small} if name == "conf" else shown
    if isinstance(value, list):
        return [_text(entry) for entry in value]
    return str(value) if isinstance(value, bool | int | float) else value


KINDS = (ComponentContainers("components", "a component"), ComponentVersions())
"""The kinds of this module."""
