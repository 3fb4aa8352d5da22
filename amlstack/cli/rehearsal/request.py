"""The request for a rehearsal, and the survey that precedes its start."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.catalog import clock
from amlstack.cli import targets
from amlstack.cli.console import confirmed, on_a_terminal, say
from amlstack.cli.jobfiles.judgement import check_file, plan_gate
from amlstack.cli.rehearsal import environments, fetching, inputs, mapping_file
from amlstack.cli.rehearsal.site import site_of
from amlstack.cli.stack import run_orders
from infra.runs import CodeFolders

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.targets import Targets
    from amlstack.images.environments import OwnStandIn
    from amlstack.sandbox.scale import RehearsalScale
    from amlstack.sandbox.slurm import SlurmProfile


@dataclass(frozen=True, slots=True)
class RehearsalRequest:
    """The request that `amlstack rehearse` was given.

    Attributes:
        file: The job file.
        size: VM size of the cluster, or None.
        stack: Name of a stack, or None.
        only: Name of one job; None for all.
        inputs: ``NAME=PATH`` each.
        outputs: ``NAME=PATH`` each.
        secrets: ``NAME=env:VARIABLE`` each.
        scale: What is started at most; None for all.
        fresh: Earlier outputs are set aside.
        shim: Ordinary GPU calls are carried to the CPU where this machine has no GPU.
        yes: A job larger than this machine is agreed to.
        force: It starts although something was found that cannot run here.
        shown: The one rank whose lines are printed; None for all.
        fetch: Bytes of an input that are fetched at most; 0 where nothing is fetched.
        offer: The same of inputs that a person on a terminal is asked about.
        preflight: Preflight and all-reduce run before each job.
        on: ``machine``, ``slurm`` or ``slurm:PROFILE``; None where the cluster says it, else the sandbox.
    """

    file: Path
    size: str | None = None
    stack: str | None = None
    only: str | None = None
    inputs: Sequence[str] = ()
    secrets: Sequence[str] = ()
    scale: RehearsalScale | None = None
    outputs: Sequence[str] = ()
    fresh: bool = False
    shim: bool = True
    yes: bool = False
    force: bool = False
    shown: int | None = None
    fetch: int = 0
    offer: int = 0
    on: str | None = None
    preflight: bool = False


@dataclass(frozen=True, slots=True)
class RehearsalSurvey:
    """The facts known of a rehearsal before it starts.

    Attributes:
        request: What was asked for.
        where: The stack that was read, if any.
        names: Names of all that the file declares.
        plans: Of the jobs that are meant.
        sources: What each of them reads on this machine.
        own: The user's stand-ins.
        folders: The code folders that were looked at.
        findings: On the file and the jobs that are meant.
        missing: On inputs, on secrets, on the files that say where they lie, and on the place of a rehearsal.
        sites: For each plan the profile by which Slurm gives it nodes; None for this machine.
    """

    request: RehearsalRequest
    where: Targets
    names: tuple[str, ...]
    plans: tuple[jobs.Planned, ...]
    sources: tuple[Data, ...]
    own: Mapping[str, OwnStandIn]
    folders: CodeFolders
    findings: tuple[Finding, ...]
    missing: tuple[Finding, ...]
    sites: tuple[SlurmProfile | None, ...]

    @property
    def no_job(self) -> str:
        """The message for a job that the file does not have."""
        return f"{self.request.file} has no job `{self.request.only}`; it has: {', '.join(self.names) or 'none'}"

    def name_of(self, plan: jobs.Planned) -> str:
        """The name of a job."""
        return name_of(plan, self.request.file)


def survey(request: RehearsalRequest) -> RehearsalSurvey:
    """Reads the job file, what it names and what is said of it; starts and writes nothing."""
    file, where, folders = request.file, targets.find(request.size, request.stack), CodeFolders()
    gate = plan_gate(where, clock.today())
    checked = check_file(file, where, gate=gate, environment=where.environment_of, folders=folders, packages=True)
    meant = [plan for plan in checked.plans if request.only in (None, name_of(plan, file))]
    others = [_no_job(plan, file) for plan in meant if plan.timed]
    found = inputs.without_substituted(
        (*checked.findings, *run_orders.within(checked)), meant, {text.partition("=")[0] for text in request.inputs}
    )
    plans = tuple(plan for plan in meant if not plan.timed)
    mapped = mapping_file.read_all(file)
    chosen, wrong = inputs.options(request.inputs, plans)
    written, also_wrong = inputs.options(request.outputs, plans, "outputs")
    put = inputs.Puts(written, mapped.outputs)
    also_wrong = (*also_wrong, *_fetched(request, plans, {*chosen, *mapped.inputs}, where.of_file(file)))
    secrets, of_secrets = mapping_file.secret_values(plans, checked.source, request.secrets, mapped.secrets)
    # A component is alone in its file, and a pipeline would give its inputs.
    alone = any(each.code == "component-alone" for each in checked.findings)
    on, sources = where.of_file(file), []
    for plan in plans:
        data = inputs.resolve(plan, chosen, mapped.inputs, file, inputs.is_stored, alone=alone, where=on, put=put)
        stand_ins, lines = environments.resolve(plan, mapped.stand_ins, data.given)
        placed = ((each if each.file else checked.source.locate(each)).at(str(file)) for each in data.findings)
        sources.append(replace(data, findings=tuple(placed), stand_ins=stand_ins, environments=lines, secrets=secrets))
    found_sites = [site_of(plan, request.on, where) for plan in plans]
    nowhere = dict.fromkeys(each.at(str(file)) for each in found_sites if isinstance(each, Finding))
    return RehearsalSurvey(
        request,
        where,
        tuple(name_of(plan, file) for plan in checked.plans),
        plans,
        tuple(sources),
        mapped.stand_ins,
        folders,
        (*where.findings, *found, *others, *(() if request.preflight else _left_out(meant, where, file))),
        (
            *wrong,
            *also_wrong,
            *mapped.findings,
            *(each for one in sources for each in one.findings),
            *of_secrets,
            *nowhere,
        ),
        tuple(None if isinstance(each, Finding) else each for each in found_sites),
    )


def _fetched(
    request: RehearsalRequest, plans: Sequence[jobs.Planned], given: Collection[str], on: Targets | None
) -> Iterator[Finding]:
    """Fetches what the jobs read elsewhere and nothing else gives, each once; yields what was not fetched."""
    offer, scope = request.offer if on_a_terminal() else 0, inputs.scope_of(on, request.file)
    ports = {each.path: each for plan in plans for each in inputs.declared(plan) if inputs.can_be_fetched(each)}
    for each in ports.values() if request.fetch or offer else ():
        here = inputs.is_here(each, on) or (not request.fetch and fetching.cached(each.path, scope))
        if here or {each.label, each.path} & {*given}:
            continue

        def agreed(what: str, label: str = each.label) -> bool:
            return bool(request.fetch) or confirmed(f"Fetch the input `{label}` from {what}?")

        wanted = fetching.WantedInput(each.path, each.label, each.is_file, scope)
        wrong = fetching.fetch(wanted, request.fetch or offer, _say, agreed)
        if wrong is not None:
            yield wrong.at(str(request.file))


def _say(text: str) -> None:
    say(text, err=True)


def name_of(plan: jobs.Planned, file: Path) -> str:
    """The name of a job: its own, or its file's."""
    return plan.job.name or file.stem


