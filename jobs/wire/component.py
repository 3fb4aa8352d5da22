"""Components as the body of a component version, and under which id that is registered."""

from __future__ import annotations

import hashlib
import json
import uuid
from typing import TYPE_CHECKING, Any

from jobs.launchers.per_process import Custom
from jobs.model.job import NO_ENVIRONMENT
from jobs.wire.command import dumped, plain, some
from jobs.wire.keys import RESOURCES
from jobs.wire.references import PREFIX, Refs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jobs.model.job import Component, Port, Resources
    from jobs.model.pipeline import PassthroughComponent
    from jobs.values import Environment

ANONYMOUS = "azureml_anonymous"
"""Name under which azure-ai-ml registers the components of a pipeline's own file.

The service answers with a version of its own choice, and not with the one of the request (azure-sdk-assets,
test_component, 2026-03-27), so that an id cannot be composed before."""
INLINE = "amlstack_inline"
"""Name under which a stack registers them: an ordinary component keeps the version that it is given."""


def component_body(component: Component, refs: Refs | None = None) -> dict[str, Any]:
    """A component of a pipeline as the body of an anonymous component version.

    Args:
        component: Its launcher is `Custom`.
        refs: Where its code and environment are; None leaves references short.
    """
    refs = refs or Refs()
    spec = some(
        name=ANONYMOUS,
        version="1",
        type="command",
        command=component.command,
        code=None if component.code is None else code_reference(refs.code_id(component.code.path)),
        environment=environment_reference(component.environment, refs),
        distribution=_distribution(component),
        display_name=component.display_name,
        description=component.description,
        is_deterministic=component.is_deterministic,
        inputs=ports(component.inputs) or None,
        outputs=ports(component.outputs) or None,
        resources=resources_file(component),
        tags=dict(component.tags) or None,
        properties=plain(component.properties) or None,
        additional_includes=list(component.additional_includes) or None,
    )
    spec |= {key: value for key, value in plain(component.extra).items() if value is not None and value != {}}
    return version_body(component, spec)


def version_body(
    component: Component | PassthroughComponent, spec: Mapping[str, Any], *, archived: bool | None = False
) -> dict[str, Any]:
    """A component version around its specification.

    Args:
        component: Of any kind.
        spec: The specification, without where it comes from.
        archived: `isArchived`; None leaves it out.
    """
    source: dict[str, Any] = {"_source": "YAML.JOB" if component.inline else "YAML.COMPONENT"}
    if component.schema_uri is not None:
        source["$schema"] = component.schema_uri
    properties = some(
        componentSpec={**spec, **source},
        description=component.description,
        isAnonymous=True,
        isArchived=archived,
        properties=plain(component.properties),
        tags=dict(component.tags),
    )
    return {"properties": properties}


def version(body: Mapping[str, Any]) -> str:
    """The version that azure-ai-ml registers an anonymous component body under: a hash of its content."""
    spec = {
        key: value
        for key, value in body["properties"]["componentSpec"].items()
        if key not in ("name", "version", "id", "_source")
    }
    return str(uuid.UUID(hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:32]))


def component_id(body: Mapping[str, Any], refs: Refs) -> str:
    """The id of what `registered_component` makes of a body in the workspace; short and anonymous without one."""
    if refs.workspace is None:
        return f"{ANONYMOUS}:{version(body)}"
    return f"{refs.workspace}/components/{INLINE}/versions/{version(body)}"


def registered_component(body: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of an anonymous component body as a version of `INLINE`."""
    properties = body["properties"]
    spec = {**properties["componentSpec"], "name": INLINE, "version": version(body)}
    return {**properties, "componentSpec": spec, "isAnonymous": False}


def resources_file(given: Resources) -> dict[str, Any] | None:
    """Resources of a component or job as a file has them; None for none."""
    values = {key.in_file: getattr(given, key.field) for key in RESOURCES}
    return some(**{key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}) or None


def code_reference(asset: str) -> str:
    """An id as a file refers to it: ``azureml:`` before it; what is no reference stays."""
    if asset.startswith(("azureml:", "git+", "http://", "https://")) or "/" not in asset:
        return asset
    return f"{PREFIX}{asset}" if asset.startswith("/subscriptions/") else asset


def environment_reference(environment: str | Environment | None, refs: Refs) -> str | None:
    """An environment as a component refers to it; one that is written inline is registered, and the refs know it."""
    if environment is None or environment == NO_ENVIRONMENT:
        return None
    written = environment if isinstance(environment, str) else None
    found = refs.environment_id(written)
    if found is None or found.startswith("azureml:"):
        return found
    return f"{PREFIX}{found}"


def _distribution(component: Component) -> dict[str, Any] | None:
    if not isinstance(component.launcher, Custom):
        message = f"the {component.launcher.type} launcher is not lowered yet"
        raise TypeError(message)
    return dumped(component.launcher.distribution)


def ports(declared: Mapping[str, Port]) -> dict[str, Any]:
    """Inputs or outputs as a component declares them."""
    return {name: _port(port) for name, port in declared.items()}


def _port(port: Port) -> dict[str, Any]:
    return some(
        type=port.type,
        description=port.description,
        optional=port.optional,
        default=_text(port, port.default),
        min=_text(port, port.min),
        max=_text(port, port.max),
        enum=None if port.enum is None else list(port.enum),
        mode=port.mode,
    )


def _text(port: Port, value: Any) -> str | None:
    """A value of a port, which is text in a component; numbers as their type writes them."""
    if value is None:
        return None
    if isinstance(value, bool) and port.type != "string":
        return str(value)
    try:
        match port.type:
            case "number":
                return str(float(value))
            case "integer":
                return str(int(value))
            case "boolean" if isinstance(value, str):
                return value.capitalize()
            case "string" if isinstance(value, int):
                return str(float(value))
            case _:
                return str(value)
    except ValueError:
        return str(value)
