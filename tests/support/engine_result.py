"""The result of one command of the real engine: its steps, diagnostics and violations, out of its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    Event = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One operation of the engine on one resource.

    ``op`` is the engine's word: same, create, update, delete, replace, create-replacement, delete-replaced, read …
    ``diffs`` are the top-level properties that differ, ``keys`` those that force a replacement, ``detail`` path → kind.
    """

    op: str
    urn: str
    type: str
    diffs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, Any] = field(default_factory=dict)
    new: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.urn.rsplit("::", 1)[-1]

    @classmethod
    def of(cls, event: Event) -> Step:
        meta = event["metadata"]
        return cls(
            op=meta["op"],
            urn=meta["urn"],
            type=meta["type"],
            diffs=tuple(meta.get("diffs") or ()),
            keys=tuple(meta.get("keys") or ()),
            detail={path: change["diffKind"] for path, change in (meta.get("detailedDiff") or {}).items()},
            old=meta.get("old") or {},
            new=meta.get("new") or {},
        )


@dataclass(frozen=True)
class Diagnostic:
    """One report of the engine, the program or a provider: ``severity`` is error, warning, info or info#err."""

    severity: str
    message: str
    urn: str


@dataclass(frozen=True)
class Violation:
    """A policy's verdict: ``level`` is mandatory, advisory (on the wire: warning) or remediate."""

    policy: str
    level: str
    message: str
    urn: str
    pack: str


@dataclass(frozen=True)
class Result:
    """The result of one engine command: exit code, its text, its events. The properties read the events."""

    command: tuple[str, ...]
    code: int
    output: str
    events: tuple[Event, ...] = ()

    def ok(self) -> Result:
        """This result; fails the test with the command's own words if the command failed."""
        assert self.code == 0, f"{' '.join(self.command)} ended with {self.code}:\n{self.output}"
        return self

    def failed(self) -> Result:
        """This result; fails the test if the command did not fail or showed a traceback."""
        assert self.code != 0, f"{' '.join(self.command)} should have failed:\n{self.output}"
        assert "Traceback (most recent call last)" not in self.output, self.output
        return self

    def bodies(self, kind: str) -> list[Event]:
        """The bodies of all events of one kind (``resourcePreEvent``), of the last phase where there are several."""
        last = max((i for i, event in enumerate(self.events) if "preludeEvent" in event), default=0)
        return [event[kind] for event in self.events[last:] if kind in event]

    @cached_property
    def planned(self) -> tuple[Step, ...]:
        """The steps that the engine set out to do, in order."""
        return tuple(Step.of(event) for event in self.bodies("resourcePreEvent"))

    @cached_property
    def done(self) -> tuple[Step, ...]:
        """The steps that it finished."""
        return tuple(Step.of(event) for event in self.bodies("resOutputsEvent"))

    @property
    def ops(self) -> dict[str, tuple[str, ...]]:
        """URN → operations planned on it, in order; resources of the engine itself are left out."""
        found: dict[str, tuple[str, ...]] = {}
        for step in self.planned:
            if not step.type.startswith("pulumi:"):
                found[step.urn] = (*found.get(step.urn, ()), step.op)
        return found

    def op(self, name: str, type_: str = "") -> str:
        """The operation on the one resource of that name; ``replace`` for a replacement, whatever its steps are."""
        steps = self.steps(name, type_)
        assert steps, f"no step on {name}; there are {sorted(step.name for step in self.planned)}\n{self.output}"
        assert len({step.urn for step in steps}) == 1, f"{name} names several: {sorted({s.urn for s in steps})}"
        ops = [step.op for step in steps]
        return "replace" if any("replace" in op for op in ops) else ops[-1]

    def steps(self, name: str, type_: str = "") -> list[Step]:
        """The planned steps on the resources of that logical name (and type token, or its last part)."""
        return [step for step in self.planned if step.name == name and step.type.endswith(type_)]

    @property
    def changes(self) -> dict[str, int]:
        """The engine's own count per operation, without ``same``; empty means that nothing changes."""
        summaries = self.bodies("summaryEvent")
        counts = summaries[-1].get("resourceChanges") or {} if summaries else {}
        return {op: count for op, count in counts.items() if op != "same"}

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Everything printed, without the engine's debug lines and passing status lines."""
        return tuple(
            Diagnostic(event["severity"], event["message"].strip(), event.get("urn", ""))
            for event in self.bodies("diagnosticEvent")
            if event["severity"] != "debug" and not event.get("ephemeral")
        )

    @property
    def errors(self) -> tuple[str, ...]:
        """The messages of severity error."""
        return tuple(one.message for one in self.diagnostics if one.severity == "error")

    @cached_property
    def violations(self) -> tuple[Violation, ...]:
        """The verdicts of the policy packs."""
        return tuple(
            Violation(
                policy=event["policyName"],
                level="advisory" if event["enforcementLevel"] == "warning" else event["enforcementLevel"],
                message=event["message"],
                urn=event.get("resourceUrn", ""),
                pack=event["policyPackName"],
            )
            for event in self.bodies("policyEvent")
        )
