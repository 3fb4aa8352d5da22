"""A rehearsal: what stands in its way, and the jobs of the file one after the other, without an engine."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.findings import errors
from amlstack.cli.console import Progress, print_findings, say
from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
from amlstack.cli.rehearsal import environments, judgement
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.inputs import GROUP
from amlstack.cli.rehearsal.judgement import judge, obstacles
from amlstack.cli.rehearsal.outcome import JobOutcome, first_failed, output_lines, show_diagnosis, start_afresh, summary
from amlstack.cli.rehearsal.request import survey
from amlstack.cli.sandbox_arm import connect
from amlstack.cli.stack import run_orders
from amlstack.cli.workspace.submission import register
from amlstack.diagnose import diagnose
from amlstack.provider import runs
from amlstack.provider.arm import API_VERSION, ArmError
from amlstack.provider.resource import Services
from amlstack.provider.runs import Runs
from amlstack.rpc import Host, ProviderError
from amlstack.sandbox import gpu_code
from amlstack.sandbox.files import environments as files_environments
from amlstack.sandbox.files import origins
from amlstack.sandbox.scale import QUERY
from amlstack.sandbox.server import daemon
from infra.cluster_properties import properties
from infra.names import Names
from infra.runs import CodeFolders, in_folder
from infra.runs.registration import Registration
from infra.settings import Cluster, ClusterIdentity, Nodes
from jobs.wire.references import with_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import jobs
    from amlstack import snapshot
    from amlstack.cli.rehearsal.aspects import Feasibility
    from amlstack.cli.rehearsal.inputs import Data
    from amlstack.cli.rehearsal.outcome import Outcomes
    from amlstack.cli.rehearsal.request import RehearsalRequest, RehearsalSurvey
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.scale import RehearsalScale
    from amlstack.sandbox.server.endpoint import Endpoint

LOCATION = "westeurope"
DEFAULT_SIZE = "Standard_ND96asr_v4"
"""What a cluster of unknown size is taken for: a job must run somewhere, and here every size has the same two hands."""
MOST_AT_ONCE = 4
"""Trials for which a cluster that no stack declares has nodes: they all run on this machine."""


_VERSIONS = {"": "2024-03-01", "Microsoft.Storage": "2024-01-01", "Microsoft.KeyVault": "2024-11-01"}
"""Api-versions by namespace, as azure-native speaks to them; that of resource groups first."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """The workspace in which jobs are rehearsed.

    Attributes:
        arm: A client of the sandbox's resource manager.
        names: Names and ids in the workspace.
        tenant: The directory that the key vault belongs to.
        home: The sandbox's home.
    """

    arm: ArmClient
    names: Names
    tenant: str
    home: Path

    @classmethod
    def on(cls, endpoint: Endpoint, arm: ArmClient) -> Rehearsal:
        """The rehearsal workspace of a running sandbox."""
        return cls(arm, Names(endpoint.subscription, GROUP, GROUP), endpoint.tenant, endpoint.home)

    def submit(
        self,
        name: str,
        plan: jobs.Planned,
        codes: Mapping[str, snapshot.Snapshot],
        source: Data,
        scale: RehearsalScale | None = None,
        *,
        no_shim: bool = False,
    ) -> str:
        """Register what a job, a sweep or a pipeline needs, in the order of `up`, and submit it under an id of its own.

        Args:
            name: The first part of its id.
            plan: What is submitted.
            codes: The content of each part's folder, by the part's place.
            source: Inputs and environments that are read on this machine; the body names them as declared.
            scale: What the sandbox starts at most of it; the body is the same.
            no_shim: GPU calls stay as they are where the machine has no GPU.

        Returns:
            The job's ARM id.

        Raises:
            ArmError, ProviderError: The sandbox refused something.
        """
        registration = Registration.of(name, plan, codes, self.names)
        self._workspace(LOCATION)
        for cluster in clusters(plan):
            self._make(self.names.cluster_id(cluster.name), properties(cluster, location=LOCATION, tags={}))
        services = Services(self.arm, Runs(self.arm), Host(), threading.Event())
        register(services, self.names.workspace_id, registration)
        job_id = f"{self.names.workspace_id}/jobs/{name}-{os.urandom(3).hex()}"
        run = job_id.rsplit("/", 1)[-1]
        origins.write_inputs(self.home, run, source.by_step, source.given)
        files_environments.write(self.home, run, source.stand_ins)
        origins.write_code(self.home, run, code_folders(plan))
        if no_shim:
            gpu_code.keep_off(self.home, run)
        wanted = {} if scale is None else {QUERY: str(scale)}
        body = with_secrets(registration.body, source.secrets)
        sent = _addressed(body, source.by_step.get("", {}))
        answer = self.arm.put(job_id, sent, runs.version_for(sent["properties"]), query=wanted)
        if scale is not None and answer.headers.get(QUERY) != str(scale):
            # A server that was started before this option was known would start every rank.
            self.arm.post(f"{job_id}/cancel")
            raise ArmError(
                0, "SandboxTooOld", "the running sandbox knows no scale: run `amlstack sandbox down`, then again"
            )
        return job_id

    def _workspace(self, location: str) -> None:
        """Make the workspace and what it stands on, unless they are there."""
        names = self.names
        self._make(names.group_id, {"location": location})
        storage = names.id("storage")
        vault = names.id("key_vault")
        self._make(
            storage,
            {
                "location": location,
                "kind": "StorageV2",
                "sku": {"name": "Standard_LRS"},
                "properties": {"allowSharedKeyAccess": False},
            },
        )
        self._make(
            vault,
            {
                "location": location,
                "properties": {
                    "tenantId": self.tenant,
                    "sku": {"family": "A", "name": "standard"},
                    "enableRbacAuthorization": True,
                },
            },
        )
        self._make(
            names.workspace_id,
            {
                "location": location,
                "identity": {"type": "SystemAssigned"},
                "properties": {"storageAccount": storage, "keyVault": vault},
            },
        )

    def _make(self, resource: str, body: dict[str, Any]) -> None:
        # Always a PUT: an equal one changes nothing, and a cluster of that name may have to grow.
        kind = resource.rpartition("/providers/")[2].split("/", 1)[0] if "/providers/" in resource else ""
        self.arm.finish(self.arm.put(resource, body, _VERSIONS.get(kind, API_VERSION)))


def _addressed(body: dict[str, Any], data: Mapping[str, Path]) -> dict[str, Any]:
    """A body whose data all have an address: a component's own inputs have none, and get that of what is given."""
    properties = body["properties"]
    inputs = {
        name: {**port, "uri": data[name].as_uri()}
        if name in data and port.get("jobInputType") != "literal" and not port.get("uri")
        else port
        for name, port in (properties.get("inputs") or {}).items()
    }
    return {**body, "properties": {**properties, "inputs": inputs}} if inputs else body


