"""Asks whether there is room for a stack's clusters, before anything of it is planned or made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from amlstack.base.findings import Finding, Level, errors
from infra import quota
from infra.components.registration import end, show
from infra.settings.secrets import hidden

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infra.names import Names
    from infra.settings import Reading, Settings


async def check(
    settings: Settings, reading: Reading | None, names: Names, provider: pulumi.ProviderResource | None
) -> None:
    """Show what the subscription has no room for.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        names: With subscription and workspace, in the group that a new stack has.
        provider: Who asks.

    Raises:
        pulumi.RunError: There is no room.
    """
    if reading is None:
        return
    found = [hidden(finding, reading.secret) for finding in await findings(settings, reading, names, provider)]
    show(found)
    if wrong := errors(found):
        end(wrong)


async def check_providers(
    settings: Settings,
    reading: Reading | None,
    subscription: str,
    needed: Sequence[str],
    provider: pulumi.ProviderResource | None,
) -> None:
    """Show the resource providers that the subscription must have registered and has not.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        subscription: Its id.
        needed: Names of the providers of all that is registered here.
        provider: Who asks.

    Raises:
        pulumi.RunError: One is not registered.
    """
    if reading is None or settings.quota == "off":
        return
    asked = {"subscription": subscription, "namespaces": needed}
    try:
        answer = await _answer("amlstack:capacity:ofProviders", asked, provider)
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        answer = {"states": {}, "problem": str(error) or type(error).__name__}
    level = Level.WARNING if settings.quota == "warn" else Level.ERROR
    found = [*quota.unregistered(answer["states"], subscription, level), *quota.not_asked(answer["problem"])]
    show([hidden(finding, reading.secret) for finding in found])
    if wrong := errors(found):
        end(wrong)


async def findings(
    settings: Settings, reading: Reading, names: Names, provider: pulumi.ProviderResource | None
) -> list[Finding]:
    """The shortages of the subscription; one question for all regions, and one more only where it seems short."""
    wanted = quota.demands(settings)
    if settings.quota == "off" or not wanted:
        return []
    regions = {name: sorted(sizes) for name, sizes in quota.regions(wanted).items()}
    asked = {"subscription": names.subscription, "regions": regions, "workspace": names.workspace_id}
    try:
        answers = (await _answer("amlstack:capacity:ofRegions", asked, provider))["regions"]
        short = quota.shortages(wanted, answers, names.subscription)
        if short:
            there = await _answer("amlstack:capacity:ofWorkspace", {"workspace": names.workspace_id}, provider)
            short = quota.shortages(wanted, answers, names.subscription, quota.Existing.of(there["clusters"]))
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        problem = str(error) or type(error).__name__
        answers = {region: {"problem": problem} for region in regions}
        short = ()
    found = list(quota.unchecked(answers))
    for each in short:
        finding = each.finding.changed(level=Level.WARNING) if settings.quota == "warn" else each.finding
        found.append(reading.about(("clusters", each.index, *each.path), finding))
    return found


async def _answer(token: str, asked: dict[str, Any], provider: pulumi.ProviderResource | None) -> dict[str, Any]:
    """The answer of a function, as the provider's schema describes it; nothing is created or recorded."""
    answer: dict[str, Any] = await pulumi.runtime.invoke_async(token, asked, pulumi.InvokeOptions(provider=provider))
    return answer
