"""The memory of one deployment: the program's declarations, and the resource of each run."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlstack.provider.edits import IDENTITY_INPUTS, identity_paths
from amlstack.rpc import ProviderError, bare, unknown_paths

if TYPE_CHECKING:
    from amlstack.provider.resource import Values
    from amlstack.provider.states import OnEdit


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What `Diff` decided about an active run: whether it is ended or goes on when its resource is replaced."""

    workspace: str
    run: str
    mode: OnEdit


class DeploymentMemory:
    """Memory of one deployment; the engine configures the provider anew for each. Safe for use by several threads.

    The engine checks every job that the program declares, and deletes last what it does not declare any more, copies
    that an earlier deployment left pending included. So a deletion of what was checked is no end of the job.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._declared: dict[str, Values] = {}
        self._holders: dict[tuple[str, str], str] = {}
        self._plans: dict[str, list[RunPlan]] = {}

    def declare(self, urn: str, inputs: Values) -> None:
        """The program declares this job."""
        with self._lock:
            self._declared[urn] = inputs

    def has(self, urn: str) -> bool:
        """Whether the program declares a job of this URN."""
        with self._lock:
            return urn in self._declared

    def declares(self, urn: str, inputs: Values) -> bool:
        """Whether the program declares this very run, unknown values counting as others."""
        with self._lock:
            wanted = self._declared.get(urn)
        if wanted is None or any(
            True for name in (*IDENTITY_INPUTS, "workspace") for _ in unknown_paths(wanted.get(name))
        ):
            return False
        if str(bare(wanted.get("workspace"))).casefold() != str(bare(inputs.get("workspace"))).casefold():
            return False
        return not identity_paths(inputs, wanted)

    def stand(self, urn: str, workspace: str, run: str) -> None:
        """An unchanged resource stands for a run."""
        with self._lock:
            self._holders.setdefault((workspace.casefold(), run), urn)

    def hold(self, urn: str, workspace: str, run: str) -> None:
        """A new resource stands for a run.

        Raises:
            ProviderError: Another one does already.
        """
        with self._lock:
            holder = self._holders.setdefault((workspace.casefold(), run), urn)
        if holder != urn:
            raise ProviderError(
                f"{urn.rsplit('::', 1)[-1]} and {holder.rsplit('::', 1)[-1]} declare the same run {run}: same "
                "name, declaration, code and `rerun`. Give one of them another name"
            )

    def holder(self, workspace: str, run: str) -> str | None:
        """The URN of the resource that stands for a run, as far as it is known yet."""
        with self._lock:
            return self._holders.get((workspace.casefold(), run))

    def plan(self, urn: str, plan: RunPlan) -> None:
        """Remembers what becomes of a run when the resource is replaced."""
        with self._lock:
            self._plans.setdefault(urn, []).append(plan)

    def plans(self, urn: str) -> tuple[RunPlan, ...]:
        """What was decided about this resource's runs."""
        with self._lock:
            return tuple(self._plans.get(urn, ()))
