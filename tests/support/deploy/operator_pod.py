"""The operator's workspace pod on this machine: its folders, its variables, and what it types.

Source: pulumi/pulumi-kubernetes-operator v2.9.0 (2026-07-29), agent/pkg/server/server.go (options of each command) and
operator/internal/controller/auto/workspace_controller.go (folders, init containers, variables), read 2026-11-22; flags
of these options: the Automation API of pulumi 3.259, sdk/go/auto/stack.go.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.harness import Stack

FILES = PROJECT / "deploy" / "kubernetes"
AGENT = ("--exec-agent=pulumi-kubernetes-operator/2.9.0", "--exec-kind=auto.local")
UP = ("--diff", "--suppress-progress", "--refresh", *AGENT)
"""Beside --yes, --skip-preview and --stack, for a Stack with `refresh: true`."""
PACK = ("amlstack", "infra", "jobs", "policies")
"""Packages that the image has and the pack needs."""


def documents(file: str) -> list[dict[str, Any]]:
    """The objects of a manifest."""
    return [one for one in yaml.safe_load_all((FILES / file).read_text("utf-8")) if one]


def stack_object() -> dict[str, Any]:
    """The Stack."""
    (found,) = (one for one in documents("stack.yaml") if one["kind"] == "Stack")
    return found


def put_into_pod(stack: Stack, root: Path) -> None:
    """Lays out a pod around a stack of the project, and gives its commands the variables of the manifest.

    The image's ``/opt/amlstack`` is a copy of the pack below ``root``; ``/share/source`` is the stack's folder.
    """
    image = root / "opt" / "amlstack"
    image.mkdir(parents=True)
    for name in PACK:
        shutil.copytree(PROJECT / name, image / name, ignore=shutil.ignore_patterns("__pycache__"))
    (image / ".venv").symlink_to(PROJECT / ".venv")
    (stack.folder / ".venv").symlink_to(image / ".venv")
    places = {"/opt/amlstack": str(image), "/share/source": str(stack.folder)}
    for variable in stack_object()["spec"]["workspaceTemplate"]["spec"]["env"]:
        name, value = variable["name"], variable["value"]
        for inside, here in places.items():
            value = value.replace(inside, here)
        if not name.startswith("ARM_"):  # ids of a real account; the sandbox has its own
            stack.env[name] = value
    del stack.env["PULUMI_PYTHON_CMD"]
    stack.env |= {"POD_NAMESPACE": "aml", "POD_SA_NAME": "aml-prod", "PULUMI_ENV": "/share/.env"}
