"""Environments that a rehearsal reads on this machine: they lie beside the body, which names them as declared.

A build context is a folder of this machine, and what an environment of somebody's registry holds is known to its user
alone. A file in the outermost job's folder holds both, by step (empty for a job that is no pipeline).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.catalog import environments as catalogue
from amlstack.images.environments import Chosen
from amlstack.images.standins import read_reference as reference
from amlstack.sandbox.files import origins
from amlstack.sandbox.store.folders import job_folder, private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow, Store

FILE = "environments.json"
NEWEST = "1"
"""The version that the sandbox calls the newest of each curated environment: only the registry knows today's."""
_SHORT = re.compile(r"azureml:(?P<name>AzureML-[^/@:]+)(?:@latest|:(?P<version>[^/@:]+))", re.IGNORECASE)
_CURATED = re.compile(
    r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/workspaces/[^/]+"
    r"/environments/(?P<name>AzureML-[^/]+)/versions/(?P<version>[^/]+)",
    re.IGNORECASE,
)


def write(home: Path, job: str, by_step: Mapping[str, Chosen]) -> None:
    """Notes the environments of a job that is about to be submitted; none make no file.

    Args:
        home: The sandbox's home.
        job: The job's name, one that no job had before.
        by_step: The environment of each step, or of a job that is no pipeline under the empty name.
    """
    if not by_step:
        return
    data = {step: chosen.as_dict() for step, chosen in by_step.items()}
    write_whole(private(job_folder(home, job)) / FILE, json.dumps(data, indent=1) + "\n")


def environment_of(store: Store, job: JobRow) -> Chosen | None:
    """The stand-in for the environment of one job; of a trial or step as its outermost job was given it."""
    root, step = origins.outermost(store, job)
    return _read(store.home, root).get(step)


def are_given(home: Path, job: str, environment: str) -> bool:
    """True where a job that is being submitted brings what stands in for an environment, in any version of its name."""
    wanted = reference(environment).name
    given = _read(home, job).values()
    return any(each.declared.reference and reference(each.declared.reference).name == wanted for each in given)


def _read(home: Path, job: str) -> dict[str, Chosen]:
    file = job_folder(home, job) / FILE
    if not file.is_file():
        return {}
    return {step: Chosen.from_dict(data) for step, data in json.loads(file.read_text()).items()}


def curated(environment_id: str) -> str | None:
    """The curated environment behind an ARM id of a workspace's ``AzureML-NAME``, by its id in the registry."""
    found = _CURATED.fullmatch(environment_id)
    one = None if found is None else catalogue.get(found["name"]) or catalogue.retired(found["name"])
    if found is None or one is None:
        return None
    return f"azureml://registries/azureml/environments/{one.name}/versions/{found['version']}"


def expanded(reference: str) -> str:
    """A reference in which the short form of a curated environment has become the id of its version in the registry."""
    found = _SHORT.fullmatch(reference)
    if found is None:
        return reference
    return f"azureml://registries/azureml/environments/{found['name']}/versions/{found['version'] or NEWEST}"
