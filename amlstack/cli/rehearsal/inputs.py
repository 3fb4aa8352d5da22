"""The inputs and outputs of a job file: by which name an option gives them, and where they lie on this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from amlstack.base import paths
from amlstack.base.findings import Finding, stated
from amlstack.base.paths import exists, is_dir, is_file
from amlstack.base.text import did_you_mean, near
from amlstack.cli.rehearsal import fetching, mapping_file
from amlstack.cli.workspace.workspace_place import REHEARSAL
from infra.names import Names
from jobs.model.job import NotGiven

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.targets import Targets
    from amlstack.images.environments import Chosen
    from amlstack.sandbox.files.storage import Storage

GROUP = REHEARSAL
"""The resource group and the workspace in which jobs are rehearsed."""
BELOW = ".jobs."
"""Between the names of a step and of a step in it."""
_BOUND = re.compile(r"\$\{\{\s*parent\.(?:in|out)puts\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")
_WRITTEN = re.compile(r"\$\{\{\s*parent\.jobs\.(?P<step>[^}\s.]+)\.outputs\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")


@dataclass(frozen=True, slots=True)
class DeclaredPort:
    """An input or output of a job, a pipeline or a step.

    Attributes:
        step: The step's name; empty for a job or the pipeline itself.
        name: Its name.
        value: As it is declared: data, or a value.
        side: ``inputs`` or ``outputs``.
    """

    step: str
    name: str
    value: jobs.Input | jobs.Output | object
    side: str = "inputs"

    @property
    def label(self) -> str:
        """Its name in ``--input`` and ``--output``: ``NAME`` or ``STEP.NAME``."""
        return f"{self.step}.{self.name}" if self.step else self.name

    @property
    def around(self) -> str:
        """The step whose pipeline this is a step of; empty for the outermost one."""
        return self.step.rpartition(BELOW)[0]

    @property
    def where(self) -> str:
        """Its place in the declaration."""
        steps = "".join(f"jobs.{step}." for step in self.step.split(BELOW)) if self.step else ""
        return f"{steps}{self.side}.{self.name}.path"

    @property
    def path(self) -> str:
        """The declared path of its data; empty for a value and for data that are given elsewhere."""
        return str(getattr(self.value, "path", None) or "")

    @property
    def bound(self) -> str:
        """The pipeline's input, or output, that it is; empty for none."""
        text = self.path or self.value
        found = _BOUND.fullmatch(text.strip()) if isinstance(text, str) else None
        return found["name"] if found else ""

    @property
    def written(self) -> str:
        """The output of a step of the same pipeline that it is, ``STEP.OUTPUT``; empty for none."""
        text = self.path or self.value
        found = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            return ""
        outer = f"{self.around}{BELOW}" if self.around else ""
        return f"{outer}{found['step']}.{found['name']}"

    @property
    def kind(self) -> str:
        """The type of its data, such as ``uri_folder``; empty for a value."""
        return str(getattr(self.value, "type", ""))

    @property
    def is_file(self) -> bool:
        """True where its data are one file."""
        return self.kind == "uri_file"

    @property
    def is_data(self) -> bool:
        """True where it is data, or bound to some; else it is a value."""
        return hasattr(self.value, "path") or bool(self.bound) or "${{" in str(self.value)


def within(step: str, steps: Collection[str]) -> bool:
    """True where a step is one of some steps, or a step in one of them."""
    return any(f"{step}{BELOW}".startswith(f"{each}{BELOW}") for each in steps)


def declared(plan: jobs.Planned, side: str = "inputs") -> Iterator[DeclaredPort]:
    """The inputs, or ``outputs``, of a job, of a sweep's trial, or of a pipeline and its steps."""
    import jobs

    if isinstance(plan, jobs.PipelinePlan):
        for name, value in getattr(plan.job, side).items():
            yield DeclaredPort("", name, value, side)
        yield from _of_pipelines(plan.job.jobs, "", side)
    for place, part in plan.parts.items():
        for name, value in getattr(part.job, side).items():
            yield DeclaredPort(plan.step(place), name, value, side)


def _of_pipelines(steps: Mapping[str, Any], above: str, side: str) -> Iterator[DeclaredPort]:
    """Yield the inputs or outputs of steps that are pipelines: a plan's parts are the commands in them."""
    for name, step in steps.items():
        if step.steps:
            for port, value in getattr(step, side).items():
                yield DeclaredPort(f"{above}{name}", port, value, side)
            yield from _of_pipelines(step.steps, f"{above}{name}{BELOW}", side)


OPTION = "--input"


