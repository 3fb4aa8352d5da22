"""The environments of a rehearsal: what stands in for each, what each lacks, and where none is to be had."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import jobs
from amlstack.base.paths import PROJECT
from amlstack.cli.rehearsal.aspects import Aspect, State, asset_file, stored_properties
from amlstack.cli.rehearsal.inputs import rehearsal_workspace, within
from amlstack.cli.rehearsal.mapping_file import NAME
from amlstack.cli.rehearsal.scale import code_folder
from amlstack.code_reading import shell
from amlstack.images import building, environments, requirements
from jobs.launchers import MpiDistribution
from jobs.model.job import NO_ENVIRONMENT

if TYPE_CHECKING:
    from amlstack.cli.targets import Targets
    from amlstack.images.environments import Chosen, Declared, EnvironmentAnswer, OwnStandIn


def resolve(
    plan: jobs.Planned, own: Mapping[str, OwnStandIn], given: Collection[str] = ()
) -> tuple[Mapping[str, Chosen], tuple[str, ...]]:
    """Looks up the environment of every part of a plan; builds nothing, asks no network.

    What cannot be had is left out here: it is refused before anything starts (`judgement`).

    Args:
        plan: Of a job, a sweep or a pipeline.
        own: What the user says of environments.
        given: Steps that are not run.

    Returns:
        What the sandbox is handed, by step (of a job that is no pipeline under the empty name), and what a reader
        should know before the start, a sentence each.
    """
    by_step: dict[str, Chosen] = {}
    lines: dict[str, None] = {}
    for place, part in plan.parts.items():
        step = plan.step(place)
        wanted = declared(part)
        if wanted is None or within(step, given):
            continue
        chosen = environments.Chosen(wanted, environments.own_of(wanted, own))
        if chosen.own is None and _of_a_workspace(wanted):
            continue  # the sandbox's workspace may have it, and says so where it has not
        answer = environments.answer(wanted, own)
        if answer.state != "unavailable":
            by_step[step] = chosen
            lines |= dict.fromkeys(_environment_lines(answer))
    return by_step, tuple(lines)


def declared(part: jobs.Plan) -> environments.Declared | None:
    """The environment of one command as it is declared; None for a job that has none, or one that cannot be read."""
    from jobs.wire.command import conda_text

    value = part.enriched.environment
    if isinstance(value, jobs.Environment):
        if value.build is not None and "://" not in value.build.path:
            context = (part.base / value.build.path).absolute()
            return environments.Declared(
                context=context, dockerfile=value.build.dockerfile_path or environments.DOCKERFILE
            )
        try:
            conda = conda_text(value, part.base) or ""
        except OSError:
            return None
        folder = (part.base / value.conda_file).absolute().parent if isinstance(value.conda_file, str) else None
        return environments.Declared(image=value.image or "", conda=conda, folder=folder)
    if not value or value == NO_ENVIRONMENT:
        return None
    return environments.Declared(reference=value)


def _of_a_workspace(wanted: environments.Declared) -> bool:
    """True where it names an environment that is registered in a workspace."""
    return wanted.reference.startswith(("azureml:", "/subscriptions/")) and not wanted.reference.startswith(
        ("azureml://registries/", "azureml:AzureML-", "azureml:azureml-")
    )


def _environment_lines(answer: EnvironmentAnswer) -> Iterator[str]:
    if answer.state == "build" and answer.standin is not None:
        size = f", up to {answer.download_mb} MB" if answer.download_mb else ""
        yield f"environment: {answer.standin.summary} is built first, once{size}"
    for each in answer.absent:
        if each.why:
            yield f"environment: without `{each.what}`: {each.why}; {each.consequence}"


_BY_FILE = "Write `environment: file:{}`, which declares `{}`."


def found_nowhere(wanted: str, where: Targets, folder: Path) -> tuple[str, str]:
    """The name and place that were looked up, and the remedy.

    Args:
        wanted: The environment's reference.
        where: The stack that was read, if any.
        folder: The job file's.
    """
    from amlstack.cli.targets import Targets
    from infra.settings import read_file

    name = wanted.removeprefix("azureml:").partition("@")[0].partition(":")[0]
    if where.settings is not None:
        names = ", ".join(sorted(where.environments())) or "none"
        looked = f"among the environments of Pulumi.{where.stack}.yaml ({names})"
    else:
        looked = f"no stack's settings were read{', because --size was given' if where.size else ''}"
    seen = f"`{wanted}` was looked for in the sandbox's workspace, and {looked}"
    leave_out = ", and leave --size out" if where.size else ""
    for path in dict.fromkeys((*sorted(Path.cwd().glob("Pulumi.*.yaml")), *sorted(PROJECT.glob("Pulumi.*.yaml")))):
        stack = path.suffixes[0][1:]
        if stack != where.stack and name in Targets(settings=read_file(path).partial).environments():
            return seen, f"Give --stack {stack}, which declares `{name}`{leave_out}."
    if near := asset_file("environment", wanted, folder):
        return seen, _BY_FILE.format(near, wanted)
    return seen, (
        "Write it into the job (`image`, `conda_file`), declare it in a stack and name that with --stack, or write "
        f'into {NAME} beside the job: `[stand_in."azureml:{name}"]`, below it `requirements = ["PACKAGE==VERSION"]`.'
    )


def import_aspects(place: str, part: jobs.Plan, answer: EnvironmentAnswer, named: str) -> Iterator[Aspect]:
    """Yield the imports that a stand-in lacks: any, where it is built, else those that it is known to lack.

    Nothing is yielded where the job itself installs packages.

    Args:
        place: The part's place.
        part: The part.
        answer: Its environment.
        named: The environment as the job names it.
    """
    from amlstack.code_reading import code_files
    from amlstack.sandbox.runner import pip_layer

    folder, command = code_folder(part), part.enriched.command
    built = building.ready(answer.standin) if answer.standin is not None else None
    if folder is None:
        return
    scripts = shell.scripts(command)
    if not scripts or pip_layer.wanted(command, folder):
        return
    of_image = {module.split(".")[0] for each in answer.absent for module in each.modules}
    if built is not None:
        missing = code_files.missing_imports(folder, scripts, built)
    else:
        missing = code_files.absent_imports(
            folder, code_files.files(folder, scripts), lambda name: name not in of_image
        )
    includes = part.job.code.includes if part.job.code is not None else ()
    along = {PurePosixPath(name).stem for name in (*includes, *map(str, part.beside))}
    for each in (each for each in missing if each.module not in along):
        whose = "the image has it, its stand-in has not" if each.module in of_image else "its stand-in has not"
        key = json.dumps(named, ensure_ascii=False)
        package = json.dumps(requirements.package_of(each.module))
        # What a script of the command imports at its top, it imports; a module may never be reached.
        stops = each.path in map(posixpath.normpath, scripts)
        brings = f"`[stand_in.{key}]`, below it `like = {key}` and `requirements = [{package}]`"
        text = f"`import {each.module}` will fail: {whose}"
        state: State = "blocks" if stops else "note"
        text = text if stops else f"{text}. To bring it, write into rehearsal.toml: {brings}"
        remedy = f"Write into rehearsal.toml: {brings}; or --force." if stops else ""
        yield Aspect("environment", state, text, remedy, (place,), str(folder / each.path), each.line, ignorable=stops)


_DEVICES = Path("/dev")


def has_gpu() -> bool:
    """True where this machine has a GPU of NVIDIA with a driver."""
    return any(_DEVICES.glob("nvidia[0-9]*"))


def gpu_aspects(place: str, part: jobs.Plan, *, shim: bool = True) -> Iterator[Aspect]:
    """Yield the lines of a part's code that cannot run without a GPU, or run otherwise.

    Args:
        place: The part's place.
        part: The part.
        shim: Whether ordinary GPU calls are carried to the CPU.
    """
    if has_gpu():
        yield Aspect("GPU", "ready", "this machine has one", "", (place,))
        return
    if (folder := code_folder(part)) is None:
        return
    from amlstack.sandbox import gpu_code

    command = part.enriched.command
    for each in gpu_code.read(folder, shell.scripts(command)):
        stops = each.ends and each.certain
        where = "" if each.certain else " (in a function)"
        state: State = "blocks" if stops else "note"
        text = f"{each.what}{where}: {each.consequence}".rstrip(".")
        remedy = "Rehearse it where a GPU is, or give --force to start it all the same." if stops else ""
        yield Aspect("GPU", state, text, remedy, (place,), str(folder / each.path), each.line, ignorable=stops)
    if gpu_code.mentioned(folder, command):
        left = "GPU calls stay as they are, and fail where this machine has no GPU (--no-shim)"
        yield Aspect("GPU", "ready" if shim else "note", gpu_code.LINE if shim else left, "", (place,))


def starts_by_mpi(part: jobs.Plan) -> bool:
    """True where mpirun starts a part's ranks."""
    return isinstance(getattr(part.enriched.launcher, "distribution", None), MpiDistribution)


