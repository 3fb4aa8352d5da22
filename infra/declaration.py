"""Everything that the stack will be, and everything that is wrong with it, before a single resource is registered.

The assignment of the rules as an initiative of Azure Policy is made here as well.
"""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jobs
from amlstack import __version__
from amlstack.base.findings import Finding, Level, errors, stated
from amlstack.base.paths import POLICY_CONFIG, PROJECT, is_dir, is_file, names_in
from amlstack.base.startup import rarely_collected
from amlstack.base.text import did_you_mean
from amlstack.catalog import environments
from infra import data as data_module
from infra import judgement, roles, runs, security
from infra.data import PlannedAsset, StackData, check_containers
from infra.network import findings
from infra.runs import Run, registration
from infra.runs import order as order_module
from infra.runs.order import Order, OrderedRun, environment_of, resolve_target
from infra.settings import AzurePolicy, CuratedEnvironment, CustomEnvironment, JobFile, Reading, Settings, dotted
from jobs.local_data import MISSING, DataFolders
from policies import azure_policy, gate
from policies.config import ALL, Config

if TYPE_CHECKING:
    from datetime import date

    from infra.names import Names


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a stack.

    Attributes:
        runs: Its training runs, jobs, sweeps and pipelines, and its schedules of such.
        findings: All that is wrong with settings, clusters and jobs; warnings among them refuse nothing.
        config: The rules' configuration; None when there was nothing to read.
        data: Its data assets.
        listed: Names of the runs that job files declare, each after its file as the settings write it.
    """

    runs: tuple[Run, ...]
    findings: tuple[Finding, ...]
    config: Config | None = None
    data: tuple[PlannedAsset, ...] = ()
    listed: tuple[tuple[str, str], ...] = ()

    @property
    def ok(self) -> bool:
        """True where nothing refuses it."""
        return not errors(self.findings)


@rarely_collected()
def declare(reading: Reading, *, on: date, root: Path = PROJECT, place: str = "") -> Declaration:
    """Judge the settings' meaning: sizes, environments, job files and the jobs in them.

    Args:
        reading: The settings; where they are faulty, what could be made of them is judged.
        on: The day of the judgement.
        root: The folder that paths in the settings start from.
        place: ``STACK::PROJECT``, for exceptions with patterns over URNs; empty where it is not known.
    """
    if reading.partial is None:
        return Declaration((), reading.findings)
    rules, faults = gate_of(reading, reading.partial, on=on, root=root, place=place)
    folders = DataFolders()
    named, of_data = data_module.planned(reading, reading.partial, root, folders)
    stack = _Stack(reading, reading.partial, root, rules, data=folders, named=named)
    found = [*reading.findings, *faults, *stack.clusters(), *stack.environments()]
    found += [
        *of_data,
        *data_module.check_settings(reading, reading.partial, named),
        *roles.check_access(reading, reading.partial),
        *check_containers(reading, reading.partial),
    ]
    declared: list[Run] = []
    listed: list[runs.ListedRun] = []
    members: list[OrderedRun] = []
    complete = not reading.doubts("jobs")
    for index, job_file in enumerate(reading.partial.jobs):
        if not reading.doubts("jobs", index, "file"):
            more, wrong, placed = stack.file(index, job_file)
            declared += more
            listed += (runs.ListedRun(index, job_file.file, run) for run in more)
            members += placed
            found += wrong
            complete = complete and bool(more)
    checks = stack.fabric_checks(declared, members)
    found += checks.findings
    order = Order.of(checks.gated(members), complete=complete)
    declared = [
        replace(run, after=after) if after else run
        for run in (*declared, *checks.runs)
        for after in (checks.gates.get(run.name, ()) if run.is_schedule else order.before.get(run.name, ()),)
    ]
    found += order.findings
    found += (reading.locate(("jobs", index), finding) for index, finding in runs.named_alike(listed))
    if reading.partial.azure_policy is not None:
        found += check(reading, reading.partial.azure_policy)
    found += findings.check(reading, reading.partial)
    if not reading.doubts("workspace"):
        checked = security.check(reading.partial, place.partition("::")[0] or reading.stack)
        found += (reading.locate(loc, finding) for loc, finding in checked)
    found += judgement.of_the_rest(rules, reading, reading.partial)
    found += rules.whole()
    of_files = tuple((each.file, each.run.name) for each in listed)
    return Declaration(tuple(declared), tuple(found), rules.config, named.all_assets, of_files)


def gate_of(
    reading: Reading, settings: Settings, *, on: date, root: Path, place: str = "", file: Path | None = None
) -> tuple[gate.Gate, tuple[Finding, ...]]:
    """The rules as a stack configures them, and what is wrong with their file.

    Args:
        reading: The settings.
        settings: The same, mended.
        on: The day of the judgement.
        root: The folder that paths in the settings start from.
        place: ``STACK::PROJECT``.
        file: A configuration that counts instead of the stack's.
    """
    where = dotted(("policies",))
    given = os.environ.get(POLICY_CONFIG)  # by who judges the declaration, which has then no say
    if file is None and given:
        file = Path(given)
    path = file or (root / settings.policies if settings.policies and given is None else None)
    config, faults = gate.read(path, written=str(file or settings.policies or ""), where="" if file else where)
    located = faults if file else tuple(reading.locate(("policies",), replace(one, file=None)) for one in faults)
    return gate.Gate(config, on, place=place), located


@dataclass(frozen=True, slots=True)
class _Stack:
    reading: Reading
    settings: Settings
    root: Path
    rules: gate.Gate
    folders: runs.CodeFolders = field(default_factory=runs.CodeFolders)
    data: DataFolders = field(default_factory=DataFolders)
    named: StackData = field(default_factory=StackData)
    known_environments: dict[str, dict[str, Any]] = field(default_factory=dict)
    known_targets: dict[tuple[str | None, str | None], tuple[jobs.Target, list[Finding]]] = field(default_factory=dict)

    def clusters(self) -> Iterator[Finding]:
        for index in range(len(self.settings.clusters)):
            yield from judgement.of_cluster(self.rules, self.reading, self.settings, index)

    def judged(self, name: str, plan: jobs.Planned, source: jobs.Source) -> list[Finding]:
        """All findings on a run, but for an environment that may be one of those that could not be read."""
        found = judgement.of_plan(self.rules, name, plan, source)
        doubtful = self.reading.doubts("environments")
        return [finding for finding in found if not (doubtful and finding.code == "environment-unknown")]

    def environments(self) -> Iterator[Finding]:
        for index, environment in enumerate(self.settings.environments):
            loc: tuple[str | int, ...] = ("environments", index)
            if self.reading.doubts(*loc):
                continue
            if isinstance(environment, CuratedEnvironment) and environments.get(environment.curated) is None:
                near = did_you_mean(environment.curated, (each.name for each in environments.all_environments()))
                yield self.reading.locate(
                    (*loc, "curated"),
                    stated(
                        "environment-unknown/environments",
                        dotted((*loc, "curated")),
                        environment=environment,
                        remedy=near,
                    ),
                )
            if isinstance(environment, CustomEnvironment) and environment.conda:
                path = self.root / environment.conda
                if not is_file(path):
                    yield self.missing((*loc, "conda"), environment.conda, "A conda file is a path in the project")

    def file(self, index: int, job_file: JobFile) -> tuple[list[Run], list[Finding], list[OrderedRun]]:
        """The runs of one job file, what is wrong with them, and what they come after."""
        path = self.root / job_file.file
        if not is_file(path):
            return [], [self.missing(("jobs", index), job_file.file, "A job file is a path in the project")], []
        loaded = jobs.load(path)
        found = list(loaded.findings)
        result: list[Run] = []
        members = order_module.members(loaded, path, job_file, self.reading, index, shown=self.shortened)
        for declared in loaded.jobs:
            found += (self.reading.locate(("jobs", index), each) for each in runs.misplaced(declared, job_file))
            meant = order_module.with_secrets(runs.with_overrides(declared, job_file, self.environment), job_file)
            found += order_module.secret_findings(meant, job_file, self.reading, index, loaded.source)
            run, wrong = self.run(meant, loaded.source, path)
            result.append(run)
            found += wrong
        found += order_module.misplaced(loaded)
        # A warning where azure-ai-ml may submit the file later refuses a stack, which uploads data now.
        found = [replace(each, level=Level.ERROR) if each.code == MISSING else each for each in found]
        return result, [self.shortened(finding) for finding in found], members

    def run(self, declared: jobs.Declared, source: jobs.Source, path: Path) -> tuple[Run, list[Finding]]:
        """A job, a sweep, a pipeline or a schedule, and what is wrong with it, each thing once."""
        registered = tuple(each.name for each in self.settings.environments if isinstance(each, CustomEnvironment))
        plan = jobs.resolve(declared, self.target, source=source, environments=registered)
        name = declared.name or path.stem
        parts, locate = plan.parts, runs.location_of(declared, source)
        found = self.judged(name, plan, source)
        for place, part in parts.items():
            wrong = _not_deployable(part.job)
            found += (locate(finding.under(place) if place else finding) for finding in wrong)
        codes = self.folders.scanned(plan)
        for code in codes.values():
            found += [runs.in_folder(code.root, finding) for finding in code.findings]
        data, of_data = self.data.scanned(plan)
        found += (locate(finding) if finding.where else finding for finding in of_data)
        meant = data_module.meant(plan, self.named)
        found += map(locate, meant.findings)
        own = self.folders.own_code(plan, codes, path)
        names = tuple(dict.fromkeys(each.reference for each in meant.by_input.values()))
        return Run(name, plan, codes, own, replace(data, assets=meant.labelled), assets=names), list(
            dict.fromkeys(found)
        )

    def fabric_checks(self, declared: Sequence[Run], members: Sequence[OrderedRun]) -> registration.FabricChecks:
        """The checks of clusters on which the stack runs something, or after which something is to run."""
        checks = registration.FabricChecks()
        named = {wanted.name for member in members for wanted in member.wanted}
        for index, cluster in enumerate(self.settings.clusters):
            loc: tuple[str | int, ...] = ("clusters", index, "fabric_check")
            name = registration.name_of(cluster.name)
            if cluster.fabric_check is None or self.reading.doubts("clusters", index):
                continue
            on_it = registration.on_cluster(declared, cluster)
            wrong = registration.faults(cluster, declared, dotted(loc))
            if not wrong and (name in named or any(not run.is_schedule for run in on_it)):
                job = registration.job_of(cluster, location=self.settings.location)
                job = job.model_copy(update=self.environment(job))
                run, found = self.run(job, jobs.Source(base=registration.CODE), registration.CODE / "about.txt")
                checks.add(run, on_it)
                wrong = [replace(each, where=dotted(loc)) for each in errors(found)]
                wrong.append(registration.announced(run, dotted(loc)))
            checks.findings += (self.reading.locate(loc, each) for each in wrong)
        return checks

    def environment(self, part: jobs.Job | jobs.Component) -> dict[str, Any]:
        """The environment of a part, as the stack means it; each name is looked up once."""
        wanted = part.environment
        if not isinstance(wanted, str):
            return {}
        if wanted not in self.known_environments:
            self.known_environments[wanted] = environment_of(part, self.settings, self.root)
        return self.known_environments[wanted]

    def target(self, job: jobs.Job) -> tuple[jobs.Target, list[Finding]]:
        """The target of a job and the findings about it; each cluster is looked up once."""
        wanted = job.compute, job.instance_type
        if wanted not in self.known_targets:
            self.known_targets[wanted] = resolve_target(job, self.reading)
        return self.known_targets[wanted]

    def missing(self, loc: tuple[str | int, ...], written: str, rule: str) -> Finding:
        path = self.root / written
        folder = next((parent for parent in path.parents if is_dir(parent)), None)
        near = did_you_mean(path.relative_to(folder).parts[0], names_in(folder)) if folder else ""
        finding = Finding("file-missing", dotted(loc), f"There is no file `{written}`", rule, near)
        return self.reading.locate(loc, finding)

    def shortened(self, finding: Finding) -> Finding:
        """The finding with its file as seen from the project, where that is shorter."""
        if finding.file is None:
            return finding
        root = f"{self.root}{os.sep}"
        if finding.file.startswith(root) and "/." not in finding.file and "//" not in finding.file:  # as nearly all
            return finding.changed(file=finding.file[len(root) :])
        if not Path(finding.file).is_relative_to(self.root):
            return finding
        return finding.changed(file=os.path.relpath(finding.file, self.root))


def _not_deployable(job: jobs.Job) -> Iterator[Finding]:
    if isinstance(job.environment, jobs.Environment) and job.environment.build is not None:
        yield stated("environment-build", "environment.build")
    if job.compute is not None and job.compute.lower() == "local":
        yield stated("compute-local", "compute")


_TITLES = {rule.code: rule.title for rule in ALL}


@dataclass(frozen=True, slots=True)
class Assigned:
    """Azure Policy of one stack.

    Attributes:
        definitions: ``{"name", "properties"}`` each, as `amlstack policy export` writes them, under this stack's names.
        initiative: The set of them, likewise.
        initiative_id: Its ARM id.
        scope: ARM id of what it is assigned to.
        effects: The assignment's parameters: the effect of each definition.
        messages: Why Azure refuses, by the definition's reference.
    """

    definitions: tuple[dict[str, Any], ...]
    initiative: dict[str, Any]
    initiative_id: str
    scope: str
    effects: Mapping[str, str]
    messages: Mapping[str, str]


def assigned(spec: AzurePolicy, config: Config, names: Names, *, on: date) -> Assigned:
    """The assignments that the settings ask for.

    Args:
        spec: The settings.
        config: The rules' configuration: levels, and values that become parameters.
        names: The stack's names.
        on: The day as of which sizes are retired.
    """
    subscription = f"/subscriptions/{names.subscription}"
    suffix = hashlib.sha256(names.group_id.lower().encode()).hexdigest()[:8]
    exported = azure_policy.definitions(config, on=on, version=__version__)
    made = tuple({**one, "name": _named(one["name"], suffix)} for one in exported)
    initiative = copy.deepcopy(azure_policy.initiative(list(made), scope=subscription, version=__version__))
    initiative["name"] = _named(initiative["name"], suffix)
    codes = {one["name"]: azure_policy.code_of(was["name"]) for one, was in zip(made, exported, strict=True)}
    return Assigned(
        definitions=made,
        initiative=initiative,
        initiative_id=f"{subscription}/providers/Microsoft.Authorization/policySetDefinitions/{initiative['name']}",
        scope=names.group_id if spec.scope == "resourceGroup" else subscription,
        effects={f"effect-{name}": _effect(spec, config, code) for name, code in codes.items()},
        messages={name: f"{_TITLES[code]} [{code}] docs/reference/policies.md#{code}" for name, code in codes.items()},
    )


def check(reading: Reading, spec: AzurePolicy) -> Iterator[Finding]:
    """Codes under ``exclude`` that no definition is made of."""
    for index, code in enumerate(spec.exclude):
        if code in azure_policy.EXPRESSIBLE:
            continue
        loc = ("azurePolicy", "exclude", index)
        why = azure_policy.NOT_EXPRESSIBLE.get(code)
        seen = f"`{code}` is never assigned: {why}" if why else f"There is no rule `{code}`"
        rule = "Left out are rules that Azure Policy can express, by their code"
        remedy = "Leave it out" if why else did_you_mean(code, azure_policy.EXPRESSIBLE)
        yield reading.locate(loc, Finding("azure-policy-exclude", dotted(loc), seen, rule, remedy))


def _effect(spec: AzurePolicy, config: Config, code: str) -> str:
    by_level = azure_policy.EFFECTS[config.level(code)]
    if code in spec.exclude:
        return "Disabled"
    return "Audit" if spec.effect == "audit" and by_level == "Deny" else by_level


def _named(name: str, suffix: str) -> str:
    return f"{name[: azure_policy.NAME_LENGTH - len(suffix) - 1]}-{suffix}"
