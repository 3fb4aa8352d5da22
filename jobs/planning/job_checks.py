"""Checks of one job on one target, beside the rules on sizes: names, bindings, local files, the request, machines.

Each check yields findings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.models import listed
from amlstack.base.paths import exists, is_dir, is_file, names_in
from amlstack.base.text import did_you_mean, near
from amlstack.catalog import fabric, regions
from jobs.launchers import Custom, Lowered, RayDistribution, TensorFlowDistribution
from jobs.values import Environment, Input, Scalar
from jobs.wire.command import secret_of
from policies.checks.job import check_gpus_idle, check_processes

if TYPE_CHECKING:
    from jobs.model.job import Job
    from jobs.planning.plans import Target

_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,199}"
PLACEHOLDER = re.compile(r"<[A-Za-z][^<>]*>")
"""Neither a name, an id nor a path holds angle brackets."""
_INSTEAD = {"compute": "Write the name of a cluster, or `serverless`."}


def run_name(job: Job) -> Iterator[Finding]:
    """The name, which becomes the first part of the run's id."""
    if job.name is not None and not re.fullmatch(_NAME, job.name):
        sub = re.sub("[^A-Za-z0-9_-]+", "-", job.name).strip("-_")[:200] or "job"
        yield stated("name-form", "name", Level.ERROR if job.typed else Level.WARNING, name=job.name[:60], sub=sub)


def placeholders(job: Job) -> Iterator[Finding]:
    """Text such as ``<your-cluster>``, which the author of an example left for somebody to replace."""
    fields = {"compute": job.compute, "experiment_name": job.experiment_name}
    if isinstance(job.environment, str):
        fields["environment"] = job.environment
    fields |= {f"inputs.{name}.path": value.path for name, value in job.inputs.items() if isinstance(value, Input)}
    for where, value in fields.items():
        if value and (match := PLACEHOLDER.search(value)):
            yield Finding(
                "placeholder",
                where,
                f"`{value}` is a placeholder" if match[0] == value else f"`{value}` holds the placeholder `{match[0]}`",
                "A name or path is that of something that exists",
                _INSTEAD.get(where, "Replace it."),
                Level.ERROR if job.typed else Level.WARNING,
            )


_BINDING = re.compile(r"\$\{\{\s*(?P<kind>[A-Za-z_]+)\.(?P<name>[\w.-]+?)\s*\}\}")
_OPTIONAL = re.compile(r"\$\[\[.*?\]\]|\[[\w.\s-]*\$\{\{inputs\.[\w.-]+\}\}\]", re.DOTALL)
_PORT_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
KINDS = ("inputs", "outputs", "search_space")


def bindings(job: Job) -> Iterator[Finding]:
    """Findings on names of inputs and outputs, and on bindings that bind nothing."""
    yield from _port_names("inputs", job.inputs)
    yield from _port_names("outputs", job.outputs)
    seen: set[tuple[str, str]] = set()
    unknown: dict[str, list[re.Match[str]]] = {}
    required = _OPTIONAL.sub("", job.command)
    for match in _BINDING.finditer(required):
        kind, name = match["kind"], match["name"]
        if (kind, name) in seen:
            continue
        seen.add((kind, name))
        if kind not in KINDS:
            if close := near(kind, KINDS, 1):
                yield stated("binding-unknown/bindings", "command", match=match[0], close=close[0], name=name)
            continue
        if kind == "search_space":
            continue  # a sweep fills it in
        known = job.inputs if kind == "inputs" else job.outputs
        if name in known or name.split(".")[0] in {*known, *map(_bindable, known)}:
            continue  # a name that cannot be bound has its finding already
        if not known:
            unknown.setdefault(kind, []).append(match)
        else:
            yield Finding(
                f"{kind[:-1]}-undefined",
                "command",
                f"The command binds `{match[0]}`, and the job has no {kind[:-1]} `{name}`",
                f"Every binding names one of the job's {kind}",
                did_you_mean(name, known, otherwise=f"Add `{name}` under `{kind}`."),
            )
    for kind, matches in unknown.items():
        shown = ", ".join(f"`{match[0]}`" for match in matches[:5]) + (", …" if len(matches) > 5 else "")
        names = ", ".join(f"`{match['name'].split('.')[0]}`" for match in matches)
        code = f"{kind[:-1]}-undefined"
        rule = f"Every binding names one of the job's {kind}"
        remedy = f"Add {names} under `{kind}`."
        yield Finding(code, "command", f"The command binds {shown}, and the job has no {kind}", rule, remedy)


def _port_names(kind: str, names: Iterable[str]) -> Iterator[Finding]:
    for name in names:
        if not re.fullmatch(_PORT_NAME, name):
            yield stated("binding-name/port-names", f"{kind}.{name}", name=name, bindable=_bindable(name) or "data")


def _bindable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", name).lstrip("0123456789")


