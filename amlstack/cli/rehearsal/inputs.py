"""The inputs of a job file: by which name `--input` gives them, and where their data lie on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from amlstack.base import paths
from amlstack.base.findings import Finding
from amlstack.base.paths import exists, is_dir, is_file
from amlstack.base.text import did_you_mean, near
from amlstack.cli.rehearsal import mapping_file
from amlstack.cli.workspace.workspace_place import REHEARSAL
from infra.names import Names
from jobs.model.job import NotGiven

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import jobs
    from amlstack.cli.targets import Targets
    from amlstack.images.environments import Chosen

GROUP = REHEARSAL
"""The resource group and the workspace in which jobs are rehearsed."""
BELOW = ".jobs."
"""Between the names of a step and of a step in it."""
_BOUND = re.compile(r"\$\{\{\s*parent\.inputs\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")
_WRITTEN = re.compile(r"\$\{\{\s*parent\.jobs\.(?P<step>[^}\s.]+)\.outputs\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """An input of a job, a pipeline or a step.

    Attributes:
        step: The step's name; empty for a job or the pipeline itself.
        name: Its name.
        value: As it is declared: data, or a value.
    """

    step: str
    name: str
    value: jobs.Input | object

    @property
    def label(self) -> str:
        """The name of the input in ``--input``: ``NAME`` or ``STEP.NAME``."""
        return f"{self.step}.{self.name}" if self.step else self.name

    @property
    def around(self) -> str:
        """The step whose pipeline this is a step of; empty for the outermost one."""
        return self.step.rpartition(BELOW)[0]

    @property
    def where(self) -> str:
        """Its place in the declaration."""
        steps = "".join(f"jobs.{step}." for step in self.step.split(BELOW)) if self.step else ""
        return f"{steps}inputs.{self.name}.path"

    @property
    def path(self) -> str:
        """The declared path of its data; empty for a value and for data that are given elsewhere."""
        return str(getattr(self.value, "path", None) or "")

    @property
    def bound(self) -> str:
        """The pipeline's input that it is; empty for none."""
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
    def is_data(self) -> bool:
        """True where it is data, or bound to some; else it is a value."""
        return hasattr(self.value, "path") or bool(self.bound) or "${{" in str(self.value)


def within(step: str, steps: Collection[str]) -> bool:
    """True where a step is one of some steps, or a step in one of them."""
    return any(f"{step}{BELOW}".startswith(f"{each}{BELOW}") for each in steps)


def declared(plan: jobs.Planned) -> Iterator[DeclaredInput]:
    """The inputs of a job, of a sweep's trial, or of a pipeline and its steps."""
    import jobs

    if isinstance(plan, jobs.PipelinePlan):
        for name, value in plan.job.inputs.items():
            yield DeclaredInput("", name, value)
        yield from _of_pipelines(plan.job.jobs, "")
    for place, part in plan.parts.items():
        for name, value in part.job.inputs.items():
            yield DeclaredInput(plan.step(place), name, value)


def _of_pipelines(steps: Mapping[str, Any], above: str) -> Iterator[DeclaredInput]:
    """Yield the inputs of steps that are pipelines: a plan's parts are the commands in them."""
    for name, step in steps.items():
        if step.steps:
            for port, value in step.inputs.items():
                yield DeclaredInput(f"{above}{name}", port, value)
            yield from _of_pipelines(step.steps, f"{above}{name}{BELOW}")


OPTION = "--input"


