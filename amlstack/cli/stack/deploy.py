"""One deployment of the sandbox stack: what was lost is looked up first, and what would be lost is asked about."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack import engine as engines
from amlstack.base import paths
from amlstack.cli import consent
from amlstack.cli.stack import losses, state, turns, unchanged
from amlstack.cli.stack.missing_resources import lost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.progress import Progress
    from amlstack.cli.stack.waited_runs import WaitedRuns
    from amlstack.engine import Engine, Outcome


@dataclass(frozen=True, slots=True)
class Deployed:
    """How a deployment ended.

    Attributes:
        outcome: What the engine's last command did.
        updated: Whether the update had begun; before it nothing is changed.
        refused: It would have taken something away, and the answer was no. It has been printed.
    """

    outcome: Outcome
    updated: bool
    refused: bool = False

    @property
    def ok(self) -> bool:
        """Whether the stack is as declared."""
        return not self.outcome.code and not self.refused


@dataclass(frozen=True, slots=True)
class Deployment:
    """The sandbox stack, about to be deployed.

    Attributes:
        engine: The engine.
        env: Its environment.
        progress: Where what happens is printed.
        pack: What to give the engine for the policies: ``--policy-pack`` and its configuration.
        waited: Prints the logs of runs that the engine waits for.
    """

    engine: Engine
    env: Mapping[str, str]
    progress: Progress
    pack: tuple[str, ...]
    waited: WaitedRuns | None = None

    def run(self, *, yes: bool, refresh: bool) -> Deployed:
        """Deploys.

        Where the stack holds something, a preview by itself comes first, which the engine would make anyway. The update
        then skips its own, and is left out where it would change nothing.

        Args:
            yes: Whether data may be lost without a question.
            refresh: Whether to look at the service first, also where nothing is known to be missing.
        """
        before = state.read()
        missing = lost(before, paths.home())
        if missing or refresh:
            if missing:
                number = f"{len(missing)} resource{'' if len(missing) == 1 else 's'}"
                self.progress.note(f"the state records {number} that the sandbox does not have: looking again")
            refreshed = self._refresh()
            if refreshed.code and not missing:
                return Deployed(refreshed, updated=False)
            before = state.read()
        if not losses.is_worth_asking(before):
            outcome = self._engine("up", "--yes", *self.pack, phases=("previewing", "updating"))
            return Deployed(outcome, updated=outcome.phases > 1)
        with tempfile.TemporaryDirectory(prefix="amlstack-plan-") as folder:
            plan = Path(folder) / "plan.json"
            preview = self._engine("preview", "--save-plan", str(plan), *self.pack, phases=("previewing",))
            if preview.code or unchanged.by(preview, plan, before):
                return Deployed(preview, updated=False)
        if not yes and not self._agreed(losses.of(preview.ops, before, paths.home())):
            return Deployed(preview, updated=False, refused=True)
        return Deployed(self._engine("up", "--yes", "--skip-preview", *self.pack, phases=("updating",)), updated=True)

    def tidy(self) -> None:
        """Clears operations that a killed engine left open and this deployment has completed."""
        if state.read().pending:
            self._refresh("--clear-pending-creates")

    def _refresh(self, *words: str) -> Outcome:
        return self._engine("refresh", "--yes", "--skip-preview", *words, phases=("refreshing",))

    def _engine(self, verb: str, *words: str, phases: tuple[str, ...]) -> Outcome:
        follow = self.progress.follow(*phases)
        command = [verb, "--non-interactive", "--stack", engines.STACK, *words]

        def once() -> Outcome:
            outcome = engines.run(command, self.env, on_event=self.waited.before(follow) if self.waited else follow)
            if self.waited:
                self.waited.look()
            return outcome

        return turns.under_the_engines_lock(once, engines.STACK, self.progress.note)

    def _agreed(self, lines: tuple[str, ...]) -> bool:
        if not lines:
            return True
        self.progress.step("this deployment takes away what holds data or records:")
        for line in lines:
            self.progress.note(line)
        if not consent.on_a_terminal():
            self.progress.fail(
                "nothing was changed. What holds data or records is deleted or replaced only when you agree: "
                "`amlstack up --yes` (`make up YES=1`), or on a terminal"
            )
            return False
        if consent.given("Deploy all the same?"):
            return True
        self.progress.note("nothing was changed")
        return False