def _no_job(plan: jobs.Planned, file: Path) -> Finding:
    seen = f"`{name_of(plan, file)}` is a {type(plan.job).__name__.lower()}"
    rule, remedy = "A rehearsal runs jobs, sweeps and pipelines", "Rehearse what it starts."
    return Finding("rehearsal-kind", "", seen, rule, remedy, file=str(file))


def _left_out(plans: Sequence[jobs.Planned], where: Targets, file: Path) -> Iterator[Finding]:
    """A note for each cluster whose `fabric_check` jobs of the file come after.

    Args:
        plans: What is rehearsed.
        where: The stack that was read, if any.
        file: The job file.
    """
    clusters = where.settings.clusters if where.settings is not None else ()
    for cluster in clusters:
        check = cluster.fabric_check
        held_back = [f"`{plan.job.name or file.stem}`" for plan in plans if _runs_on(plan, cluster.name)]
        if check is None or not held_back:
            continue
        nodes = check.nodes or cluster.nodes.max
        size = f" of {cluster.size}" if cluster.size else ""
        come = "come" if len(held_back) > 1 else "comes"
        seen = (
            f"{', '.join(held_back)} {come} after the fabric check of the cluster `{cluster.name}` in the stack "
            f"`{where.stack}` ({nodes} node{'' if nodes == 1 else 's'}{size})"
        )
        rule = "A rehearsal leaves the check out: it would judge neither those nodes' GPUs nor their InfiniBand"
        remedy = (
            "`--preflight` runs it first, on as many nodes as the job takes. "
            f"`amlstack up --stack {where.stack} --sandbox` plays the whole order, the check before the jobs."
        )
        yield Finding("fabric-check-left-out", "compute", seen, rule, remedy, Level.INFO, file=str(file))


def _runs_on(plan: jobs.Planned, cluster: str) -> bool:
    """True where a part of a plan runs on that cluster."""
    return any((part.target.cluster or "").lower() == cluster.lower() for part in plan.parts.values())