def code_folders(plan: jobs.Planned) -> dict[str, list[Path]]:
    """The folders of this machine that each part's code was taken from, by step (empty for a job or a sweep)."""
    found: dict[str, list[Path]] = {}
    for place, part in plan.parts.items():
        code = part.job.code
        if code is not None and code.local:
            includes = [(part.base / name).parent for name in code.includes]
            found[plan.step(place)] = list(dict.fromkeys([part.base / code.path, *includes]))
    return found


def clusters(plan: jobs.Planned) -> list[Cluster]:
    """The clusters that a plan's parts name, each as large as the largest of its jobs wants it.

    One that no stack declares is of `DEFAULT_SIZE` and has as many nodes as can run at once. Names are not validated,
    as the job may name a cluster of somebody else.
    """
    found: dict[str, Cluster] = {}
    for place, part in plan.parts.items():
        limits = plan.trials(place)
        trials = 1 if limits is None else limits.max_concurrent_trials or limits.max_total_trials or MOST_AT_ONCE
        at_once = min(trials, MOST_AT_ONCE)
        if name := part.target.cluster:
            most = part.target.max_nodes or part.nodes * at_once
            if name not in found or found[name].nodes.max < most:
                size = part.target.size if part.target.facts is not None else None
                found[name] = Cluster.model_construct(
                    name=name,
                    size=size or DEFAULT_SIZE,
                    nodes=Nodes.model_construct(min=0, max=most, idle="PT2M"),
                    identity=ClusterIdentity(type="none"),
                )
    return list(found.values())


