"""References: how assets, computes and code are written in a job file, and the ARM ids they become."""

from __future__ import annotations

import re
from dataclasses import dataclass

from amlstack.catalog import environments

PREFIX = "azureml:"
_VERSIONED = re.compile(r"azureml:(?P<name>[^/:@]+)(?::(?P<version>.+)|@(?P<label>[^@]+))")
_MODELS = ("mlflow_model", "custom_model")
_CURATED = "AzureML-"


SERVERLESS = "serverless"


def is_serverless(compute: str | None) -> bool:
    """Whether a job names no cluster: nothing, or the word that Azure ML has for it."""
    return compute is None or compute.removeprefix(PREFIX).lower() == SERVERLESS


@dataclass(frozen=True, slots=True)
class Refs:
    """Where a body's references point.

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
