"""Entra ID is the only way in."""

from __future__ import annotations

from amlstack.base.findings import Finding
from policies.checks.examples import cluster
from policies.checks.rule import Rule

RULE = Rule(
    code="local-auth-off",
    title="Local authentication is switched off.",
    what=("Flags a cluster that does not say `disableLocalAuth: true`; Azure's default leaves it on."),
    why=(
        "Local accounts and keys bypass Entra ID: their use is not recorded by person, and no conditional access or "
        "revocation reaches them."
    ),
    example=cluster(compute="disableLocalAuth: false"),
    instead=cluster(compute="disableLocalAuth: true"),
    level="advisory",
)


REMEDY = "Write disableLocalAuth: true"


def check(disabled: bool | None, *, where: str = "disableLocalAuth") -> Finding | None:
    """Judge a cluster's local authentication.

    Args:
        disabled: Whether it is switched off; None when the cluster does not say.
        where: Path of the switch in the declaration.
    """
    if disabled:
        return None
    return Finding(
        RULE.code,
        where,
        seen="Local authentication is on"
        if disabled is False
        else "The cluster does not switch local authentication off",
        rule="Entra ID is the only way in",
        remedy=REMEDY,
    )