def dry_run(request: RehearsalRequest, *, as_json: bool) -> int:
    """Prints whether every job can be rehearsed here; the exit status is 0 where it can, else 2."""
    known = survey(request)
    if request.only not in (None, *known.names):
        say(known.no_job, err=True)
        return 2
    in_answers = {each for source in known.sources for each in source.findings}
    of_inputs = (each for each in known.of_inputs if each not in in_answers)
    found = (*known.findings, *of_inputs, *known.of_secrets)
    answers = _answers(known, agreed=request.yes)
    possible = bool(answers) and not errors(found) and all(answer.possible for answer in answers)
    if not as_json:
        print_findings(found)
    judgement.show_answers(request.file, answers, found, possible=possible, as_json=as_json)
    return 0 if possible else 2


def rehearse(request: RehearsalRequest, outcomes: Outcomes) -> int:
    """Runs the jobs that are meant, and adds the outcome of each.

    Returns:
        The exit status: 0 all completed, 1 one failed or was refused, 2 nothing was started.
    """
    known = survey(request)
    print_findings(known.findings)
    if errors(known.findings):
        return 1
    progress = Progress()
    if not _is_ready(known) or not _is_agreed(known, progress):
        return 2
    if in_the_way := [each for answer in _answers(known, agreed=True) for each in obstacles(answer)]:
        progress.fail("it cannot be rehearsed here; nothing was started")
        for each in in_the_way:
            progress.note(f"{each.about}: {judgement.line_of(each).removeprefix('NO: ')}")
        outcomes.error = "; ".join(each.text for each in in_the_way)
        return 2
    if request.fresh:
        start_afresh(progress, known.plans, yes=request.yes)
    try:
        progress.step("sandbox: Azure on this machine")
        _in_order(known, outcomes, daemon.up(), progress)
    except (daemon.SandboxError, ArmError, ProviderError) as error:
        progress.fail(str(error))
        outcomes.error = str(error)
        if isinstance(error, ArmError):
            for plan in known.plans:
                print_findings(tuple(environments.unregistered(plan, known.where, request.file, str(error))))
        return 1
    return 0 if all(each.is_good for each in outcomes.jobs) else 1


def _answers(known: RehearsalSurvey, *, agreed: bool) -> list[Feasibility]:
    return [
        judge(known.name_of(plan), plan, source, known, agreed=agreed)
        for plan, source in zip(known.plans, known.sources, strict=True)
    ]


def _is_ready(known: RehearsalSurvey) -> bool:
    """True where the job, the rank and the inputs asked for exist; those that do not are printed."""
    shown, scale = known.request.shown, known.request.scale
    if not known.plans:
        say(known.no_job, err=True)
        return False
    most = max(
        nodes * ranks for plan in known.plans for part in scales.extents(plan, scale) for nodes, ranks in [part.started]
    )
    if shown is not None and shown >= most:
        say(f"--only-rank {shown}: there are ranks 0 to {most - 1}", err=True)
        return False
    missing = (*known.of_inputs, *known.of_secrets)
    print_findings(missing, err=True)
    if errors(missing):
        say("nothing was submitted", err=True)
        return False
    return True


def _is_agreed(known: RehearsalSurvey, progress: Progress) -> bool:
    """True where a job larger than this machine was agreed to."""
    request = known.request
    return all(scales.agreed(progress, request.file, plan, request.scale, yes=request.yes) for plan in known.plans)


