"""Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials: whose tokens an identity trusts.

Source: learn.microsoft.com/entra/workload-id/workload-identity-federation-considerations (2026-11-22).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.sandbox.arm.refusals import Refused, invalid
from amlstack.sandbox.kinds import principals
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

MOST: Final = 20
"""Of one identity."""


class FederatedCredentials(ResourceKind):
    """An issuer, a subject and an audience each: what a token has to say to be exchanged for one of the identity."""

    type = f"{principals.TYPE}/federatedIdentityCredentials"
    noun = "a federated identity credential"
    names = NameRule(
        r"[A-Za-z0-9][A-Za-z0-9_-]{2,119}", "3 to 120 letters, digits, '-' and '_', a letter or digit first"
    )
    schema = Schema(
        "managedidentity", "FederatedIdentityCredentialArgs",
        frozenset({"resourceGroupName", "resourceName", "federatedIdentityCredentialResourceName"}),
        envelope=frozenset(),
    )  # fmt: skip
    tracked = False

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """An https issuer, one audience, no second one for the same issuer and subject, and not too many."""
        given = body["properties"]
        if not given["issuer"].startswith("https://"):
            raise invalid("properties.issuer", f"'{given['issuer']}' is no https address.")
        if len(given["audiences"]) != 1:
            raise invalid("properties.audiences", f"{len(given['audiences'])} audiences; exactly one is allowed.")
        others = [
            row
            for row in context.store.resources.under(path.parent, self.type)
            if before is None or row.key != before.key
        ]
        for other in others:
            theirs = other.body["properties"]
            if (theirs["issuer"], theirs["subject"]) == (given["issuer"], given["subject"]):
                message = "Issuer and subject combination already exists for this Managed Identity."
                raise Refused(409, "Conflict", message)
        if before is None and len(others) >= MOST:
            message = (
                f"Too many Federated Identity Credentials are configured for the Managed Identity: {MOST} at most."
            )
            raise Refused(400, "BadRequest", message)


KIND = FederatedCredentials()
