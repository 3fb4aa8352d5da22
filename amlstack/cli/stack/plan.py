"""The plan of a stack: the steps of a preview, the plan that was agreed to, and the cost per hour."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths
from amlstack.catalog import clock, regions, sizes
from amlstack.cli.console import name_of

if TYPE_CHECKING:
    from amlstack.catalog.prices import Price
    from amlstack.cli.stack_files import State
    from amlstack.engine import Outcome
    from infra.settings import Settings

CREATED, UPDATED, REPLACED, DELETED = "created", "updated in place", "replaced", "deleted"
FORGOTTEN, IMPORTED, READ_AGAIN = "forgotten", "imported", "read again"
DOES: Final = {
    "create": CREATED,
    "update": UPDATED,
    "delete": DELETED,
    "discard": FORGOTTEN,
    "import": IMPORTED,
    "refresh": READ_AGAIN,
    **dict.fromkeys(("replace", "create-replacement", "delete-replaced", "discard-replaced"), REPLACED),
}
ORDER: Final = (DELETED, REPLACED, UPDATED, IMPORTED, READ_AGAIN, FORGOTTEN, CREATED)
"""The order of operations: those that take something away come first."""
NO_RESOURCES: Final = (
    "pulumi:", "amlstack:infra:", "amlstack:stack:Record", "amlstack:stack:Keeper", "amlstack:runs:Guard",
)  # fmt: skip
"""Types that exist in the state alone, not in Azure: groups of resources, and records of this project."""
_UNFINISHED: Final = ("delete", "pendingReplacement", "initErrors")
"""The state's marks of a resource that an update has not brought to its end."""
FEW: Final = 12
"""So many that are created have their names; more are counted by type. What takes something away always has names."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """The engine's plan for one resource.

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

    @property
    def line(self) -> str:
        """``replaced: Compute a100 (vmSize)``."""
        changes = f" ({', '.join(self.changes)})" if self.changes else ""
        return f"{self.does}: {self.name}{changes}"

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
        if not meta or (does := DOES.get(meta["op"])) is None or meta["type"].startswith(NO_RESOURCES):
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
                yield from (step.line for step in steps)

    def counts(self) -> str:
        """``12 created, 1 updated in place``; empty when nothing changes."""
        return counted(step.does for step in self.steps.values())

    def as_list(self) -> list[dict[str, Any]]:
        """Plain data for ``--json``."""
        return [step.as_dict() for step in self.steps.values()]


def counted(words: Iterable[str]) -> str:
    """``12 created, 1 updated in place``; empty for none."""
    counts = Counter(words)
    return ", ".join(f"{counts[word]} {word}" for word in reversed(ORDER) if counts[word])


def counted_operations(ops: Mapping[str, str]) -> str:
    """The same of the engine's operations by URN; each of a replacement's steps has its resource's URN."""
    return counted(DOES[op] for op in ops.values() if op in DOES)


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


def _by_type(steps: list[PlannedStep]) -> str:
    counts = Counter(step.name.partition(" ")[0] for step in steps)
    return ", ".join(f"{number} {kind}" if number > 1 else kind for kind, number in counts.items())


class NoPlanError(Exception):
    """The file has no plan; the message is for the user."""


@dataclass(frozen=True, slots=True)
class AgreedPlan:
    """The plan of an earlier preview, which somebody has looked at.

    Attributes:
        file: Where it was read.
        steps: Its steps by URN.
    """

    file: Path
    steps: Mapping[str, PlannedStep]

    def differences(self, plan: Mapping[str, PlannedStep]) -> Iterator[str]:
        """A line for each step that this plan and another one do not have in common; none where they are the same.

        Args:
            plan: The other plan's steps by URN.
        """
        for urn, step in plan.items():
            agreed = self.steps.get(urn)
            if agreed is None:
                yield f"{step.line}: that plan leaves it alone"
            elif agreed.does != step.does:
                yield f"{step.line}: in that plan it is {agreed.does}"
            elif sorted(agreed.changes) != sorted(step.changes):
                yield f"{step.line}: in that plan ({', '.join(agreed.changes)}) differ"
            elif agreed.inputs != step.inputs:
                yield f"{step.line}: with other values than in that plan"
        for urn in self.steps.keys() - plan.keys():
            yield f"not {self.steps[urn].line}: in that plan it is"


def read_agreed(file: Path) -> AgreedPlan:
    """Read the plan that ``amlstack up --preview --json`` has printed.

    Raises:
        NoPlanError: The file cannot be read, or has no plan.
    """
    try:
        content = json.loads(file.read_text("utf-8"))
        steps = {}
        for step in content["plan"]:
            urn, changes = str(step["urn"]), tuple(map(str, step["properties"]))
            steps[urn] = PlannedStep(urn, str(step["type"]), str(step["operation"]), changes, str(step["inputs"]))
    except OSError as error:
        raise NoPlanError(f"{file} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise NoPlanError(
            f"{file} has no plan: it must be what `amlstack up --stack NAME --preview --json` prints"
        ) from None
    return AgreedPlan(file, steps)


