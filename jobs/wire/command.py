"""The one renderer: a job as the body that Azure's REST API (2025-12-01) takes, with the references in it.

The form, with its oddities, is that of azure-ai-ml given the same job: literals as text, empty maps kept, a TensorFlow
distribution always with its parameter servers. Code, environment, compute and data are referred to by their ids,
secrets by their names: a variable may hold a secret of the stack (``WANDB_API_KEY: {secret: NAME}``), and a job holds
the name alone, in its declaration, its plan and whatever is shown of it. Whoever registers the rendered body puts in
the value: the stack from its encrypted settings, a rehearsal from this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.base import text
from amlstack.base.text import camel
from amlstack.catalog import environments
from jobs.launchers import Custom, Distribution
from jobs.values import EXPRESSION, Environment, Identity, Input, Model, Output, Scalar, Service
from jobs.wire.keys import JOB, RESOURCES

if TYPE_CHECKING:
    from jobs.model.job import Job, Resources

PREFIX = "azureml:"
_VERSIONED = re.compile(r"azureml:(?P<name>[^/:@]+)(?::(?P<version>.+)|@(?P<label>[^@]+))")
_MODELS = ("mlflow_model", "custom_model")
_CURATED = "AzureML-"


SERVERLESS = "serverless"


def is_serverless(compute: str | None) -> bool:
    """True where a job names no cluster: nothing, or the word that Azure ML has for it."""
    return compute is None or compute.removeprefix(PREFIX).lower() == SERVERLESS


class Refs(NamedTuple):
    """The targets of a body's references.

    Attributes:
        workspace: ARM id of the workspace; None leaves references short, as azure-ai-ml has them before it asks the
            workspace.
        code: ARM id of the uploaded code; None: as written.
        environment: Id of the registered or pinned environment; None: as written.
    """

    workspace: str | None = None
    code: str | None = None
    environment: str | None = None

    def compute_id(self, compute: str) -> str:
        """A cluster's id; ``azureml:gpu``, ``gpu`` and an ARM id are all taken."""
        name = compute.removeprefix(PREFIX)
        return name if self.workspace is None or "/" in name else f"{self.workspace}/computes/{name}"

    def code_id(self, path: str) -> str:
        """The id of code: what was uploaded, or what the job names."""
        if self.code is not None:
            return self.code
        return self._versioned(path, "codes")

    def environment_id(self, name: str | None) -> str | None:
        """The id of an environment; None for an inline one that is not registered yet."""
        if self.environment is not None or name is None:
            return self.environment
        if not name.startswith(PREFIX):
            curated = environments.get(name)
            return curated.label_id() if curated else name
        if self.workspace is not None and name.startswith(PREFIX + _CURATED):
            return name  # the service expands the short form of curated environments itself
        if not _VERSIONED.fullmatch(name) and not name.startswith("azureml://"):
            return name.removeprefix(PREFIX)
        return self._versioned(name, "environments")

    def data_uri(self, path: str, asset_type: str) -> str:
        """The uri of an input."""
        return self._versioned(path, "models" if asset_type in _MODELS else "data")

    def _versioned(self, text: str, kind: str) -> str:
        if text.startswith("azureml:/") and not text.startswith("azureml://"):
            return text.removeprefix(PREFIX)
        match = _VERSIONED.fullmatch(text)
        if match is None:
            return text
        if self.workspace is None:
            return text.removeprefix(PREFIX)
        if match["label"]:
            return text  # only the workspace knows which version a label means
        return f"{self.workspace}/{kind}/{match['name']}/versions/{match['version']}"


def conda_text(environment: Environment, base: Path) -> str | None:
    """The conda specification as text with sorted keys, so that the same content has the same hash.

    Args:
        environment: The environment.
        base: Folder that its conda file's path starts from.

    Raises:
        OSError: If the file cannot be read; `jobs.plan` says so before.
    """
    import yaml  # noqa: PLC0415 - few jobs have a conda file, and yaml is a tenth of the time to import jobs

    conda = environment.conda_file
    if isinstance(conda, str):
        conda = yaml.safe_load((base / conda).read_text(encoding="utf-8-sig"))
    return None if not conda else str(yaml.dump(conda, sort_keys=True, default_flow_style=False))


