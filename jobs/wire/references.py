"""References of a body: code, environment, compute and data by their ids, and secrets by their names.

A variable may hold a secret of the stack: ``WANDB_API_KEY: {secret: NAME}``. A job holds the name alone, in its
declaration, its plan and whatever is shown of it. Whoever registers the rendered body puts in the value: the stack from
its encrypted settings, a rehearsal from this machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.catalog import environments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from jobs.values import Environment

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