def given_steps(
    inputs: Sequence[DeclaredInput], chosen: Mapping[str, Path], job: Path
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


_FILES = frozenset({"uri_file"})
_FOLDERS = frozenset({"uri_folder", "mltable"})


@dataclass(frozen=True, slots=True)
class Data:
    """The places that the inputs of one job are read from.

    Attributes:
        by_step: Paths of this machine by step and input, as the sandbox takes them beside the body.
        lines: What was substituted, a sentence each.
        findings: Inputs that cannot be read here, and substitutes that cannot be used.
        given: Steps that are not run, as ``--input STEP.OUTPUT=PATH`` gives what others read of them.
        stand_ins: What stands in for the environments, by step.
        environments: What should be known of those before the start, a sentence each.
        secrets: What the job names as secrets, by name.
    """

    by_step: dict[str, dict[str, Path]] = field(default_factory=dict)
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


def options(given: Sequence[str], plans: Sequence[jobs.Planned]) -> tuple[dict[str, Path], tuple[Finding, ...]]:
    """The paths of ``--input NAME=PATH`` by label, a value's text as a path too, and the findings about them."""
    labels = {each.label: each for plan in plans for each in declared(plan)}
    written = {each.written for each in labels.values()} - {""}
    paths: dict[str, Path] = {}
    found: list[Finding] = []
    for text in given:
        label, equals, path = text.partition("=")
        if not equals or not label or not path:
            seen, remedy = f"`{text}` has no name or no path", f"Write `{OPTION} NAME=PATH`."
            found.append(Finding("input-option", OPTION, seen, "An input is given as NAME=PATH", remedy))
        elif label in written and label not in labels:
            paths[label] = Path(path).expanduser().absolute()
        elif label not in labels:
            known = (*labels, *sorted(written - labels.keys()))
            none = "The job has no inputs." if not known else f"It has {', '.join(known)}."
            remedy = did_you_mean(label, known, otherwise=none)
            found.append(Finding("input-unknown", OPTION, f"The job has no input `{label}`", "", remedy))
        else:
            here = Path(path).expanduser()
            paths[label] = here.absolute() if labels[label].is_data or exists(here) else Path(path)
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
) -> Data:
    """Finds the data of every input of a job.

    Args:
        plan: The job.
        chosen: Paths of ``--input`` by label.
        mapped: What `rehearsal.toml` gives: path and ``FILE:LINE``, by declared path.
        job: The job file.
        stored: Whether the sandbox's own storage holds what an address names.
        alone: The file is a component, whose inputs a pipeline would give.
        where: The stack whose data the jobs name; None for none.
    """
    by_step: dict[str, dict[str, Path]] = {}
    lines: list[str] = []
    found: list[Finding] = []
    inputs = tuple(declared(plan))
    given, missing = given_steps(inputs, chosen, job)
    found += missing
    lines += [f"step {step}: not run, what other steps read of it is given" for step in sorted(given)]
    for each in inputs:
        if within(each.step, given):
            continue
        path, origin = _substitute(each, chosen, mapped, where)
        if path is not None:
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
    for each in inputs:
        of_pipeline = by_step.get(each.around, {})
        if each.bound in of_pipeline and each.name not in by_step.get(each.step, {}):
            by_step.setdefault(each.step, {})[each.name] = of_pipeline[each.bound]
    return Data(by_step, tuple(lines), tuple(found), given)


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
    each: DeclaredInput, chosen: Mapping[str, Path], mapped: Mapping[str, tuple[Path, str]], where: Targets | None
) -> tuple[Path | None, str]:
    for label in (each.label, each.written):
        if label in chosen:
            return chosen[label], OPTION
    return mapped.get(each.path) or _of_stack(each.path, where)


def _unusable(each: DeclaredInput, path: Path, origin: str, job: Path) -> Iterator[Finding]:
    kind = getattr(each.value, "type", "")
    where, at = (f"{OPTION} {each.label}", str(job)) if origin == OPTION else (each.where, origin)
    if not exists(path):
        seen, rule = f"`{path}` does not exist", f"The input `{each.label}` is read from there"
        yield Finding("input-substitute", where, seen, rule, "Correct the path.", file=at)
    elif (kind in _FILES and is_dir(path)) or (kind in _FOLDERS and is_file(path)):
        got, wanted = ("folder", "file") if kind in _FILES else ("file", "folder")
        seen, rule = f"`{path}` is a {got}", f"The input `{each.label}` is of the type {kind}"
        yield Finding("input-substitute", where, seen, rule, f"Name a {wanted}.", file=at)


def _without(each: DeclaredInput, job: Path) -> Finding:
    what = "PATH" if each.is_data else "VALUE"
    seen, rule = f"`{each.label}` has no default", "The inputs of a component are given by the step that runs it"
    remedy = f"Give `{OPTION} {each.label}={what}`."
    return Finding("input-elsewhere", f"inputs.{each.name}", seen, rule, remedy, file=str(job))


def _missing(each: DeclaredInput, path: Path) -> Finding:
    seen, rule = f"`{each.path}` does not exist: {path}", "A rehearsal reads local data in place"
    remedy = f"Make it, or give `{OPTION} {each.label}=PATH`."
    return Finding("input-path-missing", each.where, seen, rule, remedy)


def _elsewhere(each: DeclaredInput, job: Path, mapped: Mapping[str, tuple[Path, str]]) -> Finding:
    beside = job.absolute().parent / mapping_file.NAME
    close = "".join(f" {mapped[key][1]} has `{key}`." for key in near(each.path, mapped, 1))
    return Finding(
        "input-elsewhere",
        each.where,
        f"The data of `{each.label}` lie at `{each.path}`, which this machine cannot read",
        f"A rehearsal reads data of this machine.{close}",
        f"Give `{OPTION} {each.label}=PATH`, or write under `[inputs]` in {beside}: "
        f"`{mapping_file.line_for(each.path)}`.",
    )


def rehearsal_workspace() -> str:
    """The ARM id of the workspace in which jobs are rehearsed, in every sandbox the same."""
    from amlstack.sandbox.protocol.entra import SUBSCRIPTION

    return Names(SUBSCRIPTION, GROUP, GROUP).workspace_id


def is_stored(uri: str) -> bool:
    """True where the sandbox's storage has files at an address: earlier rehearsals put there what they wrote."""
    from contextlib import closing

    from amlstack.sandbox.files.storage import Storage
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.folders import folder
    from amlstack.sandbox.store.store import Store

    if not (folder(paths.home()) / "state.db").is_file():
        return False
    try:
        with closing(Store(paths.home())) as store:
            return Storage(store, rehearsal_workspace()).has_files(uri)
    except StateError:
        return False