def environment_properties(environment: Environment, base: Path, *, context_uri: str | None = None) -> dict[str, Any]:
    """Properties of the environment version that an inline environment becomes.

    Args:
        environment: The environment.
        base: Folder that its paths start from.
        context_uri: Where its build context was uploaded; None leaves the path as written.
    """
    build = environment.build
    properties = {
        "condaFile": conda_text(environment, base),
        "image": environment.image,
        "build": None
        if build is None
        else {
            key: value
            for key, value in (("contextUri", context_uri or build.path), ("dockerfilePath", build.dockerfile_path))
            if value is not None
        },
        "osType": environment.os_type,
        "tags": environment.tags or None,
        "description": environment.description or None,
        "properties": environment.properties or None,
        "inferenceConfig": _routes(environment.inference_config),
        "isAnonymous": True,
        "isArchived": False,
    }
    return {key: value for key, value in properties.items() if value is not None}


def _routes(config: dict[str, Any] | None) -> dict[str, Any] | None:
    if not config:
        return None
    names = {"liveness_route": "livenessRoute", "scoring_route": "scoringRoute", "readiness_route": "readinessRoute"}
    return {names.get(key, key): value for key, value in config.items()}


HOLDERS: Final = frozenset({"environmentVariables", "environment_variables"})
"""The keys that hold variables, on the wire and in the steps of a pipeline."""


def secret_of(value: Any) -> str | None:
    """The name of the secret that a variable is to hold; None for a variable with a value of its own."""
    named = isinstance(value, dict) and value.keys() == {"secret"} and isinstance(value["secret"], str)
    return value["secret"] if named else None


def secrets_in(body: Any) -> Iterator[tuple[str, str]]:
    """Each variable in a body that holds a secret, with the name of that."""
    if isinstance(body, dict):
        for key, inner in body.items():
            if key in HOLDERS and isinstance(inner, dict):
                yield from ((variable, name) for variable, value in inner.items() if (name := secret_of(value)))
            else:
                yield from secrets_in(inner)
    elif isinstance(body, list):
        for inner in body:
            yield from secrets_in(inner)


def with_secrets(body: Any, values: Mapping[str, Any]) -> Any:
    """A body with the secrets' values; it is the same object where it names none.

    Args:
        body: As it is rendered.
        values: Secret → its value, or what stands for it.

    Raises:
        KeyError: There is no such secret.
    """
    return _with_secrets(body, values) if any(True for _ in secrets_in(body)) else body


