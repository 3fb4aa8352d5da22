"""A deployment of any stack: preview, the plan with its cost, a question, and only then the update."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack import engine as engines
from amlstack.base import paths
from amlstack.cli import consent
from amlstack.cli.policy_pack import GivenRules
from amlstack.cli.stack import explain, losses, turns, unchanged
from amlstack.cli.stack.anywhere import cost, plan
from amlstack.cli.stack.deploy import Deployed
from amlstack.cli.stack.missing_resources import lost
from amlstack.cli.stack.summary import verdict_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.progress import Progress
    from amlstack.cli.stack.anywhere.agreed_plan import AgreedPlan
    from amlstack.cli.stack.anywhere.judged import JudgedStack
    from amlstack.cli.stack.anywhere.place import StackPlace
    from amlstack.cli.stack.state import State
    from amlstack.cli.stack.waited_runs import WaitedRuns
    from amlstack.engine import Engine, Outcome


@dataclass(slots=True)
class StackDeployment:
    """One stack about to be deployed.

    Attributes:
        engine: The engine.
        place: Where the stack lives.
        judged: Its settings.
        progress: Where what happens is printed.
        plan: What the preview would do, once there was one.
        waited: Prints the logs of runs that the engine waits for; None on Azure.
        agreed: The plan that alone may be applied; None for any.
        unchanged: Whether the preview found nothing to do.
        rules: Pack and configuration that were given from outside.
    """

    engine: Engine
    place: StackPlace
    judged: JudgedStack
    progress: Progress
    plan: plan.StackPlan = field(default_factory=plan.StackPlan)
    waited: WaitedRuns | None = None
    agreed: AgreedPlan | None = None
    unchanged: bool = False
    rules: GivenRules = field(default_factory=GivenRules)

    def run(self, *, yes: bool, refresh: bool, preview: bool) -> Deployed:
        """Deploys, or shows what it would do.

        Args:
            yes: Whether to apply without a question.
            refresh: Whether to look at the service first.
            preview: Whether to end after the plan.

        Raises:
            BusyError: The engine found the stack locked.
            EngineError: The state is out of reach.
            EngineInterruptedError: Ctrl-C.
        """
        before = self.place.state()
        missing = self._missing(before)
        if not preview and (missing or refresh):
            if missing:
                number = f"{len(missing)} resource{'' if len(missing) == 1 else 's'}"
                self.progress.note(f"the state records {number} that the sandbox does not have: looking again")
            refreshed = self._engine("refresh", "--yes", "--skip-preview", phases=("refreshing",))
            if refreshed.code and not missing:
                return Deployed(refreshed, updated=False)
            before = self.place.state()
        with tempfile.TemporaryDirectory(prefix="amlstack-plan-") as folder:
            file = Path(folder) / "plan.json"
            words = ("--save-plan", str(file), *(("--refresh",) if preview and refresh else ()))
            looked = self._engine("preview", *words, *self._pack, phases=("previewing",))
            self.unchanged = unchanged.by(looked, file, before)
        if looked.code or self.unchanged:
            return Deployed(looked, updated=False)
        self.show(looked, before)
        if self.agreed is not None and (differs := tuple(self.agreed.differences(self.plan.as_list()))):
            self.progress.fail(f"nothing was changed: this is not the plan of {self.agreed.file}")
            for line in differs:
                self.progress.note(line)
            return Deployed(looked, updated=False, refused=True)
        if preview:
            return Deployed(looked, updated=False)
        if not yes and not consent.given(f"Apply this to `{self.place.stack}` on {self.place.where}?"):
            self.progress.note("nothing was changed")
            return Deployed(looked, updated=False, refused=True)
        done = self._engine("up", "--yes", "--skip-preview", *self._pack, phases=("updating",))
        return Deployed(done, updated=True)

    def tidy(self) -> None:
        """Clears operations that a killed engine left open and this deployment has completed."""
        if self.place.state().pending:
            self._engine("refresh", "--yes", "--skip-preview", "--clear-pending-creates", phases=("refreshing",))

    def show(self, looked: Outcome, before: State) -> None:
        """Prints the plan: resources, what is lost with them, what the policies say, what it costs."""
        counts = self.plan.counts()
        self.progress.step(f"plan of `{self.place.stack}` on {self.place.where}: {counts or 'the state alone changes'}")
        for line in self.plan.lines():
            self.progress.note(line)
        if taken := losses.of(looked.ops, before, paths.home()):
            self.progress.step("it takes away what holds data or records:")
            for line in taken:
                self.progress.note(line)
        self.progress.step("policies")
        for line in verdict_lines(looked, known={finding.code for finding in self.judged.findings}):
            self.progress.note(line)
        if self.judged.settings is not None:
            self.progress.step("cost per hour on Azure")
            for line in cost.lines(cost.of(self.judged.settings)):
                self.progress.note(line)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        costs = cost.of(self.judged.settings) if self.judged.settings else ()
        return {"plan": self.plan.as_list(), "unchanged": self.unchanged, "cost": cost.as_dict(costs)}

    @property
    def _pack(self) -> tuple[str, ...]:
        return self.rules.words(self.engine, self.judged.rules)

    def _missing(self, before: State) -> tuple[str, ...]:
        return () if self.place.endpoint is None else lost(before, self.place.endpoint.home)

    def _engine(self, verb: str, *words: str, phases: tuple[str, ...]) -> Outcome:
        follow = self.progress.follow(*phases)
        if self.waited:
            follow = self.waited.before(follow)

        def taken(event: Mapping[str, Any]) -> None:
            if phases == ("previewing",):
                self.plan.take(event)
            follow(event)

        command = [verb, "--non-interactive", "--stack", self.place.stack, *self.place.options, *words]

        def once() -> Outcome:
            outcome = engines.run(command, self.place.env, on_event=taken, owner=self.place.owner)
            if self.waited:
                self.waited.look()
            return outcome

        return turns.under_the_engines_lock(once, self.place.stack, self.progress.note)


def failed(progress: Progress, deployed: Deployed, again: str) -> None:
    """Prints what stopped a deployment, and what helps.

    Args:
        progress: Where to.
        deployed: How it ended.
        again: The command that was run, for the next step.
    """
    explain.failures(progress, deployed.outcome)
    progress.note(explain.next_step(deployed, again))