def mpi_aspects(place: str, part: jobs.Plan, answer: EnvironmentAnswer | None) -> Iterator[Aspect]:
    """Yield the aspect of the mpirun that starts the ranks of an MPI job."""
    from amlstack.images.building import ready
    from amlstack.images.standins import openmpi
    from amlstack.sandbox.runner import prepare

    if not starts_by_mpi(part):
        return
    standin = answer.standin if answer is not None else None
    version = openmpi(standin) if standin is not None else ""
    if standin is not None and version:
        if (built := ready(standin)) is not None:
            text = f"{built / 'bin' / 'mpirun'}, Open MPI {version} of the environment"
            yield Aspect("MPI", "ready", text, "", (place,))
        else:
            yield Aspect("MPI", "later", f"Open MPI {version} of PyPI comes with the environment", "", (place,))
    elif own := prepare.on_machine():
        yield Aspect("MPI", "ready", f"{own}, this machine's Open MPI 4", "", (place,))


def environment_aspects(
    place: str, part: jobs.Plan, where: Targets, own: Mapping[str, OwnStandIn]
) -> tuple[list[Aspect], EnvironmentAnswer | None]:
    """The aspects of one part's environment, and the answer where the environment is known.

    Args:
        place: The part's place.
        part: The part.
        where: The stack that was read, if any.
        own: The user's stand-ins.
    """
    from amlstack.sandbox.runner import prepare

    wanted = part.enriched.environment
    if wanted == NO_ENVIRONMENT:
        return [], None
    declared = _declared_or_stored(part)
    if not isinstance(wanted, str) and declared is None:
        return [], None  # the plan has a finding
    if declared is None and isinstance(wanted, str) and own:
        found = environments.answer(environments.Declared(wanted), own)
        declared = environments.Declared(wanted) if found.state != "unavailable" else None
    if declared is None:
        text, remedy = found_nowhere(str(wanted), where, part.base)
        return [Aspect("environment", "blocks", text, remedy, (place,))], None
    brought = starts_by_mpi(part) and prepare.is_brought(declared.image)
    answer = environments.answer(declared, own, openmpi=brought)
    aspects = [_environment_aspect(place, answer)]
    if answer.standin is None and isinstance(wanted, str) and (near := asset_file("environment", wanted, part.base)):
        aspects = [replace(aspects[0], remedy=_BY_FILE.format(near, wanted))]
    for each in answer.absent:
        if each.why:  # what the image has besides is in the line of what differs
            text = f"without {each.what}: {each.why}; {each.consequence}"
            aspects.append(Aspect("environment", "note", text, "", (place,)))
    return [*aspects, *import_aspects(place, part, answer, declared.named)], answer


