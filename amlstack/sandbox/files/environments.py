"""The choices of a rehearsal for its job: stand-ins of environments, and places of data and code on this machine.

The submitted body keeps its production addresses. Files in the folder of the outermost job hold the choices, by step
(empty for a job that is no pipeline); the trials of a sweep and the steps of a pipeline look there. ``inputs.json`` has
paths by input, ``outputs.json`` by output. ``given.json`` lists the steps that are not run, because this machine has
their outputs. ``code.json`` has the folders of the author's own code, of which each node runs a copy: messages name the
file that a person edits. A job that another client submitted has none of them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.files import write_whole
from amlstack.catalog import environments as catalogue
from amlstack.images.environments import Chosen
from amlstack.images.standins import read_reference as reference
from amlstack.sandbox.store.folders import job_folder, private

if TYPE_CHECKING:
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
    root, step = outermost(store, job)
    return _chosen_by_step(store.home, root).get(step)


def are_given(home: Path, job: str, environment: str) -> bool:
    """True where a job that is being submitted brings what stands in for an environment, in any version of its name."""
    wanted = reference(environment).name
    given = _chosen_by_step(home, job).values()
    return any(each.declared.reference and reference(each.declared.reference).name == wanted for each in given)


def _chosen_by_step(home: Path, job: str) -> dict[str, Chosen]:
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


INPUTS, OUTPUTS, GIVEN, CODE = "inputs.json", "outputs.json", "given.json", "code.json"
_BELOW = ".jobs."
"""Between the names of a step and of a step in it."""


def write_inputs(
    home: Path,
    job: str,
    by_step: Mapping[str, Mapping[str, Path]],
    given: Collection[str] = (),
    outputs: Mapping[str, Mapping[str, Path]] | None = None,
) -> None:
    """Notes the substitutes of a job that is about to be submitted; none make no file.

    Args:
        home: The sandbox's home.
        job: The job's name, one that no job had before.
        by_step: From step and input to an absolute path of this machine.
        given: Steps that are not run, as what others read of them is given.
        outputs: From step and output to an absolute path of this machine.
    """
    _write(home, job, GIVEN, sorted(given))
    for file, ports in ((INPUTS, by_step), (OUTPUTS, outputs or {})):
        data = {step: {name: str(path) for name, path in paths.items()} for step, paths in ports.items() if paths}
        _write(home, job, file, data)


def _write(home: Path, job: str, name: str, data: Collection[Any]) -> None:
    if data:
        write_whole(private(job_folder(home, job)) / name, json.dumps(data, indent=1) + "\n")


def inputs_of(store: Store, job: JobRow, file: str = INPUTS) -> dict[str, Path]:
    """The substitutes of one job's inputs (or `OUTPUTS`), by name; of a trial or step as its outermost job has them."""
    ports, step = _read(store, job, file)
    return {name: Path(path) for name, path in ports.get(step, {}).items()}


def is_given(store: Store, job: JobRow) -> bool:
    """True where a job is a step whose outputs this machine has, or belongs to such a step."""
    given, step = _read(store, job, GIVEN)
    return step != "" and any(f"{step}{_BELOW}".startswith(f"{one}{_BELOW}") for one in given)


def _read(store: Store, job: JobRow, name: str) -> tuple[Any, str]:
    """The content of a file of a job's outermost job, empty where there is none, and the step that the job is."""
    root, step = outermost(store, job)
    file = job_folder(store.home, root) / name
    return json.loads(file.read_text()) if file.is_file() else {}, step


def outermost(store: Store, job: JobRow) -> tuple[str, str]:
    """The outermost job that a job belongs to, and the step of it; empty where that is no pipeline.

    A step of a pipeline that is itself a step is called as in the declaration, ``outer.jobs.inner``.
    """
    line = (job.id, *store.family.above(job.id))
    steps = [
        store.family.place(each) or ""
        for each, parent in itertools.pairwise(line)
        if store.jobs[parent].properties.get("jobType") == "Pipeline"
    ]
    return line[-1], _BELOW.join(reversed(steps))


@dataclass(frozen=True, slots=True)
class CodeCopies:
    """The copies of a job's code.

    Attributes:
        job: The job's folder, in which they lie.
        roots: Where the author's files are.
    """

    job: Path
    roots: tuple[Path, ...] = ()

    def authors(self, text: str) -> str:
        """A text in which each path of a copied file is that of the author's, as seen from here where that is short."""
        if not self.roots or str(self.job) not in text:
            return text
        return re.sub(rf"{re.escape(str(self.job))}/nodes/\d+/wd/(?P<name>[^\s\"':,()]+)", self._authors, text)

    def _authors(self, found: re.Match[str]) -> str:
        for root in self.roots:
            if (file := root / found["name"]).is_file():
                here = Path.cwd()
                return str(file.relative_to(here) if file.is_relative_to(here) else file)
        return found[0]


def write_code(home: Path, job: str, by_step: Mapping[str, Sequence[Path]]) -> None:
    """Notes where the code of a job comes from; a job without code gets no file.

    Args:
        home: The sandbox's home.
        job: The job's name.
        by_step: From step to folders of this machine.
    """
    data = {step: [str(path.resolve()) for path in roots] for step, roots in by_step.items() if roots}
    _write(home, job, CODE, data)


def code_of(store: Store, job: JobRow) -> CodeCopies:
    """The copies of one job's code; of a trial or step as its outermost job was submitted."""
    folders, step = _read(store, job, CODE)
    found = folders.get(step) or folders.get("") or ()
    return CodeCopies(job_folder(store.home, job.id), tuple(Path(each) for each in dict.fromkeys(found)))