def _include(name: str, path: Path, folder: Path) -> Iterator[Finding]:
    """One file or folder that goes along with the code."""
    where = "additional_includes"
    if not exists(path) and not (path.suffix == ".zip" and is_dir(path.with_suffix(""))):
        yield _missing("include-missing", where, name, path, "What is included is copied beside the code")
    inside = folder / path.resolve().name
    if exists(inside) and inside.resolve() != path.resolve():
        rule = "What is included stands in the code folder under its own name"
        yield Finding("include-twice", where, f"The code has `{inside.name}` already", rule, f"Rename `{name}`.")


def local_files(job: Job, base: Path) -> Iterator[Finding]:
    """Folders and files that the job names on this machine."""
    if job.code is not None and job.code.local:
        code = job.code.path
        if not exists(base / code):
            yield _missing("code-missing", "code", code, base / code, "The code folder is copied to every node")
        for name in job.code.includes:
            yield from _include(name, base / name, base / code)
        for field, name in job.launcher.code_files():
            if is_dir(base / code) and not is_file(base / code / name):
                rule = "The launcher's file lies in the code folder"
                yield _missing("launcher-file-missing", field, name, base / code / name, rule)
    match job.environment:
        case Environment(build=build) if build is not None and "://" not in build.path:
            if not is_dir(base / build.path):
                yield _missing(
                    "build-missing",
                    "environment.build.path",
                    build.path,
                    base / build.path,
                    "A build context is a folder with a Dockerfile",
                )
        case Environment(conda_file=str() as conda) if not is_file(base / conda):
            yield _missing(
                "conda-missing",
                "environment.conda_file",
                conda,
                base / conda,
                "A conda file is read when the job is planned",
            )
        case _:
            pass
    yield from missing_inputs(job.inputs, base, typed=job.typed)
    for name, value in job.inputs.items():
        if isinstance(value, str) and value.startswith("azureml:"):
            yield stated("input-is-text", f"inputs.{name}", Level.WARNING, name=name, value=value)


def missing_inputs(
    inputs: Mapping[str, Input | Scalar], base: Path, where: str = "inputs", *, typed: bool = False
) -> Iterator[Finding]:
    """Local data that is not there; a warning where another program may make it before azure-ai-ml uploads it."""
    for name, value in inputs.items():
        if isinstance(value, Input) and value.path and local_path(value.path):
            path = base / value.path.removeprefix("file:")
            if not exists(path):
                rule = "Local data is uploaded when the job is submitted, and read in place by a rehearsal"
                found = _missing("input-path-missing", f"{where}.{name}.path", value.path, path, rule)
                yield found if typed else replace(found, level=Level.WARNING)


def local_path(path: str) -> bool:
    """True where an input's path lies on this machine."""
    if path.startswith("file:") or os.path.isabs(path):  # noqa: PTH117 - a string of the declaration, not a path yet
        return True
    return ":" not in path and "@" not in path and "${{" not in path


def _missing(code: str, where: str, written: str, path: Path, rule: str) -> Finding:
    parent = path.parent
    names = names_in(parent)
    remedy = did_you_mean(path.name, names, otherwise=f"Create {path}.") if names else f"Create {path}."
    return Finding(code, where, f"`{written}` is not there", rule, remedy)


def variables(job: Job) -> Iterator[Finding]:
    """Variables that the launcher sets itself, and such as are no text."""
    reserved = job.launcher.reserved
    for name, value in job.environment_variables.items():
        where = f"environment_variables.{name}"
        if name in reserved:
            yield stated("variable-reserved", where, Level.ERROR if job.typed else Level.WARNING, name=name)
        if isinstance(value, str) and (bound := _BINDING.search(value)) and bound["kind"] in {"inputs", "outputs"}:
            yield stated("variable-binding", where, Level.WARNING, name=name, bound=bound[0], value=value)
        if isinstance(value, (dict, list)) and secret_of(value) is None:
            seen = f"`{name}` is a {'mapping' if isinstance(value, dict) else 'list'}"
            rule = "A variable is text, or `{secret: NAME}` for a secret of the stack"
            yield Finding("variable-not-text", where, seen, rule, "Write it as one string.", Level.WARNING)


_LATEST = re.compile(r"(?P<name>(?:azureml:|.*/versions/).*?)(?::@?|(?<=/versions)/@?|:[\w.-]+@)latest", re.IGNORECASE)


def versions(job: Job) -> Iterator[Finding]:
    """References whose version is the word of a label."""
    fields: dict[str, Any] = {"environment": job.environment}
    fields |= {f"inputs.{name}.path": value.path for name, value in job.inputs.items() if isinstance(value, Input)}
    for where, value in fields.items():
        if isinstance(value, str) and (found := _LATEST.fullmatch(value)):
            name = found["name"]
            right = f"{name.removesuffix('/versions')}/labels/latest" if "/versions" in name else f"{name}@latest"
            yield stated("version-is-a-label", where, Level.WARNING, value=value, right=right)


def lost(where: str, seen: str, rule: str, remedy: str) -> Finding:
    """A warning of a value that Azure ML is not sent."""
    return Finding("lost-in-rendering", where, seen, rule, remedy, Level.WARNING)


