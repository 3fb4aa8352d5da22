"""A deployment of a stack: preview, the plan with its cost and losses, a question, and only then the update."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack import engine
from amlstack.base import paths
from amlstack.cli import console
from amlstack.cli.console import Progress, name_of
from amlstack.cli.stack import explain, plan
from amlstack.cli.stack.plan import cost_lines, costs_as_dict, costs_of
from amlstack.cli.stack.runs import WaitedRuns
from amlstack.cli.stack_files import StackSettings, State, type_of
from amlstack.sandbox.files.storage import Storage
from amlstack.sandbox.store.store import Store, cluster_of, folder, listed

if TYPE_CHECKING:
    from amlstack.cli.stack.pulumi_stack import PulumiStack
    from amlstack.engine import Outcome

WORKSPACE: Final = "azure-native:machinelearningservices:Workspace"
CLUSTER: Final = "azure-native:machinelearningservices:Compute"
HOLDS: Final = {
    "azure-native:resources:ResourceGroup": "everything in the resource group",
    "azure-native:storage:StorageAccount": "code, inputs, outputs and checkpoints of runs",
    "azure-native:storage:BlobContainer": "what jobs have written to its datastore",
    "azure-native:storage:FileShare": "what jobs have written to its datastore",
    "azure-native:keyvault:Vault": "secrets",
    "azure-native:containerregistry:Registry": "images",
    WORKSPACE: "registered assets and the history of runs",
    CLUSTER: "",
}
"""Type without its API version → what goes with a resource of it; a cluster counts only with its runs."""

TAKES_AWAY: Final = {plan.DELETED: "deletes", plan.FORGOTTEN: "forgets", plan.REPLACED: "replaces"}
CONVERGING: Final = (
    "azure-native:", "amlstack:code:", "amlstack:data:", "amlstack:environments:", "amlstack:components:",
    "amlstack:schedules:",
)  # fmt: skip
"""Types that `up` makes again. A run is none of them: one whose record is gone is not run again by itself."""


def losses_of(ops: Mapping[str, str], state: State, home: Path) -> tuple[str, ...]:
    """A line for each resource that holds something and would be deleted or replaced.

    Args:
        ops: URN → operation of a preview.
        state: What is recorded of the stack.
        home: The sandbox's home, whose records of runs are counted.
    """
    found = []
    runs = _runs(home)
    for one in state.resources:
        urn, kind = str(one["urn"]), type_of(one["type"])
        verb = TAKES_AWAY.get(plan.DOES.get(ops.get(urn, ""), ""))
        if not verb or kind not in HOLDS or one.get("retainOnDelete"):
            continue
        resource_id = str(one.get("id", "")).lower()
        names = [run for run, places in runs.items() if resource_id in places]
        if kind == CLUSTER and not names:
            continue
        records = f"{len(names)} run{'' if len(names) == 1 else 's'} ({listed(names)})" if names else ""
        holds = " and ".join(text for text in (HOLDS[kind], records) if text)
        found.append(f"{verb} {name_of(urn)} ({resource_id.rsplit('/', 1)[-1]}): {holds}")
    return tuple(found)


def _runs(home: Path) -> dict[str, tuple[str, ...]]:
    """Key of each run → ids of its workspace and its cluster, lower-cased."""
    if not (folder(home) / "state.db").is_file():
        return {}
    with contextlib.closing(Store(home)) as store:
        children = store.family.members()
        return {
            row.id: (row.workspace.lower(), cluster_of(row) or "")
            for row in store.jobs.list()
            if row.id not in children
        }


def missing_resources(state: State, home: Path) -> tuple[str, ...]:
    """URNs of resources of the state that the sandbox of a home does not have."""
    wanted = {
        str(one["urn"]): str(one["id"])
        for one in state.resources
        if str(one["type"]).startswith(CONVERGING) and str(one.get("id", "")).startswith("/subscriptions/")
    }
    if not wanted:
        return ()
    if not (folder(home) / "state.db").is_file():
        return tuple(wanted)
    with contextlib.closing(Store(home)) as store:
        return tuple(urn for urn, resource_id in wanted.items() if not _has(store, resource_id))


def _has(store: Store, resource_id: str) -> bool:
    """True where the sandbox has a resource; of data that were uploaded to a datastore, the files."""
    workspace, _, place = resource_id.partition("/datastores/")
    if "/" not in place:
        return store.resources.get(resource_id) is not None
    return Storage(store, workspace).has_files(f"azureml://datastores/{place}")


REFUSED = (
    "nothing was changed. What holds data or records is deleted or replaced only when you agree: "
    "`amlstack up --yes` (`make up YES=1`), or on a terminal"
)


@dataclass(frozen=True, slots=True)
class Deployed:
    """The end of a deployment.

    Attributes:
        outcome: What the engine's last command did.
        updated: Whether the update had begun; before it nothing is changed.
        refused: The plan is another one than agreed, or the answer was no. It has been printed.
    """

    outcome: Outcome
    updated: bool
    refused: bool = False

    @property
    def ok(self) -> bool:
        """True where the stack is as declared."""
        return not self.outcome.code and not self.refused


@dataclass(slots=True)
class Deployment:
    """A stack about to be deployed.

    Attributes:
        stack: The stack.
        judged: Its settings.
        progress: Where what happens is printed.
        pack: The engine's options for the policies.
        agreed: The plan that alone may be applied; None for any.
        plan: What the preview would do, once there was one.
        unchanged: Whether the preview found nothing to do.
        waited: Prints the logs of runs that the engine waits for; None on Azure.
    """

    stack: PulumiStack
    judged: StackSettings
    progress: Progress
    pack: tuple[str, ...] = ()
    agreed: plan.AgreedPlan | None = None
    plan: plan.StackPlan = field(default_factory=plan.StackPlan)
    unchanged: bool = False
    waited: WaitedRuns | None = None

    def __post_init__(self) -> None:
        if self.stack.endpoint is not None:
            self.waited = WaitedRuns(self.progress, self.stack.endpoint.home)

    def run(self, *, yes: bool, refresh: bool, preview: bool = False) -> Deployed:
        """Deploys, or shows what it would do. The update is left out where it would change nothing.

        Args:
            yes: Whether to apply without a question.
            refresh: Whether to look at the service first, also where nothing is known to be missing.
            preview: Whether to end after the plan.

        Raises:
            BusyError: The engine found the stack locked.
            EngineError: The state is out of reach.
            EngineInterruptedError: Ctrl-C.
        """
        before = self.stack.state()
        missing = missing_resources(before, self.stack.endpoint.home) if self.stack.endpoint else ()
        if not preview and (missing or refresh):
            if missing:
                number = f"{len(missing)} resource{'' if len(missing) == 1 else 's'}"
                self.progress.note(f"the state records {number} that the sandbox does not have: looking again")
            refreshed = self._refresh()
            if refreshed.code and not missing:
                return Deployed(refreshed, updated=False)
            before = self.stack.state()
        with tempfile.TemporaryDirectory(prefix="amlstack-plan-") as folder:
            file = Path(folder) / "plan.json"
            words = ("--save-plan", str(file), *(("--refresh",) if preview and refresh else ()))
            looked = self._engine("preview", *words, *self.pack, phase="previewing")
            self.unchanged = plan.changes_nothing(looked, file, before)
        if looked.code or self.unchanged:
            return Deployed(looked, updated=False)
        taken = losses_of(looked.ops, before, paths.home())
        self._show(looked, taken)
        if self.agreed is not None and (differs := tuple(self.agreed.differences(self.plan.steps))):
            self.progress.fail(f"nothing was changed: this is not the plan of {self.agreed.file}")
            self._notes(differs)
            return Deployed(looked, updated=False, refused=True)
        if preview:
            return Deployed(looked, updated=False)
        if not yes and not self._may_apply(taken):
            return Deployed(looked, updated=False, refused=True)
        done = self._engine("up", "--yes", "--skip-preview", *self.pack, phase="updating")
        return Deployed(done, updated=True)

    def tidy(self) -> None:
        """Clears operations that a killed engine left open and this deployment has completed."""
        if self.stack.state().pending:
            self._refresh("--clear-pending-creates")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        costs = costs_of(self.judged.settings) if self.judged.settings else ()
        return {"plan": self.plan.as_list(), "unchanged": self.unchanged, "cost": costs_as_dict(costs)}

    def _show(self, looked: Outcome, taken: tuple[str, ...]) -> None:
        """Prints the plan: resources, what is lost with them, what the policies say, what it costs."""
        counts = self.plan.counts()
        self.progress.step(f"plan of `{self.stack.name}` on {self.stack.where}: {counts or 'the state alone changes'}")
        self._notes(self.plan.lines())
        if taken:
            self.progress.step("it takes away what holds data or records:")
            self._notes(taken)
        self.progress.step("policies")
        self._notes(explain.verdicts(looked, known={finding.code for finding in self.judged.findings}))
        if self.judged.settings is not None:
            self.progress.step("cost per hour on Azure")
            self._notes(cost_lines(costs_of(self.judged.settings)))

    def _notes(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.progress.note(line)

    def _may_apply(self, taken: tuple[str, ...]) -> bool:
        """A person's answer; the sandbox's own stack is asked about only where something is lost."""
        if self.stack.name == engine.STACK:
            if not taken:
                return True
            if not console.on_a_terminal():
                self.progress.fail(REFUSED)
                return False
        if console.confirmed(f"Apply this to `{self.stack.name}` on {self.stack.where}?"):
            return True
        self.progress.note("nothing was changed")
        return False

    def _refresh(self, *words: str) -> Outcome:
        return self._engine("refresh", "--yes", "--skip-preview", *words, phase="refreshing")

    def _engine(self, verb: str, *words: str, phase: str) -> Outcome:
        follow = self.progress.follow(phase)
        if self.waited:
            follow = self.waited.before(follow)

        def taken(event: Mapping[str, Any]) -> None:
            if verb == "preview":
                self.plan.take(event)
            follow(event)

        outcome = self.stack.run(verb, *words, on_event=taken, note=self.progress.note)
        if self.waited:
            self.waited.look()
        return outcome