def given_steps(
    inputs: Sequence[DeclaredPort], chosen: Mapping[str, Path], job: Path
) -> tuple[frozenset[str], tuple[Finding, ...]]:
    """Steps with an output that is given, and what else other steps read of them and is missing.

    Args:
        inputs: All inputs of the pipeline and its steps.
        chosen: Paths of ``--input`` by label.
        job: The job file.
    """
    own = {each.label for each in inputs}
    read: dict[str, dict[str, str]] = {}
    for each in inputs:
        if each.written and each.label not in chosen:
            read.setdefault(each.written.rpartition(".")[0], {}).setdefault(each.written, each.label)
    found: list[Finding] = []
    given = {step for step, outputs in read.items() if any(each in chosen and each not in own for each in outputs)}
    for step in sorted(given):
        for output, reader in read[step].items():
            if output not in chosen:
                seen, rule = f"`{output}` is not given", f"The step `{step}` is not run, and `{reader}` reads it"
                remedy = f"Give `{OPTION} {output}=PATH` too."
                found.append(Finding("input-option", f"{OPTION} {output}", seen, rule, remedy, file=str(job)))
    return frozenset(given), tuple(found)


_FOLDERS = frozenset({"uri_folder", "mltable"})


@dataclass(frozen=True, slots=True)
class Data:
    """The places that the inputs of one job are read from.

    Attributes:
        by_step: Paths of this machine by step and input, as the sandbox takes them beside the body.
        outputs: The same of outputs.
        lines: What was substituted, a sentence each.
        findings: Inputs that cannot be read here, and substitutes that cannot be used.
        given: Steps that are not run, as ``--input STEP.OUTPUT=PATH`` gives what others read of them.
        stand_ins: What stands in for the environments, by step.
        environments: What should be known of those before the start, a sentence each.
        secrets: What the job names as secrets, by name.
    """

    by_step: dict[str, dict[str, Path]] = field(default_factory=dict)
    outputs: dict[str, dict[str, Path]] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    given: frozenset[str] = frozenset()
    stand_ins: Mapping[str, Chosen] = field(default_factory=dict)
    environments: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


def _of_stack(path: str, where: Targets | None) -> tuple[Path | None, str]:
    """The file or folder that ``azureml:NAME@latest`` means in a stack, and where that is declared; None for none."""
    if where is None or not path.startswith("azureml:") or (known := where.named_data()) is None:
        return None, ""
    from infra.data import asset_of
    from jobs.local_data import absolute

    asset = asset_of(path, known)
    if asset is None or not asset.spec.local:
        return None, ""
    return absolute(asset.spec.path, where.root), f"Pulumi.{where.stack}.yaml"


@dataclass(frozen=True, slots=True)
class Puts:
    """Places of outputs on this machine.

    Attributes:
        chosen: Paths of ``--output`` by label.
        mapped: Those of `rehearsal.toml`: path and ``FILE:LINE``, by declared path.
    """

    chosen: Mapping[str, Path] = field(default_factory=dict)
    mapped: Mapping[str, tuple[Path, str]] = field(default_factory=dict)


def options(
    given: Sequence[str], plans: Sequence[jobs.Planned], side: str = "inputs"
) -> tuple[dict[str, Path], tuple[Finding, ...]]:
    """The paths of ``--input NAME=PATH`` (or ``--output``) by label, a value's text too, and findings on them."""
    what = side.removesuffix("s")
    option, labels = f"--{what}", {each.label: each for plan in plans for each in declared(plan, side)}
    written = {each.written for each in labels.values() if side == "inputs"} - {""}
    paths: dict[str, Path] = {}
    found: list[Finding] = []
    for text in given:
        label, equals, path = text.partition("=")
        if not equals or not label or not path:
            seen, remedy = f"`{text}` has no name or no path", f"Write `{option} NAME=PATH`."
            found.append(Finding(f"{what}-option", option, seen, f"An {what} is given as NAME=PATH", remedy))
        elif label in written and label not in labels:
            paths[label] = Path(path).expanduser().absolute()
        elif label not in labels:
            known = (*labels, *sorted(written - labels.keys()))
            none = f"The job has no {side}." if not known else f"It has {', '.join(known)}."
            remedy = did_you_mean(label, known, otherwise=none)
            found.append(Finding(f"{what}-unknown", option, f"The job has no {what} `{label}`", "", remedy))
        else:
            here = Path(path).expanduser()
            is_data = side == "outputs" or labels[label].is_data or exists(here)
            paths[label] = here.absolute() if is_data else Path(path)
    return paths, tuple(found)