def _with_secrets(body: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(body, dict):
        return {
            key: {
                variable: value if (name := secret_of(value)) is None else values[name]
                for variable, value in inner.items()
            }
            if key in HOLDERS and isinstance(inner, dict)
            else _with_secrets(inner, values)
            for key, inner in body.items()
        }
    return [_with_secrets(inner, values) for inner in body] if isinstance(body, list) else body


INPUT_MODES = {
    "mount": "ReadOnlyMount",
    "ro_mount": "ReadOnlyMount",
    "rw_mount": "ReadWriteMount",
    "download": "Download",
    "direct": "Direct",
    "eval_mount": "EvalMount",
    "eval_download": "EvalDownload",
}
OUTPUT_MODES = {"mount": "ReadWriteMount", "rw_mount": "ReadWriteMount", "upload": "Upload", "direct": "Direct"}
SERVICES = {"ssh": "SSH", "jupyter_lab": "JupyterLab", "tensor_board": "TensorBoard", "vs_code": "VSCode"}
IDENTITIES = {"managed": "Managed", "user_identity": "UserIdentity", "aml_token": "AMLToken"}
DISTRIBUTIONS = {"pytorch": "PyTorch", "mpi": "Mpi", "tensorflow": "TensorFlow", "ray": "Ray"}
TIERS = {tier: tier.capitalize() for tier in ("null", "spot", "basic", "standard", "premium")}
PRIORITIES = {"low": 1, "medium": 2, "high": 3}
RESOURCE_PROPERTIES = {
    "aisupercomputer": "AISuperComputer",
    "singularity": "AISuperComputer",
    "itp": "itp",
    "target_selector": "target_selector",
}
LOCAL = "local"
_OLD_BINDING = re.compile(r"(?<!\{)\{(inputs|outputs|search_space)\.([^}]*)\}(?!\})")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A declaration in the form of Azure's REST API.

    Attributes:
        body: ``{"properties": …}`` of the job or schedule.
        components: By step (`train`, `outer.jobs.train`) the bodies of the component versions that have to be
            registered before; an inner one comes before the pipeline component that names it.
    """

    body: dict[str, Any]
    components: dict[str, dict[str, Any]] = field(default_factory=dict)


def body(job: Job, refs: Refs | None = None) -> dict[str, Any]:
    """Render a job whose launcher is lowered already (`Plan.enriched`).

    Args:
        job: The job; its launcher is `Custom`.
        refs: What the references in it point to; None leaves them short.

    Returns:
        ``{"properties": …}``.

    Raises:
        TypeError: If the launcher is a typed one: `jobs.plan` lowers it.
    """
    refs = refs or Refs()
    if not isinstance(job.launcher, Custom):
        raise TypeError(f"the {job.launcher.type} launcher is not lowered yet: render Plan.enriched")
    values = {name: send(job, refs) for name, send in _OF_JOB}
    values["resources"] = resources(job, local=is_local(job.compute))
    return {"properties": some(jobType="Command", isArchived=False, **values)}


def _compute(compute: str | None, refs: Refs) -> str | None:
    """The id of a cluster. A job without one is serverless, which the guide documents.

    For the word `serverless`, azure-ai-ml sends the id of a compute of that name; how Azure reads it is unknown.
    """
    if not compute or is_local(compute) or (refs.workspace is not None and is_serverless(compute)):
        return None
    return refs.compute_id(compute)


def is_local(compute: str | None) -> bool:
    """True where a compute is the machine of the user who submits the job."""
    return compute is not None and compute.lower() == LOCAL


def some(**values: Any) -> dict[str, Any]:
    """Those that have a value: the wire leaves the others out."""
    return {key: value for key, value in values.items() if value is not None}


def input_body(value: Input | Scalar, refs: Refs) -> dict[str, Any]:
    """One input."""
    if not isinstance(value, Input):
        return {"jobInputType": "literal", "value": str(value)}
    if value.path is not None and EXPRESSION.search(value.path):
        return {"jobInputType": "literal", "value": value.path}
    uri = None if value.path is None else refs.data_uri(value.path, value.type)
    return some(jobInputType=value.type, uri=uri, mode=INPUT_MODES[value.mode] if value.mode else None)


def output_body(value: Output) -> dict[str, Any]:
    """One output."""
    return some(
        jobOutputType=value.type,
        uri=value.path,
        mode=OUTPUT_MODES[value.mode] if value.mode else None,
        assetName=value.name,
        assetVersion=value.version,
        description=value.description,
    )


def block(value: Model | None, words: Mapping[str, Mapping[str, Any]], **more: Any) -> dict[str, Any] | None:
    """A part of a job in the spelling of the wire, its words exchanged; None for none."""
    if value is None:
        return None
    fields = ((name, on_wire, getattr(value, name)) for name, on_wire in _spelled(type(value)))
    return some(**more, **{key: words[name].get(each) if name in words else each for name, key, each in fields})


@cache
def _spelled(kind: type[Model]) -> tuple[tuple[str, str], ...]:
    """The fields of a part in both spellings."""
    return tuple((name, camel(name)) for name in kind.model_fields if name != "type")


def dumped(value: Model | None) -> dict[str, Any] | None:
    """A part of a job in the spelling of files, without what is unset; None for none."""
    return None if value is None else value.model_dump(exclude_none=True)


def _distribution(value: Distribution | None) -> dict[str, Any] | None:
    return block(value, {}, distributionType=value and DISTRIBUTIONS[value.type])


def resources(given: Resources, *, local: bool = False) -> dict[str, Any] | None:
    """The resources of a job, or of whatever has its fields for them; None when it names none."""
    values = {name: getattr(given, field) for name, field in _OF_RESOURCES}
    if not local and all(value is None for value in values.values()):
        return None
    properties = {
        RESOURCE_PROPERTIES.get(key.lower(), key): value
        for key, value in without_nulls(given.resource_properties or {}).items()
    }
    if local:
        properties["IsLocal"] = {"IsLocal": True}
    values["properties"] = properties
    if isinstance(given.docker_args, tuple) and given.docker_args:
        # With a list of arguments azure-ai-ml sends neither locations nor the bound; jobs.plan says so.
        values |= {
            "dockerArgsList": values["dockerArgs"],
            "dockerArgs": None,
            "locations": None,
            "maxInstanceCount": None,
        }
    return some(**{key: list(value) if isinstance(value, tuple) else value for key, value in values.items()})


def without_nulls(value: dict[str, Any]) -> dict[str, Any]:
    """A mapping without what is null, all the way down."""
    return {
        key: without_nulls(inner) if isinstance(inner, dict) else plain(inner)
        for key, inner in value.items()
        if inner is not None
    }


def identity_body(value: Identity | None) -> dict[str, Any] | None:
    """The identity."""
    return block(value, {}, identityType=value and IDENTITIES[value.type])


def services_body(services: Mapping[str, Service] | None) -> dict[str, Any] | None:
    """The services by name."""
    return None if services is None else {name: service_body(value) for name, value in services.items()}


def service_body(value: Service) -> dict[str, Any]:
    """One service."""
    properties = dict(value.properties) if value.properties is not None else None
    for key, more in (("sshPublicKeys", value.ssh_public_keys), ("logDir", value.log_dir)):
        if more:  # azure-ai-ml leaves an empty one out
            properties = {**(properties or {}), key: more}
    return some(
        jobServiceType=SERVICES[value.type] if value.type else None,
        nodes={"nodesValueType": "All"} if value.nodes else None,
        port=value.port,
        endpoint=value.endpoint,
        properties=properties,
    )


def plain(value: Any) -> Any:
    """A YAML value as JSON has it: dates as text, mappings and lists all the way down."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def duration(seconds: int | None) -> str | None:
    """Seconds as an ISO-8601 duration, ``PT15M``; None for none."""
    return text.iso(seconds) if seconds else None


_SENT: Mapping[str, Callable[[Job, Refs], Any]] = {
    "command": lambda job, _: _OLD_BINDING.sub(r"${{\1.\2}}", job.command),
    "environment": lambda job, refs: refs.environment_id(job.environment if isinstance(job.environment, str) else None),
    "code": lambda job, refs: refs.code_id(job.code.path) if job.code else None,
    "compute": lambda job, refs: _compute(job.compute, refs),
    "display_name": lambda job, _: job.display_name or None,
    "experiment_name": lambda job, _: job.experiment_name or None,
    "inputs": lambda job, refs: {name: input_body(value, refs) for name, value in job.inputs.items()},
    "outputs": lambda job, _: {name: output_body(value) for name, value in job.outputs.items()},
    "environment_variables": lambda job, _: plain(job.environment_variables),
    "launcher": lambda job, _: _distribution(getattr(job.launcher, "distribution", None)),
    "limits": lambda job, _: job.limits and some(jobLimitsType="Command", timeout=duration(job.limits.timeout)),
    "queue_settings": lambda job, _: block(job.queue_settings, {"job_tier": TIERS, "priority": PRIORITIES}),
    "identity": lambda job, _: identity_body(job.identity),
    "services": lambda job, _: services_body(job.services),
    "tags": lambda job, _: dict(job.tags),
    "properties": lambda job, _: {
        key: value for key, value in job.properties.items() if key != "_azureml.ComputeTargetType"
    },
}
"""Field to its value on the wire; a field that is sent unchanged needs no entry."""


def _unchanged(field: str) -> Callable[[Job, Refs], Any]:
    return lambda job, _: getattr(job, field)


# Thousands of jobs are rendered by these: what they look up is looked up once.
_OF_JOB = tuple(
    (key.wire, _SENT.get(key.field) or _unchanged(key.field)) for key in JOB if key.wire and key not in RESOURCES
)
_OF_RESOURCES = tuple((key.on_wire, key.field) for key in RESOURCES)