def _in_order(known: RehearsalSurvey, outcomes: Outcomes, endpoint: Endpoint, progress: Progress) -> None:
    """The jobs of a file, each once those of them that it comes after have completed; else it is not started."""
    file, plans = known.request.file, known.plans
    for line in run_orders.elsewhere(plans, file):
        progress.note(line)
    for index, earlier in run_orders.in_order(plans, file):
        name = known.name_of(plans[index])
        outcomes.add(JobOutcome.of(name, plans[index], known.sources[index].by_step, known.request.scale))
        if (failed := outcomes.failed([known.name_of(plans[each]) for each in earlier])) is None:
            _rehearse(known, index, outcomes.jobs[-1], endpoint, progress)
        else:
            outcomes.jobs[-1].error = f"it comes after `{failed}`, which has not completed, and was not started"
            progress.fail(f"job {name}: {outcomes.jobs[-1].error}")


def _rehearse(known: RehearsalSurvey, index: int, outcome: JobOutcome, endpoint: Endpoint, progress: Progress) -> None:
    """One job, sweep or pipeline from upload to end, which its outcome holds afterwards."""
    request, shown = known.request, known.request.shown
    plan, source = known.plans[index], known.sources[index]
    codes = CodeFolders().scanned(plan)
    found = tuple(in_folder(code.root, each) for code in codes.values() for each in code.findings)
    printed = {(each.code, each.seen) for each in known.findings}
    print_findings(dict.fromkeys(each for each in found if (each.code, each.seen) not in printed))
    if errors(found):
        outcome.error = "the code cannot be uploaded as it is"
        return
    arm = connect(endpoint)
    workspace = Rehearsal.on(endpoint, arm)
    job_id = workspace.submit(outcome.name, plan, codes, source, request.scale, no_shim=not request.shim)
    outcome.job = job = Follower(arm, job_id, SandboxLogs(endpoint.home), InProgress(progress), shown)
    progress.step(f"job {job.name}: {_extent(plan, request.scale)}")
    for line in (*source.lines, *source.environments):
        progress.note(line)
    if shown is not None:
        progress.note(f"only lines of rank {shown} are printed; all logs are kept in {job.folder / 'user_logs'}")
    try:
        job.follow()
    except KeyboardInterrupt:
        progress.step("interrupted: cancelling the job")
        arm.post(f"{job.job_id}/cancel")
        job.lines = False
        job.follow()
        raise
    outcome.status, outcome.error = job.status, with_reason(arm, job_id, job.record)["error"]
    _show_end(progress, outcome, job, only=shown is not None)


def _show_end(progress: Progress, outcome: JobOutcome, job: Follower, *, only: bool) -> None:
    """Prints how a job ended, where its files are, and the first cause in its logs if it failed."""
    for line in (*summary(job), *output_lines(job)):
        progress.note(line)
    if outcome.is_good:
        progress.done(f"job {job.name} completed; its logs and outputs are in {job.folder}")
        return
    progress.fail(f"job {job.name} {outcome.status.lower()}: {outcome.error or 'no reason was recorded'}")
    progress.note(f"logs and outputs are in {job.folder}")
    if (culprit := first_failed(job)) is not None:
        outcome.diagnosis = show_diagnosis(progress, diagnose([culprit]), culprit, job.name, whole=only)


def _extent(plan: jobs.Planned, scale: RehearsalScale | None) -> str:
    """The number of ranks of a single job; of anything else its kind."""
    single = plan.parts.get("")
    if single is None:
        return f"a {type(plan.job).__name__.lower()}"
    (extent,) = scales.extents(plan, scale)
    if scale is not None:
        return scales.shown(extent)
    nodes, each = extent.started
    ranks = f"{nodes * each} ranks" if single.world_size else "ranks counted by the job itself"
    return f"{ranks} on {nodes} node{'' if nodes == 1 else 's'}"