def resolve(
    plan: jobs.Planned,
    chosen: Mapping[str, Path],
    mapped: Mapping[str, tuple[Path, str]],
    job: Path,
    stored: Callable[[str], bool],
    *,
    alone: bool = False,
    where: Targets | None = None,
    put: Puts = Puts(),
) -> Data:
    """Finds the data of every input of a job, and the place of every output.

    Args:
        plan: The job.
        chosen: Paths of ``--input`` by label.
        mapped: What `rehearsal.toml` gives: path and ``FILE:LINE``, by declared path.
        job: The job file.
        stored: Whether the sandbox's own storage holds what an address names.
        alone: The file is a component, whose inputs a pipeline would give.
        where: The stack whose data the jobs name; None for none.
        put: Where outputs are put.
    """
    by_step: dict[str, dict[str, Path]] = {}
    lines: list[str] = []
    found: list[Finding] = []
    inputs = tuple(declared(plan))
    given, missing = given_steps(inputs, chosen, job)
    found += missing
    lines += [f"step {step}: not run, what other steps read of it is given" for step in sorted(given)]
    outputs = tuple(each for each in declared(plan, "outputs") if not within(each.step, given))
    written = _outputs(outputs, put, job, lines, found)
    for each in inputs:
        if within(each.step, given):
            continue
        path, origin = _substitute(each, chosen, mapped, where, scope_of(where, job))
        step, _, output = each.written.rpartition(".")
        if path is None and output in written.get(step, {}):
            path = written[step][output]
        elif path is not None:
            found += _unusable(each, path, origin, job) if each.is_data else ()
            declared_as = each.path if each.is_data else str(each.value)
            lines.append(f"input {each.label}: {path}{f', instead of {declared_as}' if declared_as else ''} ({origin})")
        elif alone and not each.step and (not each.path if each.is_data else isinstance(each.value, NotGiven)):
            found.append(_without(each, job))
        elif each.path and "${{" not in each.path:
            path = local(each.path, plan.base)
            if path is not None and not exists(path):
                found.append(_missing(each, path))
            elif path is None and getattr(each.value, "mode", None) != "direct" and not stored(each.path):
                found.append(_elsewhere(each, job, mapped))
            elif path is not None:
                lines.append(f"input {each.label}: {path}")
        if path is not None:
            by_step.setdefault(each.step, {})[each.name] = path
    _hand_down(inputs, by_step)
    return Data(by_step, written, tuple(lines), tuple(found), given)


def _hand_down(ports: Sequence[DeclaredPort], by_step: dict[str, dict[str, Path]]) -> None:
    """Gives what is bound to an input or output of the pipeline the path of that."""
    for each in ports:
        of_pipeline = by_step.get(each.around, {})
        if each.bound in of_pipeline and each.name not in by_step.get(each.step, {}):
            by_step.setdefault(each.step, {})[each.name] = of_pipeline[each.bound]


def _outputs(
    ports: Sequence[DeclaredPort], put: Puts, job: Path, lines: list[str], found: list[Finding]
) -> dict[str, dict[str, Path]]:
    """The places of outputs on this machine, by step; what is put there and what cannot be is noted."""
    by_step: dict[str, dict[str, Path]] = {}
    for each in ports:
        path, origin = put.chosen.get(each.label), "--output"
        if path is None:
            path, origin = put.mapped.get(each.path, (None, ""))
        if path is not None:
            there, file = next(one for one in (path, *path.parents) if exists(one)), each.is_file
            if is_dir(there) == (file and there == path) or not os.access(there, os.W_OK):
                seen = f"`{path}` cannot be written as a {'file' if file else 'folder'}"
                rule = f"The output `{each.label}` is of the type {each.kind}"
                found.append(Finding("output-substitute", each.where, seen, rule, "Correct the path.", file=str(job)))
            lines.append(f"output {each.label}: {path}{f', instead of {each.path}' if each.path else ''} ({origin})")
            by_step.setdefault(each.step, {})[each.name] = path
        elif each.path and "${{" not in each.path and not can_be_written(each.path):
            found.append(_elsewhere(each, job, put.mapped))
    _hand_down(ports, by_step)
    return by_step


def can_be_written(uri: str) -> bool:
    """True where an output can go to an address: a datastore that the sandbox's workspace has, or will have."""
    from amlstack.sandbox.files.storage import DATASTORE, Location
    from amlstack.sandbox.kinds.machine_learning.workspaces import OWN_DATASTORES

    named = DATASTORE.fullmatch(uri)
    if named is not None and not named["workspace"] and named["store"] in OWN_DATASTORES:
        return True
    return bool(_stored(lambda storage: isinstance(storage.locate(uri, "The output"), Location)))


def local(path: str, base: Path) -> Path | None:
    """The file or folder of this machine that a declared path means; None for one that lies elsewhere."""
    from jobs.planning.job_checks import local_path

    if not local_path(path):
        return None
    return base.absolute() / (unquote(urlsplit(path).path) if path.startswith("file:") else path)


def without_substituted(
    findings: Sequence[Finding], plans: Sequence[jobs.Planned], labels: Collection[str]
) -> tuple[Finding, ...]:
    """Findings but those on missing local data of inputs with these labels."""
    given = {each.where for plan in plans for each in declared(plan) if each.label in labels}
    return tuple(each for each in findings if each.code != "input-path-missing" or each.where not in given)


