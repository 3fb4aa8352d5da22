"""From the events of `pulumi refresh --preview-only` to what differs.

An event has a resource's inputs and outputs as the state has them, and as the service has them now. What a declaration
can say are the inputs; an output that is none of them the service wrote, so it changes by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.pulumi_wire import SIGNATURE
from amlstack.catalog import own_changes
from amlstack.cli.progress import name_of
from amlstack.cli.stack.drift.found import CHANGED, DELETED, LeftOut, PropertyDrift, ResourceDrift, SeenRun
from amlstack.cli.stack.drift.property_paths import MISSING, differences, parts, value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from amlstack.cli.stack.drift.found import Look
    from amlstack.cli.stack.drift.mending import StackMending

JOB: Final = "amlstack:jobs:Job"
SCHEDULE: Final = "amlstack:schedules:Schedule"
NETWORK: Final = "amlstack:network:Managed"
_RULES: Final = "managedNetwork.outboundRules"
_OURS: Final = ("pulumi:", "amlstack:infra:", "amlstack:stack:Record", "amlstack:stack:Keeper", "amlstack:runs:Guard")
"""What groups others, and what the project keeps in the state for itself: nothing of it is in Azure."""
_VERSION: Final = re.compile(r"/v\d{8}[^:]*(?=:)")
SERVICE: Final = "the service: no declaration says it"


@dataclass(slots=True)
class Comparison:
    """Collects what the events of one look say.

    Attributes:
        look: Where it goes.
        mending: Knows how each difference is mended.
    """

    look: Look
    mending: StackMending
    _rules: set[str] = field(default_factory=set)
    _held: list[Mapping[str, Any]] = field(default_factory=list)

    def take(self, event: Mapping[str, Any]) -> None:
        """One event of the engine."""
        meta = (event.get("resOutputsEvent") or {}).get("metadata")
        if meta is None or meta["type"].startswith(_OURS):
            return
        if kind_of(meta) == NETWORK:
            self._rules |= set(_values(meta.get("old"), "inputs").get("rules") or {})
        self._held.append(meta)

    def done(self) -> None:
        """After the last event: rules of a network are known by now, whichever came first."""
        for meta in sorted(self._held, key=lambda each: str(each["urn"])):
            self.look.looked_at += 1
            self._resource(meta)
        self._held.clear()

    def _resource(self, meta: Mapping[str, Any]) -> None:
        kind, old, new = kind_of(meta), meta.get("old"), meta.get("new")
        if kind == JOB and old is not None:
            self.look.runs.append(_run(meta["urn"], old, new))
            return
        if old is None:
            return
        if meta["op"] == "delete" or not new:
            self.look.resources.append(self._drift(meta, DELETED))
            return
        found = list(self._declared(meta))
        if kind == SCHEDULE:
            found += _of_schedule(_values(old, "inputs"), _values(new, "outputs"))
        properties = []
        for path, was, there in found:
            change = self._by_itself(kind, path, there)
            if change is None:
                adopt = self.mending.adopt(meta["urn"], kind, path, there, _values(new, "inputs"))
                properties.append(PropertyDrift(path, was, there, adopt))
            else:
                self.look.left_out.append(LeftOut(meta["urn"], path, was, there, *change))
        if properties:
            self.look.resources.append(self._drift(meta, CHANGED, tuple(properties)))
        self.look.left_out += _written_by_the_service(kind, meta, [path for path, _, _ in found])

    def _drift(self, meta: Mapping[str, Any], what: str, properties: tuple[PropertyDrift, ...] = ()) -> ResourceDrift:
        urn, kind = meta["urn"], kind_of(meta)
        return ResourceDrift(
            urn,
            kind,
            name_of(urn),
            str((meta.get("old") or {}).get("id") or ""),
            what,
            properties,
            self.mending.adopt_absence(urn, kind, _values(meta.get("old"), "inputs")) if what == DELETED else None,
            self.mending.put_back(),
            self.mending.put_back_alone(urn),
        )

    def _declared(self, meta: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
        """What differs of the inputs, by the places that the provider calls different."""
        old, new = _values(meta["old"], "inputs"), _values(meta["new"], "inputs")
        rules: set[str] = set()
        for place in meta.get("detailedDiff") or meta.get("diffs") or ():
            was, there = value_at(old, place), value_at(new, place)
            for path, before, after in differences(was, there, place):
                # A rule of a network is one thing, whatever it consists of.
                whole = _rule_of(path)
                if whole is None:
                    yield path, before, after
                elif whole not in rules:
                    rules.add(whole)
                    yield whole, _or_none(value_at(old, whole)), _or_none(value_at(new, whole))

    def _by_itself(self, kind: str, path: str, there: Any) -> tuple[str, str] | None:
        """Who changes a property by itself, and from where that is known."""
        if path.startswith(_RULES) and parts(path)[-1] in self._rules:
            return "the stack itself, which declares the rule by another resource", NETWORK
        known = own_changes.of(kind, path, there)
        return None if known is None else (known.who, known.source)


def kind_of(meta: Mapping[str, Any]) -> str:
    """The type without its API version."""
    return _VERSION.sub("", str(meta["type"]))


def _rule_of(path: str) -> str | None:
    """The path of the rule of a managed network that a path lies in; None for another path."""
    found = re.match(rf'{re.escape(_RULES)}(?:\.[^.\[]+|\["(?:[^"\\]|\\.)*"\])', path)
    return found[0] if found else None


def _or_none(value: Any) -> Any:
    return None if value is MISSING else value


def _values(state: Mapping[str, Any] | None, which: str) -> dict[str, Any]:
    found = (state or {}).get(which) or {}
    return {name: _shown(value) for name, value in found.items()}


def _shown(value: Any) -> Any:
    """A value without what is secret."""
    if isinstance(value, dict):
        return "[secret]" if SIGNATURE in value else {name: _shown(item) for name, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _run(urn: str, old: Mapping[str, Any], new: Mapping[str, Any] | None) -> SeenRun:
    before, now = _values(old, "outputs"), _values(new, "outputs")
    gone = not new or bool(now.get("gone"))
    status = None if gone else str(now.get("status") or "Unknown")
    return SeenRun(urn.rsplit("::", 1)[-1], str(old.get("id") or ""), before.get("status"), status, gone)


def _of_schedule(declared: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What our provider noted of a schedule that somebody changed; it keeps no values of others."""
    for path in now.get("drifted") or ():
        yield str(path), _or_none(value_at(declared, str(path))), "changed outside"


def _written_by_the_service(kind: str, meta: Mapping[str, Any], known: Sequence[str]) -> Iterator[LeftOut]:
    """Outputs that differ and mirror no input that does."""
    mirrored = tuple(f"{path}{sign}" for path in known for sign in ".[")
    old, new = _values(meta["old"], "outputs"), _values(meta["new"], "outputs")
    for path, was, there in differences(old, new):
        if path in known or path.startswith(mirrored) or path == "drifted":
            continue
        change = own_changes.of(kind, path, there)
        who, source = (change.who, change.source) if change else (SERVICE, "the resource's inputs")
        yield LeftOut(meta["urn"], path, was, there, who, source)
