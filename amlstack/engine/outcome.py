"""What one run of the engine did, from its events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(slots=True)
class Outcome:
    """What one run of the engine did.

    Attributes:
        code: The exit status of the command.
        ops: Operation (``create``, ``same``, ``update``, ``replace`` ...) of each URN, the last one seen.
        diagnostics: Messages of weight (error, warning, info#err) in the order they came, with their URN.
        policies: Results of policies in the last phase, as the engine reports them: refusals and advice.
        redescribed: URNs of the last phase that stay the same, and yet the state records something else of them.
        packs: Name → version of the policy packs that ran.
        output: The command's own text, for when nothing better explains a failure.
        phases: How many phases (preview, update) have begun.
        applied: Operation of each URN whose change has been made, and not only planned.
    """

    code: int = 0
    ops: dict[str, str] = field(default_factory=dict)
    diagnostics: list[tuple[str, str, str]] = field(default_factory=list)
    policies: list[Mapping[str, Any]] = field(default_factory=list)
    redescribed: set[str] = field(default_factory=set)
    packs: dict[str, str] = field(default_factory=dict)
    output: str = ""
    phases: int = 0
    applied: dict[str, str] = field(default_factory=dict)

    @property
    def changed(self) -> dict[str, str]:
        """The operations that changed something."""
        return {urn: op for urn, op in self.ops.items() if op not in {"same", "read"}}

    @property
    def refusals(self) -> list[Mapping[str, Any]]:
        """What policies refused."""
        return [result for result in self.policies if result["enforcementLevel"] == "mandatory"]

    @property
    def advice(self) -> list[Mapping[str, Any]]:
        """What policies only advise."""
        return [result for result in self.policies if result["enforcementLevel"] != "mandatory"]

    def take(self, event: Mapping[str, Any]) -> None:
        """Fold one engine event in. A prelude opens a phase (preview, update): the last one counts."""
        if "preludeEvent" in event:
            self.phases += 1
            self.ops.clear()
            self.policies.clear()
            self.redescribed.clear()
        if meta := (event.get("resourcePreEvent") or {}).get("metadata"):
            self.ops[meta["urn"]] = meta["op"]
        outputs = event.get("resOutputsEvent") or {}
        done = outputs.get("metadata")
        if done and done["op"] == "same" and done.get("old") != done.get("new"):
            self.redescribed.add(done["urn"])
        if done and not outputs.get("planning") and done["op"] not in {"same", "read"}:
            self.applied[done["urn"]] = done["op"]
        diagnostic = event.get("diagnosticEvent")
        if diagnostic and not diagnostic.get("ephemeral") and diagnostic["severity"] != "debug":
            message = (diagnostic["severity"], diagnostic.get("urn", ""), diagnostic["message"].strip())
            if message not in self.diagnostics:  # the preview and the update report the same
                self.diagnostics.append(message)
        if policy := event.get("policyEvent"):
            self.policies.append(policy)
        if summary := event.get("summaryEvent"):
            self.packs.update(summary.get("policyPacks") or summary.get("PolicyPacks") or {})
