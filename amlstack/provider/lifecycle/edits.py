"""Edits of a job: another run, another label on the same run, or nothing; and what a deployment plans for runs."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.provider.resource import same_arm_id
from amlstack.rpc import UNKNOWN, ProviderError, bare, changed_paths, unknown_paths
from amlstack.snapshot import differences

if TYPE_CHECKING:
    from amlstack.provider.resource import Values
    from amlstack.provider.states import OnEdit

IDENTITY_INPUTS = ("name", "declaration", "codeHash", "rerun")
METADATA = ("displayName", "description", "tags")
_METADATA_PATHS = tuple(f"body.properties.{name}" for name in METADATA)


@dataclass(frozen=True, slots=True)
class Edit:
    """The changes between the recorded and the wanted inputs of a job.

    Attributes:
        identity: Property paths that make it another run.
        metadata: Property paths that are edited in place.
        derived: Property paths of the body that were derived anew; they change nothing.
        unknown: Whether part of what decides is not known yet.
        files: What changed in the code, file by file (``train.py changed``), as far as that was recorded.
    """

    identity: tuple[str, ...]
    metadata: tuple[str, ...]
    derived: tuple[str, ...]
    unknown: bool
    files: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The changes that make it another run, in words: files in place of the code's hash, where they are known."""
        others = tuple(path for path in self.identity if not self.files or path != "codeHash")
        return listed((*others, *self.files))


def edit_of(old_inputs: Values, old: Values, new: Values) -> Edit:
    """Sorts the changes.

    Args:
        old_inputs: The inputs of the last operation.
        old: The recorded state; its ``body`` is what the run was created with, its metadata as edited since.
        new: The wanted inputs.
    """
    before = old_inputs or old
    identity = identity_paths(before, new)
    if not same_arm_id(before.get("workspace"), new.get("workspace")):
        identity.append("workspace")
    body = [path for path in changed_paths(old.get("body"), new.get("body"), "body") if path]
    open_paths = set(unknown_paths(new.get("body"), "body"))
    metadata = tuple(path for path in body if path.startswith(_METADATA_PATHS))
    derived = tuple(path for path in body if path not in metadata and path not in open_paths)
    unknown = any(True for name in (*IDENTITY_INPUTS, "workspace") for _ in unknown_paths(new.get(name)))
    files = _changed_files(before, new) if "codeHash" in identity else ()
    return Edit(tuple(identity), metadata, derived, unknown, files)


def identity_paths(before: Values, new: Values) -> list[str]:
    """The property paths at which two jobs' inputs run something else, the workspace left out."""
    return [path for name in IDENTITY_INPUTS for path in changed_paths(before.get(name), new.get(name), name)]


def _changed_files(before: Values, new: Values) -> tuple[str, ...]:
    """The files that make the code another one, as far as they were recorded."""
    old, now = (values.get("codeFiles") for values in (before, new))
    return differences(old, now) if isinstance(old, dict) and isinstance(now, dict) else ()


def metadata_of(body: Any) -> dict[str, Any]:
    """Display name, description and tags of a job body; what is not given is ``None``, tags are ``{}``."""
    properties = (body or {}).get("properties") or {}
    return {name: properties.get(name) or ({} if name == "tags" else None) for name in METADATA}


def with_metadata(body: Values, other: Any) -> Any:
    """``body`` with the metadata of ``other``; not known when that is not, at preview."""
    theirs = other if other is UNKNOWN else other.get("properties")
    if theirs is UNKNOWN:
        return UNKNOWN
    properties = dict(body.get("properties") or {})
    theirs = theirs or {}
    for name in METADATA:
        properties.pop(name, None)
        if name in theirs:
            properties[name] = theirs[name]
    return {**body, "properties": properties}


def without_metadata(body: Values) -> Values:
    """``body`` without display name, description and tags: what was derived for the run."""
    stripped: Values = with_metadata(body, {})
    return stripped


def listed(paths: tuple[str, ...], most: int = 6) -> str:
    """``a, b and 3 more``."""
    shown = ", ".join(paths[:most])
    return f"{shown} and {len(paths) - most} more" if len(paths) > most else shown


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The decision of `Diff` about an active run: it is ended or goes on when its resource is replaced."""

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
        """True where the program declares a job of this URN."""
        with self._lock:
            return urn in self._declared

    def declares(self, urn: str, inputs: Values) -> bool:
        """True where the program declares this very run, unknown values counting as others."""
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
        """The decisions about this resource's runs."""
        with self._lock:
            return tuple(self._plans.get(urn, ()))
