"""Microsoft.Insights/diagnosticSettings: where a resource's logs go. None are written here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

SINKS: Final = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId", "marketplacePartnerId")
_MOST: Final = 5


class DiagnosticSettings(ResourceKind):
    """Diagnostic settings of any resource."""

    type = "Microsoft.Insights/diagnosticSettings"
    noun = "a diagnostic setting"
    names = NameRule(r"[^*<>%:&?\\+/]{0,259}[^*<>%:&?\\+/. ]", "up to 260 characters, none of *<>%:&?\\+/")
    schema = Schema("monitor", "DiagnosticSettingArgs", frozenset({"name", "resourceUri"}), envelope=frozenset())
    tracked = False
    made_status = 200

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Somewhere to send to that exists, something to send, no two settings for one category and place."""
        given = body["properties"]
        sinks = {name: str(given[name]).lower() for name in SINKS if given.get(name)}
        if not sinks:
            raise Refused(400, "BadRequest", "At least one data sink needs to be specified.", "properties")
        for name in ("workspaceId", "storageAccountId"):
            if name in sinks and context.store.resources.get(sinks[name]) is None:
                raise invalid(f"properties.{name}", f"'{given[name]}' was not found.")
        categories = _categories(given)
        if not categories:
            message = "At least one log or metric category must be specified."
            raise Refused(400, "BadRequest", message, "properties")
        others = [row for row in context.store.resources.under(path.parent, self.type) if row.name != path.name]
        if before is None and len(others) >= _MOST:
            raise Refused(400, "BadRequest", f"'{path.parent}' has {_MOST} diagnostic settings, which is the limit.")
        for other in others:
            theirs = other.body["properties"]
            same = categories & _categories(theirs)
            if same and any(str(theirs.get(name, "")).lower() == sink for name, sink in sinks.items()):
                message = (
                    f"Data sink '{next(iter(sinks.values()))}' is already used in diagnostic setting '{other.name}' "
                    f"for category '{min(same)}'."
                )
                raise Refused(409, "Conflict", message)


def _categories(properties: Body) -> set[str]:
    rows = [*(properties.get("logs") or ()), *(properties.get("metrics") or ())]
    return {str(row.get("category") or row.get("categoryGroup")) for row in rows if row.get("enabled")}


KIND = DiagnosticSettings()
