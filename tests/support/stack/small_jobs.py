"""Jobs that are over in a moment, or run until somebody ends them; no torch. And a stack that takes them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.engine_result import Result
    from tests.support.harness import Stack

IMAGE = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu22.04"
SIZE = "Standard_ND96asr_v4"
FOREVER = "exec sleep infinity"
"""A command that only a cancel ends."""


@dataclass(frozen=True)
class Own:
    """A stack of the project, and the home of the sandbox that is this stack's alone."""

    stack: Stack
    home: Path


@dataclass
class StackLife:
    """The engine's results at each step of a stack's life."""

    home: Path
    results: dict[str, Result] = field(default_factory=dict)

    def printed(self, step: str) -> str:
        """All that was printed at a step."""
        return "\n".join(one.message for one in self.results[step].diagnostics)


def job(folder: Path, name: str, command: str, **more: Any) -> Path:
    """Writes an az ml job file of one node on the cluster ``busy``; again for an edit."""
    path = folder / f"{name}.yml"
    fields = {"name": name, "command": command, "environment": "azureml:small", "compute": "azureml:busy", **more}
    path.write_text(yaml.safe_dump(fields, sort_keys=False), "utf-8")
    return path


def settings(workspace: str) -> dict[str, Any]:
    """A stack with two clusters and an environment that is nothing but Python."""
    return {
        "amlstack:location": "westeurope",
        "amlstack:workspace": workspace,
        "amlstack:clusters": [
            {"name": "busy", "size": SIZE, "nodes": {"max": 8}},
            {"name": "spare", "size": SIZE, "nodes": {"max": 2}},
        ],
        "amlstack:environments": [{"name": "small", "image": IMAGE}],
        "amlstack:protect": "false",
    }


@contextlib.contextmanager
def store_of(home: Path) -> Iterator[Store]:
    """The sandbox's memory, for looking and for breaking things."""
    with contextlib.closing(Store(home)) as store:
        yield store


def runs(home: Path) -> dict[str, JobRow]:
    """Key → record of every job that the sandbox knows, in order of creation."""
    with store_of(home) as store:
        return {row.id: row for row in store.jobs.list()}


def run_of(home: Path, name: str) -> JobRow:
    """The one run of the job of that name."""
    (found,) = runs_of(home, name)
    return found


def runs_of(home: Path, name: str) -> list[JobRow]:
    """The runs of the job of that name, oldest first."""
    return [row for row in runs(home).values() if row.name.rpartition("-")[0] == name]


def cluster(home: Path, name: str) -> dict[str, Any]:
    """The service's record of a cluster: ``properties.properties``."""
    with store_of(home) as store:
        (found,) = (one for one in store.clusters() if one.name == name)
        body: dict[str, Any] = found.body["properties"]["properties"]
        return body


def urn_of(stack: Stack, kind: str, name: str) -> str:
    """URN of the one resource whose type ends so."""
    found = [one["urn"] for one in stack.state()["resources"] if one["type"].endswith(kind)]
    (urn,) = (urn for urn in found if urn.endswith(f"::{name}"))
    return str(urn)