_NEEDS = {
    "ssh": ("ssh_public_keys", "Only whoever holds the key's other half is let in"),
    "tensor_board": ("log_dir", "TensorBoard shows the event files of a folder"),
}
"""The field that a service needs besides its type, and why (how-to-interactive-jobs of Azure's docs)."""


def services(job: Job, lowered: Lowered, nodes: int) -> Iterator[Finding]:
    """Warnings on interactive services that nobody could use."""
    kind = lowered.distribution.type if lowered.distribution else None
    if nodes > 1 and kind not in {"pytorch", "tensorflow", "mpi"}:  # its prerequisites, 2026-06-29
        for name in (name for name, service in (job.services or {}).items() if service.type):
            seen = f"The service `{name}` is asked for on {nodes} nodes, and the distribution is {kind or 'none'}"
            rule = "On several nodes Azure ML starts services with the distributions PyTorch, TensorFlow and MPI alone"
            remedy = "Write such a distribution, or one node."
            yield Finding("service-distribution", f"services.{name}", seen, rule, remedy, Level.WARNING)
    for name, service in (job.services or {}).items():
        field, rule = _NEEDS.get(service.type or "", ("", ""))
        if field and not getattr(service, field) and not service.properties:
            seen, remedy = f"The service `{name}` has no `{field}`", f"Write {field}."
            yield Finding("service-incomplete", f"services.{name}.{field}", seen, rule, remedy, Level.WARNING)


def losses(job: Job) -> Iterator[Finding]:
    """Findings on values that the wire form cannot hold."""
    if isinstance(job.docker_args, tuple) and job.docker_args:
        for name in ("locations", "max_instance_count"):
            if getattr(job, name) is not None:
                seen = f"`{name}` is not sent beside a list of docker_args"
                rule = "Azure ML's form with a list of arguments has no place for it"
                yield lost(name, seen, rule, "Write docker_args as one string.")
    for name, value in job.inputs.items():
        for key in _unsent(value):
            rule = "The request of a command job has no place for it"
            yield lost(f"inputs.{name}.{key}", f"`{key}` is not sent", rule, "Leave it out.")
    if isinstance(job.launcher, Custom) and isinstance(job.launcher.distribution, RayDistribution):
        yield stated("ray-experimental", "launcher", Level.INFO)


def _unsent(value: Input | Scalar) -> Iterator[str]:
    if isinstance(value, Input):
        if value.path_on_compute is not None:
            yield "path_on_compute"
        if value.datastore is not None and not local_path(value.path or ""):
            yield "datastore"


def node_count(job: Job, count: int, target: Target) -> Iterator[Finding]:
    """The number of nodes against what the target gives."""
    where = "nodes"
    if target.max_nodes is not None and count > target.max_nodes:
        yield stated("nodes-beyond-cluster", where, count=count, target=target)
    if job.compute is None and job.instance_type is None and target.size is None and job.typed:
        yield stated("target-unknown", "compute", Level.WARNING)


def fabric_blocks(job: Job, collectives: str, target: Target) -> Iterator[Finding]:
    """Findings on blocks that a job asks for and that would not be added."""
    size, asked = target.facts, f"The job asks for {listed(job.fabric)}"
    if not job.fabric:
        return
    remedy = "Leave `fabric` out."
    if job.enrich is False:
        seen, rule = f"{asked} and says `enrich=False`", "Blocks of the fabric are variables that are added to a job"
        remedy = "Leave one of the two out."
    elif size is not None and collectives != "nccl":
        seen = f"{asked}, and {collectives} carries its collectives on {size.name}"
        rule = "These blocks are settings of NCCL"
    elif size is not None and (missing := [block for block in job.fabric if block not in fabric.blocks(size)]):
        seen, rule = (
            f"There is no block {listed(missing)} for {size.name}",
            "A block has what Azure publishes for the size",
        )
        if known := listed(fabric.blocks(size)):
            remedy = f"Of that size there is {known}; leave the rest out."
    else:
        return
    yield Finding("fabric-block", "fabric", seen, rule, remedy)


def ranks_per_node(job: Job, lowered: Lowered, count: int, target: Target) -> Iterator[Finding]:
    """Ranks against the GPUs of a node, where a launcher starts them inside one process of Azure ML.

    What Azure ML starts itself stands in the body, where the rules see it.
    """
    ranks, started = lowered.processes_per_node, getattr(lowered.distribution, "process_count_per_instance", None)
    if ranks is not None and ranks != started and (size := target.facts):
        if (found := check_processes(ranks, size, nodes=count)) is not None:
            yield found
        idle = check_gpus_idle(ranks, size, job.environment_variables, where="launcher")
        if idle is not None and not isinstance(lowered.distribution, TensorFlowDistribution):  # its worker takes all
            yield replace(idle, level=Level.WARNING)


def locations(job: Job) -> Iterator[Finding]:
    """Regions of a serverless job that do not exist."""
    for name in job.locations or ():
        if (found := regions.finding(name, "locations")) is not None:
            yield replace(found, level=found.level if job.typed else Level.WARNING)
