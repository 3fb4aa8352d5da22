"""A rehearsal: what stands in its way, and the jobs of the file one after the other, without an engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack import processes, snapshot
from amlstack.base import api_versions
from amlstack.base import home as homes
from amlstack.base.findings import errors
from amlstack.cli.console import Progress, print_findings, say
from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
from amlstack.cli.rehearsal import judgement, scale
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal import site as sites
from amlstack.cli.rehearsal.inputs import GROUP
from amlstack.cli.rehearsal.judgement import judge, obstacles
from amlstack.cli.rehearsal.outcome import (
    JobOutcome,
    Outcomes,
    first_failed,
    output_lines,
    show_diagnosis,
    start_afresh,
    summary,
)
from amlstack.cli.rehearsal.preflight import check_for
from amlstack.cli.rehearsal.request import RehearsalRequest, RehearsalSurvey, survey
from amlstack.cli.sandbox_arm import connect
from amlstack.cli.stack import run_orders
from amlstack.cli.workspace.submission import register
from amlstack.diagnose import diagnose
from amlstack.provider import runs
from amlstack.provider.arm import API_VERSION, ArmClient, ArmError
from amlstack.provider.resource import Services
from amlstack.provider.runs import Runs
from amlstack.rpc import Host, ProviderError
from amlstack.sandbox import gpu_code
from amlstack.sandbox.files import environments as files_environments
from amlstack.sandbox.scale import QUERY, RehearsalScale
from amlstack.sandbox.server import daemon
from infra.names import Names
from infra.properties import cluster_properties
from infra.runs import CodeFolders, in_folder
from infra.runs.registration import Registration
from infra.settings import Cluster, ClusterIdentity, Nodes
from jobs.wire.command import with_secrets

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.rehearsal.aspects import Feasibility
    from amlstack.sandbox.server.daemon import Endpoint

LOCATION = "westeurope"
DEFAULT_SIZE = "Standard_ND96asr_v4"
"""A cluster of unknown size counts as one of this size: in the sandbox every size runs on the same machine."""


def _submit(
    arm: ArmClient, endpoint: Endpoint, known: RehearsalSurvey, index: int, codes: Mapping[str, snapshot.Snapshot]
) -> str:
    """Register what a job, a sweep or a pipeline needs, in the order of `up`, and submit it under an id of its own.

    Args:
        arm: A client of the sandbox's resource manager.
        endpoint: The sandbox.
        known: What was asked for and found out. The body names inputs and environments as they are declared.
        index: Which of the plans is submitted.
        codes: The content of each part's folder, by the part's place.

    Returns:
        The job's ARM id.

    Raises:
        ArmError, ProviderError: The sandbox refused something.
    """
    plan, source, scale = known.plans[index], known.sources[index], known.request.scale
    name, names = known.name_of(plan), Names(endpoint.subscription, GROUP, GROUP)
    registration = Registration.of(name, plan, codes, names)
    for resource, version, body in _foundation(names, endpoint.tenant, plan):
        # Always a PUT: an equal one changes nothing, and a cluster of that name may have to grow.
        arm.finish(arm.put(resource, body, version))
    register(Services(arm, Runs(arm), Host(), threading.Event()), names.workspace_id, registration)
    run = f"{name}-{os.urandom(3).hex()}"
    files_environments.write_inputs(endpoint.home, run, source.by_step, source.given, source.outputs)
    files_environments.write(endpoint.home, run, source.stand_ins)
    files_environments.write_code(endpoint.home, run, code_folders(plan))
    if not known.request.shim:
        gpu_code.keep_off(endpoint.home, run)
    sent = _addressed(with_secrets(registration.body, source.secrets), source.by_step.get("", {}))
    job_id, wanted = f"{names.workspace_id}/jobs/{run}", {} if scale is None else {QUERY: str(scale)}
    site = known.sites[index]
    if site is not None or (endpoint.home / homes.SITE).is_file():
        from amlstack.sandbox import slurm  # only for who has one

        wanted[slurm.QUERY] = "machine" if site is None else site.text()
    arm.put(job_id, sent, runs.version_for(sent["properties"]), query=wanted)
    return job_id


def _foundation(names: Names, tenant: str, plan: jobs.Planned) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield id, API version (as azure-native has it) and body of the workspace, what it stands on, and the clusters."""
    storage, vault = names.id("storage"), names.id("key_vault")
    yield names.group_id, api_versions.RESOURCES, {"location": LOCATION}
    account = {"kind": "StorageV2", "sku": {"name": "Standard_LRS"}, "properties": {"allowSharedKeyAccess": False}}
    yield storage, api_versions.STORAGE, {"location": LOCATION, **account}
    sku = {"family": "A", "name": "standard"}
    secrets = {"tenantId": tenant, "sku": sku, "enableRbacAuthorization": True}
    yield vault, api_versions.VAULTS, {"location": LOCATION, "properties": secrets}
    parts = {"storageAccount": storage, "keyVault": vault}
    workspace = {"location": LOCATION, "identity": {"type": "SystemAssigned"}, "properties": parts}
    yield names.workspace_id, API_VERSION, workspace
    for cluster in clusters(plan):
        yield names.cluster_id(cluster.name), API_VERSION, cluster_properties(cluster, location=LOCATION, tags={})


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
        if name := part.target.cluster:
            most = scales.most_nodes(plan, place)
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
    found = (*known.findings, *(each for each in known.missing if each not in in_answers))
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
    if not _is_ready(known) or not all(
        scales.agreed(progress, plan, request.scale, yes=request.yes or site is not None)
        for plan, site in zip(known.plans, known.sites, strict=True)
    ):
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
        with processes.interrupted_by_any():
            _in_order(known, outcomes, daemon.up(), progress)
    except (daemon.SandboxError, ArmError, ProviderError) as error:
        progress.fail(str(error))
        outcomes.error = str(error)
        return 1
    return 0 if all(each.is_good for each in outcomes.jobs) else 1


