"""Settings that lead plain tools to the sandbox, for a shell or as code: ``amlstack sandbox env --for TOOL``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.sandbox.server.daemon import Endpoint


class Tool(StrEnum):
    """For what the variables are."""

    SHELL = "shell"
    MLCLIENT = "mlclient"
    AZ = "az"
    TERRAFORM = "terraform"
    PULUMI = "pulumi"
    NOTEBOOK = "notebook"
    STATE = "state"


def lines(endpoint: Endpoint, tool: Tool) -> Iterator[str]:
    """The lines to evaluate in a shell, or to paste into a notebook.

    Raises:
        EngineError: For a tool that runs Pulumi: no engine could be had, or it refused to create the stack.
    """
    yield from _FORMS[tool](endpoint)


def variables(endpoint: Endpoint) -> dict[str, str]:
    """The variables of a client of the sandbox, and those of an engine on its stack, which is created if need be.

    Raises:
        EngineError: No engine could be had, or it refused to create the stack.
    """
    from amlstack import engine
    from amlstack.cli import stack_files

    pulumi = engine.find()
    env = engine.environ(pulumi, endpoint.environ())
    if engine.STACK not in stack_files.state_files(stack_files.backend_of(engine.STACK)):
        engine.select(env)
    return {**endpoint.environ(), **engine.variables(pulumi)}


def for_shell(values: Mapping[str, str]) -> Iterator[str]:
    """Lines for ``eval "$(amlstack sandbox env)"``."""
    for name, value in values.items():
        yield f"export {name}={shlex.quote(value)}"


def _shell(endpoint: Endpoint) -> Iterator[str]:
    return for_shell(variables(endpoint))


def _mlclient(endpoint: Endpoint) -> Iterator[str]:
    return for_shell(endpoint.environ())


def _notebook(endpoint: Endpoint) -> Iterator[str]:
    yield "import os"
    yield f"os.environ.update({json.dumps(endpoint.environ(), indent=4)})"


def _az(endpoint: Endpoint) -> Iterator[str]:
    """A login in a folder of its own, which leaves the user's alone."""
    folder = endpoint.ca.parent / "az"
    own = {
        "AZURE_CONFIG_DIR": str(folder),
        # az would ask Microsoft's own cloud whether the sandbox is one of its sign-in services.
        "AZURE_CORE_INSTANCE_DISCOVERY": "false",
        "AZURE_CORE_COLLECT_TELEMETRY": "false",
    }
    yield from for_shell({**endpoint.environ(), **own})
    who = f"--username {endpoint.client} --tenant {endpoint.tenant}"
    token = f'--federated-token "$(cat {shlex.quote(str(endpoint.token))})"'
    yield f"az cloud set --name {shlex.quote(endpoint.cloud)} --only-show-errors &&"
    yield f"  az login --service-principal {who} {token} --only-show-errors --output none"


def _with_token(endpoint: Endpoint) -> dict[str, str]:
    """The variables of a client, and those of the providers of HashiCorp and Pulumi."""
    own = {"ARM_METADATA_HOSTNAME": endpoint.url.removeprefix("https://"), "ARM_USE_OIDC": "true"}
    return {**endpoint.environ(), **own, "ARM_OIDC_TOKEN_FILE_PATH": str(endpoint.token)}


def _terraform(endpoint: Endpoint) -> Iterator[str]:
    """Azurerm and azapi: https://registry.terraform.io/providers/hashicorp/azurerm/latest/docs (2026-11-22)."""
    # There is nothing to register in the sandbox.
    return for_shell({**_with_token(endpoint), "ARM_RESOURCE_PROVIDER_REGISTRATIONS": "none"})


def _pulumi(endpoint: Endpoint) -> Iterator[str]:
    """Any Pulumi program with the genuine azure-native 3.8 or newer; `shell` is for this project's own stack."""
    yield from for_shell(_with_token(endpoint))
    yield "# and once in each stack: pulumi config set azure-native:disableInstanceDiscovery true"


def _state(endpoint: Endpoint) -> Iterator[str]:
    """As for a shell, and azblob:// and azurekeyvault:// of any stack lead here; nothing else is reached meanwhile."""
    return for_shell({**variables(endpoint), **endpoint.azure_names()})


_FORMS: Mapping[Tool, Callable[[Endpoint], Iterator[str]]] = {
    Tool.SHELL: _shell,
    Tool.MLCLIENT: _mlclient,
    Tool.AZ: _az,
    Tool.TERRAFORM: _terraform,
    Tool.PULUMI: _pulumi,
    Tool.NOTEBOOK: _notebook,
    Tool.STATE: _state,
}
