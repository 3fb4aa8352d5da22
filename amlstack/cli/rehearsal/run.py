"""A rehearsal: what stands in its way, and the jobs of the file one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import errors
from amlstack.cli.console import print_findings, say
from amlstack.cli.logs.follower import Follower, InProgress, SandboxLogs, with_reason
from amlstack.cli.progress import Progress
from amlstack.cli.rehearsal import environments, judgement, outputs
from amlstack.cli.rehearsal import scale as scales
from amlstack.cli.rehearsal.judgement import judge, obstacles
from amlstack.cli.rehearsal.outcome import JobOutcome, first_failed, show_diagnosis, summary
from amlstack.cli.rehearsal.request import survey
from amlstack.cli.rehearsal.submit import Rehearsal
from amlstack.cli.sandbox_arm import connect
from amlstack.cli.stack import run_orders
from amlstack.diagnose import diagnose
from amlstack.provider.arm import ArmError
from amlstack.rpc import ProviderError
from amlstack.sandbox.server import daemon
from infra.runs import CodeFolders, in_folder

if TYPE_CHECKING:
    import jobs
    from amlstack.cli.rehearsal.aspects import Feasibility
    from amlstack.cli.rehearsal.outcome import Outcomes
    from amlstack.cli.rehearsal.request import RehearsalRequest, RehearsalSurvey
    from amlstack.sandbox.scale import RehearsalScale
    from amlstack.sandbox.server.endpoint import Endpoint


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
        outputs.start_afresh(progress, known.plans, yes=request.yes)
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
    for line in (*summary(job), *outputs.lines(job)):
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
