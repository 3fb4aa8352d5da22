"""Edits of a job's inputs: another run, another label on the same run, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.provider.resource import same_arm_id
from amlstack.rpc import UNKNOWN, changed_paths, unknown_paths
from amlstack.snapshot import differences

if TYPE_CHECKING:
    from amlstack.provider.resource import Values

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
        """What makes it another run, in words: files in place of the code's hash, where they are known."""
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