def _declared_or_stored(part: jobs.Plan) -> Declared | None:
    """The declaration of the environment; None for one that is registered where this machine cannot look."""
    wanted = part.enriched.environment
    if isinstance(wanted, str):
        reference = jobs.Refs(rehearsal_workspace()).environment_id(wanted) or wanted
        if not reference.startswith("/"):
            return environments.Declared(reference)
        version = stored_properties(reference)
        if version is None:
            return None
        return environments.Declared(image=str(version.get("image") or ""), conda=str(version.get("condaFile") or ""))
    found = declared(part)
    return found if found is not None and (found.image or found.conda or found.context) else None


def _environment_aspect(place: str, answer: EnvironmentAnswer) -> Aspect:
    standin = answer.standin
    if standin is None:
        return Aspect("environment", "blocks", answer.why, answer.remedy, (place,))
    differs = f"; {answer.differs}" if answer.differs else ""
    if answer.state == "ready":
        return Aspect("environment", "ready", f"{standin.summary}{differs}", "", (place,))
    try:
        building.check_programs(standin)
    except building.ImageBuildError as error:
        return Aspect("environment", "blocks", str(error), "", (place,))
    load = f", downloads up to {answer.download_mb:,} MB" if answer.download_mb else ""
    return Aspect("environment", "later", f"is built once{load}: {standin.summary}{differs}", "", (place,))
