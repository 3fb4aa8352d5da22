"""The managed network of the fake workspace: its mode, its rules, and provisioning that may be busy for a while."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

ACTIVE = "Active"


@dataclass
class FakeNetwork:
    """The managed network of a workspace.

    Attributes:
        mode: Its isolation; empty for none.
        active: It has been provisioned.
        rules: Properties of each rule by name.
        computes: Names of the workspace's computes.
        busy: How many writes are answered with 409 before the next one counts.
        fails: Provisioning ends without an active network.
    """

    mode: str = ""
    active: bool = False
    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    computes: list[str] = field(default_factory=list)
    busy: int = 0
    fails: bool = False

    def shown(self) -> dict[str, Any]:
        """The part of the workspace's properties that is about it."""
        if not self.mode:
            return {}
        status = {"status": ACTIVE if self.active else "Inactive", "sparkReady": False}
        return {"managedNetwork": {"isolationMode": self.mode, "status": status}}

    def answer(self, method: str, rest: str, body: Any) -> tuple[int, Any] | None:
        """Status and body for a path below the workspace; None for one that is not about it."""
        if rest == "/computes":
            return 200, {"value": [{"name": name} for name in self.computes]}
        if rest == "/outboundRules":
            listed = [{"name": name, "properties": rule} for name, rule in self.rules.items()]
            system = {"name": "__SYS_PE", "properties": {"type": "PrivateEndpoint", "category": "Required"}}
            return 200, {"value": [*listed, system]}
        name = rest.removeprefix("/outboundRules/")
        if name == rest and rest != "/provisionManagedNetwork":
            return None
        if method != "GET" and self.busy:
            self.busy -= 1
            return 409, {"error": {"code": "Conflict", "message": "another operation is under way"}}
        if rest == "/provisionManagedNetwork":
            assert body == {"includeSpark": False}
            self.active = not self.fails
            return 200, {"status": ACTIVE}
        if method == "DELETE":
            found = self.rules.pop(name, None)
            return (200, None) if found else (404, {"error": {"code": "NotFound", "message": "no such rule"}})
        self.rules[name] = {**body["properties"], "category": "UserDefined", "status": "Inactive"}
        return 201, {"name": name, "properties": self.rules[name]}
