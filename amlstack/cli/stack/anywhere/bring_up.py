"""``amlstack up --stack NAME``: judged, planned, asked about, applied; on the sandbox its runs are followed."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack import engine as engines
from amlstack.base import home as homes
from amlstack.cli import consent
from amlstack.cli.console import print_findings, print_json, tally
from amlstack.cli.policy_pack import GivenRules
from amlstack.cli.progress import Progress
from amlstack.cli.stack import explain, runs, turns
from amlstack.cli.stack.anywhere import agreed_plan
from amlstack.cli.stack.anywhere import judged as judging
from amlstack.cli.stack.anywhere import place as places
from amlstack.cli.stack.anywhere.deployment import StackDeployment, failed
from amlstack.cli.stack.waited_runs import WaitedRuns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.cli.stack.anywhere.judged import JudgedStack
    from amlstack.cli.stack.anywhere.place import StackPlace
    from amlstack.engine import Engine

INTERRUPTED = 130
USAGE = 2


@dataclass(frozen=True, slots=True)
class AskedUp:
    """What a person asked for.

    Attributes:
        stack: Name of the stack; organization and project may stand before it.
        sandbox: Whether to bring it up on this machine's sandbox.
        yes, refresh, preview, as_json: The options of these names.
        keep_to: File of the plan that alone may be applied, as `--preview --json` prints it.
        rules: Pack and configuration that were given from outside.
        without_secrets: Whether a preview opens nothing that is encrypted.
    """

    stack: str
    sandbox: bool
    yes: bool = False
    refresh: bool = False
    preview: bool = False
    as_json: bool = False
    keep_to: Path | None = None
    rules: GivenRules = field(default_factory=GivenRules)
    without_secrets: bool = False

    @property
    def command(self) -> str:
        """The same again."""
        return f"amlstack up --stack {self.stack}{' --sandbox' if self.sandbox else ''}"


@dataclass(slots=True)
class Result:
    """What is printed for a program."""

    values: dict[str, Any] = field(default_factory=dict)


def run(asked: AskedUp) -> int:
    """Brings a stack up.

    Returns:
        0 when it is as declared (after ``--preview``: when it could be), 1 for findings, a failed deployment or job and
        a no, 2 for wrong use, 3 when another command works on the stack, 130 after Ctrl-C.
    """
    result = Result({"stack": asked.stack, "sandbox": asked.sandbox})
    if not asked.as_json:
        return _run(asked, result)
    code = 1
    try:
        with contextlib.redirect_stdout(sys.stderr):
            code = _run(asked, result)
    finally:
        print_json({**result.values, "exit_status": code})
    return code


def _run(asked: AskedUp, result: Result) -> int:
    progress, began = Progress(), time.time()

    def ended(message: str, code: int) -> int:
        progress.fail(message)
        result.values["error"] = message
        return code

    if not asked.yes and not asked.preview and (asked.as_json or not consent.on_a_terminal()):
        return ended(
            "nothing was changed: there is no terminal to ask on. `--yes` applies the plan without a question, "
            "`--preview` shows it and changes nothing",
            USAGE,
        )
    if asked.without_secrets and (asked.sandbox or not asked.preview):
        return ended(
            "`--without-secrets` goes with `--preview` of a stack on Azure: nothing else can do without", USAGE
        )
    ends = contextlib.ExitStack()
    try:
        agreed = None if asked.keep_to is None else agreed_plan.read(asked.keep_to)
        progress.step(f"settings of `{asked.stack}`")
        judged = judging.judge(asked.stack, _account(asked))
        result.values["findings"] = [each.as_dict() for each in judged.findings]
        print_findings(judged.findings)
        if judged.errors:
            return ended(f"{tally(judged.errors)}; nothing was changed, and no engine was started", 1)
        progress.done(tally(judged.findings))
        with turns.alone(places.turn_of(asked.stack, sandbox=asked.sandbox), asked.stack, "amlstack up"):
            progress.step("Pulumi engine")
            engine = engines.find()
            progress.done(f"Pulumi {engine.version}")
            place = _place(asked, judged, engine, progress, ends)
            deployment = StackDeployment(engine, place, judged, progress, agreed=agreed, rules=asked.rules)
            if place.endpoint:
                deployment.waited = WaitedRuns(progress, place.endpoint.home)
            code = _deployed(asked, deployment, progress, result)
        if code is not None:
            return code
        if not place.endpoint:
            return _left_running(place, progress, result)
        return _followed(place, progress, result, began, deployment.waited.shown if deployment.waited else set())
    except (judging.NoStackError, agreed_plan.NoPlanError) as error:
        return ended(str(error), USAGE)
    except turns.BusyError as error:
        return ended(str(error), turns.BUSY)
    except (engines.EngineError, homes.ForeignHomeError, _sandbox_error()) as error:
        return ended(str(error), 1)
    except KeyboardInterrupt as interrupted:
        return ended(explain.interrupted(interrupted, asked.command), INTERRUPTED)
    finally:
        ends.close()


def _account(asked: AskedUp) -> Mapping[str, str] | None:
    """The sandbox has its own account, which stands in the environment once it runs."""
    if not asked.sandbox:
        return None
    nobody = "00000000-0000-0000-0000-000000000000"
    return {"ARM_SUBSCRIPTION_ID": nobody, "ARM_TENANT_ID": nobody}


def _place(
    asked: AskedUp, judged: JudgedStack, engine: Engine, progress: Progress, ends: contextlib.ExitStack
) -> StackPlace:
    if asked.without_secrets:
        progress.step("a copy of settings and state without secrets")
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="amlstack-preview-")))
        place = places.without_secrets(judged, asked.stack, engine, folder)
        progress.done("every secret has a made-up value: what an edit of one changes is not shown")
        return place
    if not asked.sandbox:
        return places.on_azure(asked.stack, engine)
    from amlstack.sandbox.server import daemon

    progress.step("sandbox: Azure on this machine")
    place = places.on_the_sandbox(judged, engine, daemon.up())
    progress.done(f"{place.where}; the state is in {place.backend}")
    if place.made_up:
        progress.note(f"encrypted settings have a made-up value here: {', '.join(place.made_up)}")
    return place


def _deployed(asked: AskedUp, deployment: StackDeployment, progress: Progress, result: Result) -> int | None:
    """The exit status where the deployment ends the command; None where it goes on."""
    try:
        deployed = deployment.run(yes=asked.yes, refresh=asked.refresh, preview=asked.preview)
    finally:
        result.values |= deployment.as_dict()
    result.values |= {
        "policies": [dict(each) for each in deployed.outcome.policies],
        "applied": deployed.updated and deployed.ok,
    }
    if deployed.refused:
        return 1
    if not deployed.ok:
        failed(progress, deployed, f"`{asked.command}`")
        result.values["error"] = "\n".join(text for level, _, text in deployed.outcome.diagnostics if level == "error")
        return 1
    if asked.preview:
        progress.done("nothing was changed: a preview" if deployment.plan.steps else explain.changes(deployed.outcome))
        return 0
    progress.done(f"`{asked.stack}` is up: {deployment.plan.counts() or 'nothing to change'}")
    deployment.tidy()
    return None


def _followed(place: StackPlace, progress: Progress, result: Result, began: float, shown: set[str]) -> int:
    from amlstack.provider.arm import ArmError

    assert place.endpoint is not None  # noqa: S101 - who calls has looked
    state = place.state()
    try:
        records = runs.followed(progress, place.outputs(), place.endpoint, since=began, state=state, shown=shown)
    except ArmError as error:
        progress.fail(f"the sandbox does not answer any more: {error}")
        return 1
    result.values["jobs"] = {name: dict(record) for name, record in records.items()}
    return 0 if all(record["status"] in runs.GOOD for record in records.values()) else 1


def _left_running(place: StackPlace, progress: Progress, result: Result) -> int:
    """On Azure runs go on by themselves: where each can be looked at."""
    outputs: Any = place.outputs()
    result.values["outputs"] = outputs
    for line in studio(outputs):
        progress.note(line)
    return 0


def studio(outputs: Mapping[str, Any]) -> Iterator[str]:
    """Where the workspace and the runs of a stack are looked at: the studio's addresses.

    Args:
        outputs: The stack's outputs.
    """
    workspace = (outputs.get("workspace") or {}).get("id")
    if not workspace:
        return
    yield f"workspace: https://ml.azure.com/?wsid={workspace}"
    for name, job in (outputs.get("jobs") or {}).items():
        run = str(job["jobId"]).rsplit("/", 1)[-1]
        yield f"job {name}: https://ml.azure.com/runs/{run}?wsid={workspace}"


def _sandbox_error() -> type[Exception]:
    from amlstack.sandbox.server import daemon

    return daemon.SandboxError
