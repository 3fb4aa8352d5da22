"""Stacks of one resource, with the values that a stated definition is about, made by chance."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.resources import PolicyPlace, PolicyTarget
from policies.tenant import statements
from policies.tenant.stack import DeclaredStack, indexed

if TYPE_CHECKING:
    import random

    from policies.tenant.statements import StatedDefinition
    from policies.tenant.verdicts import TenantVerdict

GROUP = "/subscriptions/s/resourceGroups/g/providers"
PLACE = PolicyPlace.of("s", "g", location="westeurope", tags={})
DIAGNOSTICS = "Microsoft.Insights/diagnosticSettings"


@cache
def values(stated_id: str) -> dict[str, list[Any]]:
    """Values to try for each property that a definition looks at."""
    stated = statements.definitions()[stated_id]
    found: dict[str, list[Any]] = {path: [*wanted, "Other"] for path, wanted in stated.when.items()}
    todo = list(stated.requires)
    while todo:
        one = todo.pop()
        todo += one.get("any", ())
        if "property" not in one:
            continue
        (word,) = set(one) - {"property"}
        asked = one[word]
        asked = stated.parameters[asked["parameter"]] if isinstance(asked, dict) else asked
        match word:
            case "given":
                tried: list[Any] = ["", "/x", None]
            case "empty":
                tried = [[], [{"value": "1.2.3.4"}], None]
            case "at_most":
                tried = [asked, asked + 1, 0]
            case "last_number_at_most":
                tried = [f"PT{asked}S", f"PT{asked + 1}S", "PT10M", "PT1M30S", "P1D", None]
            case _:
                first = asked[0] if isinstance(asked, list) else asked
                tried = [first, str(first).upper(), None, not first if isinstance(first, bool) else "Other"]
        found.setdefault(one["property"], []).extend(tried)
    return found


def some_stack(stated: StatedDefinition, chance: random.Random) -> DeclaredStack:
    names = [f"{kind}/one" for kind in stated.on.split("/")[1:]]
    own_id = f"{GROUP}/{stated.on.split('/', maxsplit=1)[0]}/{'/'.join(names)}"
    inner: dict[str, Any] = {}
    body: dict[str, Any] = {"location": "westeurope", "properties": inner}
    for path, tried in values(stated.id.lower()).items():
        value = chance.choice(tried)
        *parents, last = path.split(".")
        at = body if path == "sku.name" else inner
        for parent in parents:
            at = at.setdefault(parent, {})
        if value is not None:
            at[last] = value
    if any("has" in one for one in stated.requires):
        states = [chance.choice(["Approved", "Pending"]) for _ in range(chance.randrange(3))]
        *parents, last = next(one["has"] for one in stated.requires if "has" in one).split(".")
        at = inner
        for parent in parents:
            at = at.setdefault(parent, {})
        state = "privateLinkServiceConnectionState"
        at[last] = [{"id": "/x", "action": "Allow", "properties": {state: {"status": each}}} for each in states]
    targets = [PolicyTarget(stated.on, own_id, body, "2025-12-01", indexed(stated.on, body))]
    if chance.random() < 0.7:
        logs = [{"category": "a", "enabled": chance.random() < 0.5} for _ in range(chance.randrange(3))]
        where = chance.choice([own_id, f"{own_id}else"])
        diagnostics = {"properties": {"logs": logs}}
        targets.append(PolicyTarget(DIAGNOSTICS, f"{where}/providers/{DIAGNOSTICS}/x", diagnostics, indexed=False))
    if chance.random() < 0.5:
        kind = chance.choice(["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"])
        to = chance.choice([own_id, f"{own_id}else"])
        endpoint = {"location": "westeurope", "properties": {kind: [{"name": "x", "privateLinkServiceId": to}]}}
        targets.append(
            PolicyTarget(
                "Microsoft.Network/privateEndpoints", f"{GROUP}/Microsoft.Network/privateEndpoints/pe", endpoint
            )
        )
    return DeclaredStack(tuple(targets), PLACE)


def rulings(verdicts: list[TenantVerdict]) -> list[tuple[str, Any]]:
    return [
        (str(one.assessment.ruling), one.target and one.target.id)
        for one in verdicts
        if str(one.assessment.ruling) != "passes"
    ]