def changes_nothing(preview: Outcome, file: Path, state: State) -> bool:
    """True where an update after a preview would leave resources and the state's records of them as they are.

    A preview also calls a resource `same` whose dependencies, parent, protection or outputs differ from the record.
    The update writes these (the rules are `mustWrite` of the engine's `backend/snapshot.go`), so it may be left out
    only where they are as recorded. What is not found in the form that is known here counts as a change.

    Args:
        preview: What the preview did.
        file: What it wrote for `--save-plan`.
        state: What was recorded before it.
    """
    if preview.code or preview.redescribed or state.pending or set(preview.ops.values()) - {"same"}:
        return False
    try:
        planned = json.loads(file.read_text("utf-8"))["resourcePlans"]
        # A copy that is pending deletion has its resource's URN.
        return sorted(planned) == sorted(one["urn"] for one in state.resources) and all(
            _stays(planned[one["urn"]], one) for one in state.resources
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _stays(planned: Mapping[str, Any], recorded: Mapping[str, Any]) -> bool:
    goal = planned["goal"]
    return (
        planned["steps"] == ["same"]
        and not goal["inputDiff"]
        and not goal["outputDiff"]
        and not any(recorded.get(mark) for mark in _UNFINISHED)
        and _order(goal) == _order(recorded)
    )


def _order(described: Mapping[str, Any]) -> tuple[object, ...]:
    """The dependencies of a resource and the limits of its operations: no event of the engine has these."""
    properties = described.get("propertyDependencies") or {}
    return (
        sorted(described.get("dependencies") or ()),
        {name: sorted(urns or ()) for name, urns in properties.items()},
        described.get("customTimeouts") or {},
    )


OTHER_COSTS = (
    "storage, registry, key vault, logs and networks are paid for besides, by use or by day: the catalogue has no "
    "prices of them (docs/how-to/azure.md)"
)


@dataclass(frozen=True, slots=True)
class ClusterCost:
    """One cluster.

    Attributes:
        name: Its name.
        size: Its VM size.
        least, most: Nodes.
        price: Of one node; None when the catalogue has none.
        low_priority: Whether its nodes are of low priority.
    """

    name: str
    size: str
    least: int
    most: int
    price: Price | None
    low_priority: bool

    @property
    def each(self) -> float | None:
        """US dollars per hour of one node of its priority, as far as that is known; None without a price."""
        return None if self.price is None else self.price.hourly(low_priority=self.low_priority)

    def hourly(self, nodes: int) -> float | None:
        """US dollars per hour of so many nodes; None when that is not known."""
        return 0.0 if not nodes else None if self.each is None else nodes * self.each


def costs_of(settings: Settings) -> tuple[ClusterCost, ...]:
    """The clusters of a stack."""
    found = []
    for cluster in settings.clusters:
        size = sizes.get(cluster.size)
        price = size.price_in(regions.code(cluster.location or settings.location)) if size else None
        low = cluster.priority == "low_priority"
        found.append(ClusterCost(cluster.name, cluster.size, cluster.nodes.min, cluster.nodes.max, price, low))
    return tuple(found)


def cost_lines(costs: Sequence[ClusterCost]) -> Iterator[str]:
    """A line for what is paid while nothing runs, one for the most, and one for what the figures leave out."""
    if costs:
        yield f"while idle: {_together([(one, one.least) for one in costs])}"
        yield f"at most: {_together([(one, one.most) for one in costs])}"
        bases = {one.price.basis(clock.today()) for one in costs if one.price is not None and one.most}
        yield from (f"prices of {basis}" for basis in sorted(bases))
    if any(one.low_priority and one.price is not None and one.price.low_priority is None for one in costs):
        yield "low-priority nodes cost less than these prices of dedicated ones"
    yield OTHER_COSTS


def costs_as_dict(costs: Sequence[ClusterCost]) -> dict[str, Any]:
    """Plain data for ``--json``: None is unknown."""
    return {
        "idle_usd_per_hour": _sum([one.hourly(one.least) for one in costs]),
        "most_usd_per_hour": _sum([one.hourly(one.most) for one in costs]),
        "clusters": [
            {
                "name": one.name,
                "size": one.size,
                "nodes": {"min": one.least, "max": one.most},
                "usd_per_node_hour": one.each,
                "price_of": None if one.price is None else one.price.checked.isoformat(),
                "idle_usd_per_hour": one.hourly(one.least),
                "most_usd_per_hour": one.hourly(one.most),
            }
            for one in costs
        ],
    }


def _together(counts: Sequence[tuple[ClusterCost, int]]) -> str:
    """``12.50 USD per hour for nodes``, or the nodes whose price is not known."""
    known = sum(one.hourly(nodes) or 0.0 for one, nodes in counts)
    unknown = [(one.size, nodes) for one, nodes in counts if one.hourly(nodes) is None]
    if not unknown:
        return f"{known:,.2f} USD per hour for nodes"
    of_each = ", ".join(f"{nodes} node{'' if nodes == 1 else 's'} of {size}" for size, nodes in unknown)
    beside = f"{known:,.2f} USD per hour for nodes, and " if known else ""
    return f"{beside}unknown for {of_each}: no price in the catalogue (`amlstack sizes --refresh` asks Azure)"


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(sum(known)) if len(known) == len(values) else None