def _answers(known: RehearsalSurvey, *, agreed: bool) -> list[Feasibility]:
    checks = [check_for(known, index) for index in range(len(known.plans) if known.request.preflight else 0)]
    return [
        judge(each.name_of(plan), plan, source, each, agreed=agreed, site=site)
        for each in (*checks, known)
        for plan, source, site in zip(each.plans, each.sources, each.sites, strict=True)
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
    print_findings(known.missing, err=True)
    if errors(known.missing):
        say("nothing was submitted", err=True)
        return False
    return True


def _in_order(known: RehearsalSurvey, outcomes: Outcomes, endpoint: Endpoint, progress: Progress) -> None:
    """The jobs of a file, each once those of them that it comes after have completed; else it is not started."""
    file, plans = known.request.file, known.plans
    for line in run_orders.elsewhere(plans, file):
        progress.note(line)
    for index, earlier in run_orders.in_order(plans, file):
        name, failed = known.name_of(plans[index]), outcomes.failed([known.name_of(plans[each]) for each in earlier])
        if failed is None and known.request.preflight:
            check = check_for(known, index)
            _rehearse(check, 0, _outcome(check, 0, outcomes), endpoint, progress)
            failed = outcomes.failed([check.name_of(check.plans[0])])
        outcome = _outcome(known, index, outcomes)
        if failed is None:
            _rehearse(known, index, outcome, endpoint, progress)
        else:
            outcome.error = f"it comes after `{failed}`, which has not completed, and was not started"
            progress.fail(f"job {name}: {outcome.error}")


def _outcome(known: RehearsalSurvey, index: int, outcomes: Outcomes) -> JobOutcome:
    """The outcome of a job that has not begun, as the next one of the rehearsal."""
    plan, source = known.plans[index], known.sources[index]
    parts = tuple(scales.extents(plan, known.request.scale))
    unproven = judgement.unproven(plan, parts, source, known, known.sites[index])
    outcomes.jobs.append(JobOutcome(known.name_of(plan), parts, tuple(unproven), source.by_step))
    return outcomes.jobs[-1]


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
    job_id = _submit(arm, endpoint, known, index, codes)
    outcome.job = job = Follower(arm, job_id, SandboxLogs(endpoint.home), InProgress(progress), shown)
    progress.step(f"job {job.name}: {_extent(plan, request.scale)}")
    if (site := known.sites[index]) is not None:
        progress.note(f"its nodes come from Slurm: {sites.words(site)}")
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
    folders = [(child.label, child.files.folder) for child in job.children.values()] or [("", job.folder)]
    outcome.worlds = tuple(scale.worlds_of(folders, outcome.extents))
    if outcome.status == "Completed":
        outcome.error = "; ".join(outcome.alone)
        outcome.unproven += tuple(each.unproven for each in outcome.worlds if each.unproven)
    _show_end(progress, outcome, job, only=shown is not None)


def _show_end(progress: Progress, outcome: JobOutcome, job: Follower, *, only: bool) -> None:
    """Prints how a job ended, where its files are, and the first cause in its logs if it failed."""
    for line in (*summary(job), *output_lines(job)):
        progress.note(line)
    if outcome.status == "Completed":
        for each in outcome.unproven:
            progress.note(f"unproven: {each}")
    if outcome.status == "Completed" and outcome.alone:
        progress.fail(f"job {job.name} completed, and its ranks did not train together: {outcome.error}")
        progress.note(f"logs and outputs are in {job.folder}")
        return
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