def _substitute(
    each: DeclaredPort,
    chosen: Mapping[str, Path],
    mapped: Mapping[str, tuple[Path, str]],
    where: Targets | None,
    scope: fetching.FetchScope,
) -> tuple[Path | None, str]:
    for label in (each.label, each.written):
        if label in chosen:
            return chosen[label], OPTION
    if each.path in mapped:
        return mapped[each.path]
    if can_be_fetched(each) and (path := fetching.cached(each.path, scope)) is not None:
        return path, "fetched"
    return _of_stack(each.path, where)


def _unusable(each: DeclaredPort, path: Path, origin: str, job: Path) -> Iterator[Finding]:
    where, at = (f"{OPTION} {each.label}", str(job)) if origin == OPTION else (each.where, origin)
    if not exists(path):
        seen, rule = f"`{path}` does not exist", f"The input `{each.label}` is read from there"
        yield Finding("input-substitute", where, seen, rule, "Correct the path.", file=at)
    elif (each.is_file and is_dir(path)) or (each.kind in _FOLDERS and is_file(path)):
        got, wanted = ("folder", "file") if each.is_file else ("file", "folder")
        seen, rule = f"`{path}` is a {got}", f"The input `{each.label}` is of the type {each.kind}"
        yield Finding("input-substitute", where, seen, rule, f"Name a {wanted}.", file=at)


def can_be_fetched(each: DeclaredPort) -> bool:
    """True for an input that is one file at an https address, or data in Azure storage."""
    if each.side != "inputs" or each.kind not in (*_FOLDERS, "uri_file"):
        return False
    return (each.is_file and each.path.startswith("https://")) or fetching.in_azure(each.path)


def _without(each: DeclaredPort, job: Path) -> Finding:
    what = "PATH" if each.is_data else "VALUE"
    return stated("input-elsewhere", f"inputs.{each.name}", each=each, OPTION=OPTION, what=what).changed(file=str(job))


def _missing(each: DeclaredPort, path: Path) -> Finding:
    return stated("input-path-missing", each.where, each=each, path=path, OPTION=OPTION)


def _elsewhere(each: DeclaredPort, job: Path, mapped: Mapping[str, tuple[Path, str]]) -> Finding:
    beside = job.absolute().parent / mapping_file.NAME
    close = "".join(f" {mapped[key][1]} has `{key}`." for key in near(each.path, mapped, 1))
    fetch = "Fetch it with `--fetch`, or give" if can_be_fetched(each) else "Give"
    what, does, reads = ("input", "read", "reads") if each.side == "inputs" else ("output", "write to", "writes")
    seen = f"The data of `{each.label}` lie at `{each.path}`, which this machine cannot {does}"
    rule = f"A rehearsal {reads} data of this machine.{close}"
    remedy = (
        f"{fetch} `--{what} {each.label}=PATH`, or write under `[{each.side}]` in {beside}: "
        f"`{mapping_file.line_for(each.path)}`."
    )
    return Finding(f"{what}-elsewhere", each.where, seen, rule, remedy)


def rehearsal_workspace() -> str:
    """The ARM id of the workspace in which jobs are rehearsed, in every sandbox the same."""
    from amlstack.sandbox.protocol.entra import SUBSCRIPTION

    return Names(SUBSCRIPTION, GROUP, GROUP).workspace_id


def scope_of(where: Targets | None, job: Path) -> fetching.FetchScope:
    """The scope of what a job file names."""
    return (
        fetching.FetchScope(job.absolute().parent)
        if where is None
        else fetching.FetchScope(where.root.absolute(), where.stack)
    )


def is_here(each: DeclaredPort, where: Targets | None) -> bool:
    """True where a stack's local data or the sandbox's storage has what an input names."""
    return _of_stack(each.path, where)[0] is not None or is_stored(each.path)


def is_stored(uri: str) -> bool:
    """True where the sandbox's storage has files at an address: earlier rehearsals put there what they wrote."""
    return bool(_stored(lambda storage: storage.has_files(uri)))


def _stored(asked: Callable[[Storage], bool]) -> bool | None:
    """The answer of the sandbox's storage; None where there is no sandbox, or it refuses."""
    from contextlib import closing

    from amlstack.sandbox.contract import RefusedError
    from amlstack.sandbox.files.storage import Storage
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.folders import folder
    from amlstack.sandbox.store.store import Store

    if not (folder(paths.home()) / "state.db").is_file():
        return None
    try:
        with closing(Store(paths.home())) as store:
            return asked(Storage(store, rehearsal_workspace()))
    except (StateError, RefusedError):
        return None
