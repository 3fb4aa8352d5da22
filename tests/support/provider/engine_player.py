"""Plays the engine's part in the life of one job: its order of steps, its state file, and its sudden end.

The order is that of the engine's step generator: a replacement creates and then deletes, or deletes first; what was
deleted first is pending replacement until its successor is recorded; what was replaced is pending deletion, and goes
last, after every resource of the program was looked at. The state is written after each step.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.rpc import UNKNOWN
from tests.support.provider.provider_wire import Refused, Resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire


@dataclass(frozen=True)
class Fault:
    """The point at which a deployment is killed.

    Attributes:
        at: ``write`` (at that write of the provider), ``unsaved`` (a step is done and not in the state) or ``saved``.
        count: At the which, counted from 0.
        late: Of a write: it takes effect.
    """

    at: str
    count: int
    late: bool = False


@dataclass(frozen=True)
class Copy:
    """One resource in the state file."""

    id: str
    inputs: dict[str, Any]
    outputs: dict[str, Any]
    pending_replacement: bool = False


class Killed(Exception):  # noqa: N818
    """The deployment was killed by its fault."""


@dataclass
class Player:
    """One stack with one job, or without it.

    Attributes:
        live: The job's resource in the state.
        pending: Copies in the state that are pending deletion.
    """

    wire: Wire
    arm: FakeArm
    live: Copy | None = None
    pending: list[Copy] = field(default_factory=list)
    _fault: Fault | None = None
    _steps: int = 0

    # -- what a person does ------------------------------------------------------------------------------------------

    def preview(self, program: dict[str, Any], *, replace_it: bool = False) -> str:
        """The operation that a preview foretells."""
        self.wire.configure()
        job = self._resource(self.live)
        checked = job.check(program)
        operation = "create"
        if self.live is not None:
            answer = None if replace_it else job.diff(checked)
            if answer and not answer.replaces and not self.live.pending_replacement:
                return "update" if answer.changes == answer.DIFF_SOME else "same"
            operation = "replace"
        job.preview(program)
        return operation

    def up(self, program: dict[str, Any] | None, *, replace_it: bool = False, fault: Fault | None = None) -> str:
        """The real part of an ``up``: the operation, or ``killed``."""
        return self._deploy(lambda: self._up(program, replace_it=replace_it), fault, program=True)

    def destroy(self, fault: Fault | None = None) -> str:
        """``destroy``: no program runs, and everything is deleted."""
        return self._deploy(self._delete_all, fault)

    def replace_cluster(self, program: dict[str, Any], cluster_goes: Callable[[], None]) -> str:
        """An ``up`` that deletes the job's cluster first and makes it again.

        Args:
            program: The job as it is declared.
            cluster_goes: Called when the service deletes the cluster.
        """
        return self._deploy(lambda: self._replace_cluster(program, cluster_goes), None, program=True)

    def refresh(self) -> None:
        """``refresh`` of the live resource."""
        if self.live is None:
            return
        job = self._resource(self.live)
        job.refresh()
        self.live = replace(self.live, inputs=job.inputs, outputs=job.outputs)

    # -- the engine's steps ------------------------------------------------------------------------------------------

    def _deploy(self, play: Callable[[], str], fault: Fault | None, *, program: bool = False) -> str:
        self._fault, self._steps = fault, 0
        if fault is not None and fault.at == "write":
            self.arm.dies_at, self.arm.dies_late = fault.count, fault.late
        if program:
            self.wire.configure_for_a_program()
        else:
            self.wire.configure()
        try:
            result = play()
            killed = self.arm.dead
        except Killed:
            killed = True
        except Refused:
            killed = self.arm.dead
            if not killed:
                raise
        finally:
            dead = self.arm.dead
            self.arm.revive()
            self._fault = None
            if dead:
                self.wire.restart()
        if killed:
            self.wire.restart()
            return "killed"
        return result

    def _up(self, program: dict[str, Any] | None, *, replace_it: bool = False) -> str:
        operation = "delete" if program is None else self._register(program, replace_it=replace_it)
        if program is None:
            self._delete_all()
        else:
            self._delete_pending()
        return operation

    def _register(self, program: dict[str, Any], *, replace_it: bool) -> str:
        job = self._resource(self.live)
        checked = job.check(program)
        old = self.live
        if old is None:
            self._step(lambda: self._created(job, checked), self._save_live)
            return "create"
        answer = None if replace_it else job.diff(checked)
        if answer is None or answer.replaces or old.pending_replacement:
            if answer is not None and answer.deleteBeforeReplace and not old.pending_replacement:
                self._step(lambda: self._deleted(old), lambda _: self._save_deleted_first(old))
            self._step(lambda: self._created(job, checked), self._save_replaced)
            return "replace"
        if answer.changes == answer.DIFF_SOME:
            self._step(lambda: self._updated(job, checked), self._save_live)
            return "update"
        self.live = replace(old, inputs=checked)
        return "same"

    def _replace_cluster(self, program: dict[str, Any], cluster_goes: Callable[[], None]) -> str:
        # Asked in the order of the state, a resource before the copies it replaced; deleted the other way round.
        dependents = [*([self.live] if self.live else []), *reversed(self.pending)]
        lost = [one for one in dependents if self._loses(one)]
        for one in reversed(lost):
            self._step(lambda one=one: self._deleted(one), lambda _, one=one: self._save_deleted_first(one))  # type: ignore[misc]
        cluster_goes()
        self._register(program, replace_it=False)
        self._delete_pending()
        return "replaced" if lost else "untouched"

    def _loses(self, copy: Copy) -> bool:
        answer = self._resource(copy).diff({**copy.inputs, "placedOn": UNKNOWN})
        return bool(answer.replaces)

    def _delete_pending(self) -> None:
        for one in list(self.pending):
            self._step(lambda one=one: self._deleted(one), lambda _, one=one: self.pending.remove(one))  # type: ignore[misc]

    def _delete_all(self) -> str:
        self._delete_pending()
        live = self.live
        if live is not None:
            if not live.pending_replacement:
                self._step(lambda: self._deleted(live), lambda _: None)
            self.live = None
        return "delete"

    def _step(self, do: Callable[[], Any], save: Callable[[Any], None]) -> None:
        result = do()
        if self.arm.dead or self._fault == Fault("unsaved", self._steps):
            raise Killed
        save(result)
        if self._fault == Fault("saved", self._steps):
            raise Killed
        self._steps += 1

    # -- the provider's part -----------------------------------------------------------------------------------------

    def _resource(self, copy: Copy | None) -> Resource:
        if copy is None:
            return self.wire.job()
        return self.wire.job(id=copy.id, inputs=copy.inputs, outputs=copy.outputs)

    @staticmethod
    def _created(job: Resource, checked: dict[str, Any]) -> Copy:
        job._create(checked, 0)
        return Copy(job.id, job.inputs, job.outputs)

    @staticmethod
    def _updated(job: Resource, checked: dict[str, Any]) -> Copy:
        job._update(checked)
        return Copy(job.id, job.inputs, job.outputs)

    def _deleted(self, copy: Copy) -> None:
        self._resource(copy)._delete(copy.id, copy.inputs, copy.outputs)

    # -- the state file ----------------------------------------------------------------------------------------------

    def _save_live(self, copy: Copy) -> None:
        self.live = copy

    def _save_replaced(self, copy: Copy) -> None:
        if self.live is not None and not self.live.pending_replacement:
            self.pending.append(self.live)
        self.live = copy

    def _save_deleted_first(self, copy: Copy) -> None:
        if copy is self.live:
            self.live = replace(copy, pending_replacement=True)
        else:
            self.pending.remove(copy)
