"""A look at a stack that changes neither it nor its state: the engine reads each resource and says what it would note.

Measured with the pinned engine: `pulumi refresh --preview-only` reads all resources through their providers, writes no
state, takes no lock and notices none. So that nothing is called drift which an update is just making, the state is read
before and after the look.

An event has a resource's inputs and outputs as the state has them, and as the service has them now. What a declaration
can say are the inputs; an output that is none of them the service wrote, so it changes by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack import engine
from amlstack.base.pulumi_wire import SIGNATURE
from amlstack.catalog import resources
from amlstack.cli import stack_files
from amlstack.cli.console import Progress, name_of
from amlstack.cli.stack import pulumi_stack
from amlstack.cli.stack.drift.mending import StackMending, differences, parts, value_at
from amlstack.cli.stack.drift.report import CHANGED, DELETED, LeftOut, Look, PropertyDrift, ResourceDrift, SeenRun
from amlstack.cli.stack.plan import NO_RESOURCES
from amlstack.cli.stack_files import type_of

if TYPE_CHECKING:
    from amlstack.cli.stack.pulumi_stack import PulumiStack
    from amlstack.engine import Outcome

JOB: Final = "amlstack:jobs:Job"
SCHEDULE: Final = "amlstack:schedules:Schedule"
NETWORK: Final = "amlstack:network:Managed"
_RULES: Final = "managedNetwork.outboundRules"
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
        if meta is None or meta["type"].startswith(NO_RESOURCES):
            return
        if type_of(meta["type"]) == NETWORK:
            self._rules |= set(_values(meta.get("old"), "inputs").get("rules") or {})
        self._held.append(meta)

    def done(self) -> None:
        """After the last event: rules of a network are known by now, whichever came first."""
        for meta in sorted(self._held, key=lambda each: str(each["urn"])):
            self.look.looked_at += 1
            self._resource(meta)
        self._held.clear()

    def _resource(self, meta: Mapping[str, Any]) -> None:
        kind, old, new = type_of(meta["type"]), meta.get("old"), meta.get("new")
        if kind == JOB and old is not None:
            self.look.runs.append(_run(meta["urn"], old, new))
            return
        if old is None:
            return
        if meta["op"] == "delete" or not new:
            self.look.resources.append(self._drift(meta, DELETED))
            return
        found = list(self._declared(meta))
        if kind == SCHEDULE:  # our provider's note of one that somebody changed keeps no values of others
            declared, paths = _values(old, "inputs"), map(str, _values(new, "outputs").get("drifted") or ())
            found += [(path, value_at(declared, path), "changed outside") for path in paths]
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
        urn, kind = meta["urn"], type_of(meta["type"])
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
        """Yield the differences of the inputs, by the places that the provider calls different."""
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
                    yield whole, value_at(old, whole), value_at(new, whole)

    def _by_itself(self, kind: str, path: str, there: Any) -> tuple[str, str] | None:
        """The service that changes a property by itself, and the source of that knowledge."""
        if path.startswith(_RULES) and parts(path)[-1] in self._rules:
            return "the stack itself, which declares the rule by another resource", NETWORK
        known = resources.change_of(kind, path, there)
        return None if known is None else (known.who, known.source)


def _rule_of(path: str) -> str | None:
    """The path of the rule of a managed network that a path lies in; None for another path."""
    found = re.match(rf'{re.escape(_RULES)}(?:\.[^.\[]+|\["(?:[^"\\]|\\.)*"\])', path)
    return found[0] if found else None


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


def _written_by_the_service(kind: str, meta: Mapping[str, Any], known: Sequence[str]) -> Iterator[LeftOut]:
    """Outputs that differ and mirror no input that does."""
    mirrored = tuple(f"{path}{sign}" for path in known for sign in ".[")
    old, new = _values(meta["old"], "outputs"), _values(meta["new"], "outputs")
    for path, was, there in differences(old, new):
        if path in known or path.startswith(mirrored) or path == "drifted":
            continue
        change = resources.change_of(kind, path, there)
        who, source = (change.who, change.source) if change else (SERVICE, "the resource's inputs")
        yield LeftOut(meta["urn"], path, was, there, who, source)


WORDS: Final = ("refresh", "--preview-only", "--run-program=false", "--non-interactive")


def look_through(
    stack: PulumiStack, mending: StackMending, *, on_event: Callable[[Mapping[str, Any]], None] = lambda _: None
) -> Look:
    """Look at a stack.

    Args:
        stack: The stack.
        mending: How its differences are mended.
        on_event: Called with each event of the engine.

    Raises:
        BusyError: Another command changed the state meanwhile.
        EngineError: The state is out of reach.
        EngineInterruptedError: Ctrl-C.
    """
    before = stack.state()
    if not before.resources:
        raise engine.EngineError(f"the stack `{stack.name}` has no resources: it was never brought up, or is down")
    found = Look(mending.stack, stack.where)
    comparison = Comparison(found, mending)

    def taken(event: Mapping[str, Any]) -> None:
        comparison.take(event)
        on_event(event)

    command = [*WORDS, "--stack", stack.name, *stack.options]
    outcome = engine.run(command, stack.env, on_event=taken, owner=stack.owner)
    if busy := pulumi_stack.engine_is_locked(outcome, stack.name):
        raise pulumi_stack.BusyError(busy)
    if stack.state() != before:
        raise pulumi_stack.BusyError(
            f"another command changed the state of `{stack.name}` while it was looked at; run this again when it ended"
        )
    comparison.done()
    found.errors += _errors(outcome)
    if before.pending:
        number = len(before.pending)
        found.errors.append(
            f"{number} operation{' was' if number == 1 else 's were'} cut off and may go on: `{mending.up}` first"
        )
    return found


def _errors(outcome: Outcome) -> list[str]:
    if not outcome.code:
        return []
    together: dict[str, list[str]] = {}
    for severity, urn, text in outcome.diagnostics:
        words = text.removeprefix("Preview failed: ")
        if severity == "error" and words and words != "preview failed":
            of_stack = not urn or "::pulumi:pulumi:Stack::" in urn
            together.setdefault(words, []).append("" if of_stack else name_of(urn))
    reasons = []
    for words, names in sorted(together.items()):
        # One cause that many resources share is one line: ``Compute a100 (and 3 more): no answer``.
        first, more = min(names), f" (and {len(names) - 1} more)" if len(names) > 1 else ""
        reasons.append(f"{first}{more}: {words}" if first else words)
    return reasons or [outcome.output.strip() or f"the engine ended with {outcome.code}"]


def look_at(name: str, progress: Progress, *, sandbox: bool) -> Look:
    """Find a stack without making one, and look at it.

    Args:
        name: Its name; organization and project may stand before it.
        progress: Where what happens is printed.
        sandbox: Whether it is the one on this machine's sandbox.

    Raises:
        NoStackError: There is no such stack, or its settings cannot be read.
        BusyError: Another command works on it.
        EngineError: The state is out of reach, or the sandbox has no such stack.
        SandboxError, ForeignHomeError: The sandbox cannot be used.
    """
    settings = stack_files.read_settings(name)
    short = settings.name
    if sandbox and short not in stack_files.state_files(stack_files.backend_of(short)):
        raise engine.EngineError(f"the stack `{short}` is not on this machine's sandbox: it was never brought up there")
    with pulumi_stack.hold(pulumi_stack.lock_file(name, sandbox=sandbox), name, "amlstack drift"):
        progress.step("Pulumi engine")
        pulumi = engine.find()
        stack = pulumi_stack.reach(name, settings, pulumi, sandbox=sandbox)
        progress.done(f"Pulumi {pulumi.version}; `{name}` on {stack.where}")
        options = f" --stack {name}{' --sandbox' if sandbox else ''}" if name != engine.STACK else ""
        mending = StackMending(name, f"amlstack up{options}", settings.reading, settings.path, plain=not sandbox)
        return look_through(stack, mending, on_event=progress.follow("looking"))
