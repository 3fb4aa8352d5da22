"""What a preview would do, resource by resource, as values and as lines for a person."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths
from amlstack.cli.progress import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CREATED, UPDATED, REPLACED, DELETED = "created", "updated in place", "replaced", "deleted"
FORGOTTEN, IMPORTED, READ_AGAIN = "forgotten", "imported", "read again"
_DOES: Final = {
    "create": CREATED,
    "update": UPDATED,
    "delete": DELETED,
    "discard": FORGOTTEN,
    "import": IMPORTED,
    "refresh": READ_AGAIN,
    **dict.fromkeys(("replace", "create-replacement", "delete-replaced", "discard-replaced"), REPLACED),
}
ORDER: Final = (DELETED, REPLACED, UPDATED, IMPORTED, READ_AGAIN, FORGOTTEN, CREATED)
"""What takes something away comes first."""
_NO_RESOURCES: Final = (
    "pulumi:",
    "amlstack:infra:",
    "amlstack:stack:Record",
    "amlstack:stack:Keeper",
    "amlstack:runs:Guard",
)
"""What groups others, and what this project keeps in the state for itself: nothing of it is in Azure."""
FEW: Final = 12
"""So many that are created have their names; more are counted by type. What takes something away always has names."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """What happens to one resource.

    Attributes:
        urn, type: As the engine has them.
        does: One of the words above.
        changes: The properties that differ; for a replacement those that cause it.
        inputs: Hash of all that is asked for, by which two plans of one step are compared; empty where nothing is.
    """

    urn: str
    type: str
    does: str
    changes: tuple[str, ...] = ()
    inputs: str = ""

    @property
    def name(self) -> str:
        """``Compute a100``."""
        return name_of(self.urn)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "urn": self.urn,
            "type": self.type,
            "operation": self.does,
            "properties": list(self.changes),
            "inputs": self.inputs,
        }


@dataclass(slots=True)
class StackPlan:
    """The operations of the last phase whose events were taken."""

    steps: dict[str, PlannedStep] = field(default_factory=dict)

    def take(self, event: Mapping[str, Any]) -> None:
        """Folds one event of the engine in."""
        if "preludeEvent" in event:
            self.steps.clear()
        meta = (event.get("resourcePreEvent") or {}).get("metadata")
        if not meta or (does := _DOES.get(meta["op"])) is None or meta["type"].startswith(_NO_RESOURCES):
            return
        urn = meta["urn"]
        known = self.steps.get(urn)
        changes = _changes(meta, does)
        inputs = _hash_of((meta.get("new") or {}).get("inputs"))
        if known is not None and known.does == does:
            changes = tuple(dict.fromkeys((*known.changes, *changes)))
            inputs = inputs or known.inputs
        self.steps[urn] = PlannedStep(urn, meta["type"], does, changes, inputs)

    def lines(self) -> Iterator[str]:
        """``replaced: Compute a100 (vmSize)``; of many new resources the number of each type."""
        by_word: dict[str, list[PlannedStep]] = {}
        for step in self.steps.values():
            by_word.setdefault(step.does, []).append(step)
        for word in ORDER:
            steps = by_word.get(word, [])
            if word == CREATED and len(steps) > FEW:
                yield f"{word}: {len(steps)} resources: {_by_type(steps)}"
            elif word == CREATED and steps:
                yield f"{word}: {', '.join(step.name for step in steps)}"
            else:
                yield from (f"{word}: {step.name}{_in_brackets(step.changes)}" for step in steps)

    def counts(self) -> str:
        """``12 created, 1 updated in place``; empty when nothing changes."""
        counts = Counter(step.does for step in self.steps.values())
        return ", ".join(f"{counts[word]} {word}" for word in reversed(ORDER) if counts[word])

    def as_list(self) -> list[dict[str, Any]]:
        """Plain data for ``--json``."""
        return [step.as_dict() for step in self.steps.values()]


def _changes(meta: Mapping[str, Any], does: str) -> tuple[str, ...]:
    if does == REPLACED and meta.get("keys"):
        return tuple(meta["keys"])
    if does not in {UPDATED, REPLACED}:
        return ()
    return tuple(meta.get("detailedDiff") or meta.get("diffs") or ())


def _hash_of(inputs: Mapping[str, Any] | None) -> str:
    """The same on every machine: the folder of the clone, which folders of code and data lie in, is left out."""
    if not inputs:
        return ""
    text = json.dumps(inputs, sort_keys=True).replace(f"{paths.PROJECT}/", "")
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _in_brackets(changes: tuple[str, ...]) -> str:
    return f" ({', '.join(changes)})" if changes else ""


def _by_type(steps: list[PlannedStep]) -> str:
    counts = Counter(step.name.partition(" ")[0] for step in steps)
    return ", ".join(f"{number} {kind}" if number > 1 else kind for kind, number in counts.items())
