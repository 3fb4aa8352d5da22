"""One run of a job file on its way: its id as the stack's own program gives it, what it needs, and the run itself."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from amlstack.cli.workspace.submission.registered import register
from amlstack.provider import owned
from amlstack.provider.resource import Call, Services
from amlstack.provider.runs import Runs
from amlstack.provider.states import OnEdit, Wait
from amlstack.provider.types.jobs import JobRuns
from amlstack.rpc import Failures, Host, ProviderError
from infra.components import tokens
from infra.names import Names
from infra.runs.registration import Registration
from infra.settings.secrets import REDACTED
from jobs.model.secret_variables import filled, named_in

if TYPE_CHECKING:
    from amlstack.cli.progress import Progress
    from amlstack.cli.workspace.place import WorkspacePlace
    from amlstack.cli.workspace.submission.declared import DeclaredRuns
    from amlstack.provider.runs import Record
    from infra.runs import Run


class ProgressHost(Host):
    """Takes what the provider's resources say of their work, in the place of the engine."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self._progress = progress
        self._shown = ""

    def _log(self, severity: str, message: str, urn: str, *, ephemeral: bool = False) -> None:
        text = self.clean(message, urn).replace("the next `up`", "the same command")
        if severity == "DEBUG" or (ephemeral and (text == self._shown or text.startswith("submitted "))):
            return
        self._shown = text
        self._progress.note(f"warning: {text}" if severity == "WARNING" else text)


@dataclass
class Submission:
    """The runs of a job file, against one workspace.

    Attributes:
        place: The workspace.
        declared: What the file declares.
        progress: Where its progress is shown.
        cancelled: Ends requests and uploads when it is set.
    """

    place: WorkspacePlace
    declared: DeclaredRuns
    progress: Progress
    cancelled: threading.Event = field(default_factory=threading.Event)
    _services: Services = field(init=False)
    _jobs: JobRuns = field(init=False)

    def __post_init__(self) -> None:
        arm = self.place.arm
        self._services = Services(arm, Runs(arm), ProgressHost(self.progress), self.cancelled)
        self._jobs = JobRuns(self._services)

    @property
    def names(self) -> Names:
        """Ids in the workspace."""
        _, _, subscription, _, group, *_, workspace = self.place.workspace.split("/")
        return Names(subscription, group, workspace)

    def foreseen(self, run: Run) -> tuple[str, Record | None]:
        """The run's name in the workspace, and its record where it is there already.

        Raises:
            ProviderError: A run that is there keeps this one from being submitted.
            ArmError: The workspace cannot be asked.
        """
        _, state = self._jobs.create(self._call(run, preview=True), self._inputs(run, self.registration(run)))
        name = _name(state)
        return name, self._services.runs.find(self.place.workspace, name)

    def send(self, run: Run) -> str:
        """Registers what the run needs and submits it, unless it is there already.

        Returns:
            Its name in the workspace.

        Raises:
            ProviderError, ArmError: The service refused something; nothing was submitted then.
        """
        registration = self.registration(run)
        register(self._services, self.place.workspace, registration, self.declared.assets)
        run_id, _ = self._jobs.create(self._call(run), self._inputs(run, registration, submits=True))
        return run_id

    def registration(self, run: Run) -> Registration:
        """What the run needs, and its body."""
        return Registration.of(run.name, run.plan, run.codes, self.names, run.data, assets=run.assets)

    @cached_property
    def _stack_id(self) -> str | None:
        """That of the settings, else the one that the stack's runs bear: its state is the engine's alone."""
        if self.declared.stack_id or self.place.stack is None:
            return self.declared.stack_id
        owner = f"{self.declared.project}/{self.declared.stack}"
        return owned.stack_id_of(self.place.arm, self.place.workspace, owner) or None

    def _call(self, run: Run, *, preview: bool = False) -> Call:
        """With the URN that the engine gives the run's resource: what its record then says of its owner."""
        where = f"urn:pulumi:{self.declared.stack}::{self.declared.project}"
        return Call(f"{where}::{tokens.JOBS}${tokens.JOB}::{run.name}", preview=preview)

    def _inputs(self, run: Run, registration: Registration, *, submits: bool = False) -> dict[str, Any]:
        """The inputs of the run's resource, as `infra.components.training` composes them."""
        job = run.declared
        inputs = {
            "workspace": self.place.workspace,
            "name": run.name,
            "declaration": run.data.identity(run.plan.declaration),
            "codeHash": run.own.hash,
            "rerun": job.rerun or "",
            "body": self._filled(registration.body) if submits else registration.body,
            "onEdit": job.on_edit if self.place.stack else OnEdit.KEEP.value,
            "wait": Wait.NONE.value,
            "deleteHistory": job.delete_history,
            "stackId": self._stack_id,
            "after": [self._before(name) for name in run.after] if submits else None,
        }
        failures = Failures()
        checked = self._jobs.check(
            self._call(run), {key: value for key, value in inputs.items() if value is not None}, failures
        )
        if failures:
            raise ProviderError("; ".join(failures.reasons))
        return checked

    def _before(self, name: str) -> dict[str, str]:
        """A run that this one comes after, as the provider looks it up."""
        other = next(run for run in self.declared.others if run.name == name)
        silent = JobRuns(replace(self._services, host=Host()))
        _, state = silent.create(self._call(other, preview=True), self._inputs(other, self.registration(other)))
        return {"job": name, "run": str(state["jobId"]), "status": ""}

    def _filled(self, body: dict[str, Any]) -> dict[str, Any]:
        values = {name: value for name, value in (self.declared.secrets or {}).items() if value != REDACTED}
        closed = sorted({secret for _, secret in named_in(body) if secret not in values})
        if closed:
            shown = ", ".join(f"`{name}`" for name in closed)
            stack = f" --stack {self.place.stack}" if self.place.stack else ""
            raise ProviderError(
                f"The job has variables with secrets of the stack ({shown}), and only Pulumi opens its encrypted "
                f"settings. `amlstack up{stack}` submits it."
            )
        found: dict[str, Any] = filled(body, values)
        return found


def _name(state: dict[str, Any]) -> str:
    return str(state["jobId"]).rpartition("/")[2]
