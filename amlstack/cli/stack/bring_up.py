"""``amlstack up``: a stack is judged, planned, asked about and applied; on the sandbox its runs are followed."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack import engine
from amlstack.cli import console, stack_files
from amlstack.cli.console import Progress, print_findings, print_json, tally
from amlstack.cli.policy_pack import GivenRules
from amlstack.cli.stack import explain, plan, pulumi_stack, runs
from amlstack.cli.stack.deployment import Deployment
from amlstack.cli.workspace import job_search
from amlstack.provider.arm import ArmClient, ArmError
from amlstack.sandbox.server import daemon

if TYPE_CHECKING:
    from amlstack.cli.stack.pulumi_stack import PulumiStack
    from amlstack.cli.stack_files import StackSettings
    from amlstack.engine import Engine

NOBODY = "00000000-0000-0000-0000-000000000000"
"""Stands for the sandbox's account, whose ids are in the environment once it runs."""
NO_TERMINAL = (
    "nothing was changed: there is no terminal to ask on. `--yes` applies the plan without a question, "
    "`--preview` shows it and changes nothing"
)
WITHOUT_SECRETS = "`--without-secrets` goes with `--preview` of a stack on Azure: nothing else can do without"


@dataclass(frozen=True, slots=True)
class AskedUp:
    """A person's request for an `up`.

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
        if self.stack == engine.STACK:
            return "make up"
        return f"amlstack up --stack {self.stack}{' --sandbox' if self.sandbox else ''}"

    @property
    def wrong(self) -> str:
        """The error in the options; empty for none."""
        asks = self.stack != engine.STACK and not self.yes and not self.preview
        if asks and (self.as_json or not console.on_a_terminal()):
            return NO_TERMINAL
        return WITHOUT_SECRETS if self.without_secrets and (self.sandbox or not self.preview) else ""


def run(asked: AskedUp) -> int:
    """Brings a stack up.

    Returns:
        0 when it is as declared (after ``--preview``: when it could be), 1 for findings, a failed deployment or job and
        a no, 2 for wrong use, 3 when another command works on the stack, 130 after Ctrl-C.
    """
    values: dict[str, Any] = {"stack": asked.stack, "sandbox": asked.sandbox}
    if not asked.as_json:
        return _run(asked, values)
    code = 1
    try:
        with contextlib.redirect_stdout(sys.stderr):
            code = _run(asked, values)
    finally:
        print_json({**values, "exit_status": code})
    return code


def _run(asked: AskedUp, values: dict[str, Any]) -> int:
    progress = Progress()
    try:
        with contextlib.ExitStack() as ends:
            return _brought_up(asked, progress, values, ends)
    except explain.FAILURES as error:
        values["error"], code = explain.ending(error, asked.command)
        progress.fail(values["error"])
        return code


def _brought_up(asked: AskedUp, progress: Progress, values: dict[str, Any], ends: contextlib.ExitStack) -> int:
    began = time.time()
    if asked.wrong:
        raise explain.NotBegunError(asked.wrong, explain.USAGE)
    agreed = None if asked.keep_to is None else plan.read_agreed(asked.keep_to)
    judged = _judged(asked, progress, values)
    with pulumi_stack.hold(pulumi_stack.lock_file(asked.stack, sandbox=asked.sandbox), asked.stack, "amlstack up"):
        progress.step("Pulumi engine")
        pulumi = engine.find()
        progress.done(f"Pulumi {pulumi.version}")
        stack = _stack(asked, judged, pulumi, progress, ends)
        deployment = Deployment(stack, judged, progress, asked.rules.words(pulumi, judged.rules), agreed)
        code = _deployed(asked, deployment, values)
    if code is not None:
        return code
    if not stack.endpoint:
        values["outputs"] = outputs = stack.outputs()
        for line in studio_lines(stack_files.client_of(judged.config), outputs):
            progress.note(line)
        return 0
    return _followed(asked, deployment, values, began)


def _judged(asked: AskedUp, progress: Progress, values: dict[str, Any]) -> StackSettings:
    """The settings, with their findings printed.

    Raises:
        NotBegunError: They have errors.
    """
    progress.step(f"settings of `{asked.stack}`")
    account = {"ARM_SUBSCRIPTION_ID": NOBODY, "ARM_TENANT_ID": NOBODY} if asked.sandbox else None
    judged = stack_files.judge_settings(asked.stack, account)
    values["findings"] = [each.as_dict() for each in judged.findings]
    print_findings(judged.findings)
    if judged.errors:
        raise explain.NotBegunError(f"{tally(judged.errors)}; nothing was changed, and no engine was started", 1)
    progress.done(tally(judged.findings))
    return judged


def _stack(
    asked: AskedUp, judged: StackSettings, pulumi: Engine, progress: Progress, ends: contextlib.ExitStack
) -> PulumiStack:
    if asked.without_secrets:
        progress.step("a copy of settings and state without secrets")
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="amlstack-preview-")))
        stack = pulumi_stack.without_secrets(judged, asked.stack, pulumi, folder)
        progress.done("every secret has a made-up value: what an edit of one changes is not shown")
        return stack
    if not asked.sandbox:
        return pulumi_stack.on_azure(asked.stack, pulumi)
    progress.step("sandbox: Azure on this machine")
    stack = pulumi_stack.on_sandbox(judged, pulumi, daemon.up(), progress.note)
    progress.done(f"{stack.where}; the state is in {stack.backend}")
    if stack.made_up:
        progress.note(f"encrypted settings have a made-up value here: {', '.join(stack.made_up)}")
    return stack


def _deployed(asked: AskedUp, deployment: Deployment, values: dict[str, Any]) -> int | None:
    """The exit status where the deployment ends the command; None where it goes on."""
    progress = deployment.progress
    try:
        deployed = deployment.run(yes=asked.yes, refresh=asked.refresh, preview=asked.preview)
    finally:
        values |= deployment.as_dict()
    outcome = deployed.outcome
    values |= {"policies": [dict(each) for each in outcome.policies], "applied": deployed.updated and deployed.ok}
    if deployed.refused:
        return 1
    if not deployed.ok:
        explain.failures(progress, outcome)
        progress.note(explain.next_step(outcome, f"`{asked.command}`", updated=deployed.updated))
        values["error"] = "\n".join(text for level, _, text in outcome.diagnostics if level == "error")
        return 1
    if not deployment.plan.steps:
        progress.done("nothing to change: everything is as declared")
    elif asked.preview:
        progress.done("nothing was changed: a preview")
    else:
        progress.done(f"`{asked.stack}` is up: {deployment.plan.counts()}")
    if asked.preview:
        return 0
    deployment.tidy()
    return None


def _followed(asked: AskedUp, deployment: Deployment, values: dict[str, Any], began: float) -> int:
    """Follows the runs of a stack on the sandbox to their end, and sums the stack up."""
    progress, stack, endpoint = deployment.progress, deployment.stack, deployment.stack.endpoint
    assert endpoint is not None  # noqa: S101 - who calls has looked
    outputs, shown = stack.outputs(), deployment.waited.shown if deployment.waited else set()
    try:
        records = runs.followed(progress, outputs, endpoint, since=began, state=stack.state(), shown=shown)
    except KeyboardInterrupt:
        progress.note(f"jobs go on: `{asked.command}` follows them again, `amlstack cancel JOB` ends one")
        return explain.INTERRUPTED
    except ArmError as error:
        progress.fail(f"the sandbox does not answer any more: {error}")
        progress.note(f"jobs go on without it; `{asked.command}` again starts it and follows them")
        return 1
    values["jobs"] = {name: dict(record) for name, record in records.items()}
    edit = runs.edited_file(deployment.judged.settings)
    runs.show_summary(progress.console, outputs, records, again=asked.command, edit=edit)
    return 0 if all(record["status"] in runs.GOOD for record in records.values()) else 1


def studio_lines(arm: ArmClient, outputs: Mapping[str, Any]) -> Iterator[str]:
    """The studio's addresses of a stack's workspace and runs.

    Args:
        arm: The stack's Azure, whose cloud has a studio of its own.
        outputs: The stack's outputs.
    """
    workspace = (outputs.get("workspace") or {}).get("id")
    if not workspace:
        return
    yield f"workspace: {job_search.studio_of_workspace(arm, workspace)}"
    for name, job in (outputs.get("jobs") or {}).items():
        yield f"job {name}: {job_search.studio_of_run(arm, workspace, str(job['jobId']).rsplit('/', 1)[-1])}"
