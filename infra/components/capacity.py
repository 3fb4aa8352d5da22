"""Asks whether there is room for a stack's clusters, before anything of it is planned or made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level, errors
from amlstack.resources import capacity
from infra import quota
from infra.components.registration import end, show
from infra.settings.secrets import hidden

if TYPE_CHECKING:
    import pulumi

    from infra.names import Names
    from infra.quota import Shortage
    from infra.settings import Reading, Settings
    from infra.settings.stackfile import Loc


async def check(
    settings: Settings, reading: Reading | None, names: Names, provider: pulumi.ProviderResource | None
) -> None:
    """Show what the subscription has no room for.

    Args:
        settings: The stack's.
        reading: Where they were written; None for a stack that is only looked at, which asks nothing.
        names: With subscription and workspace.
        provider: Who asks.

    Raises:
        pulumi.RunError: There is no room.
    """
    if reading is None:
        return
    found = await findings(
        settings, reading, subscription=names.subscription, workspace=names.workspace_id, provider=provider
    )
    found = tuple(hidden(finding, reading.secret) for finding in found)
    show(found)
    if wrong := errors(found):
        end(wrong)


async def findings(
    settings: Settings,
    reading: Reading,
    *,
    subscription: str,
    workspace: str,
    provider: pulumi.ProviderResource | None,
) -> tuple[Finding, ...]:
    """The shortages of the subscription; one question for all regions, and one more only where it seems short.

    Args:
        settings: The stack's.
        reading: Where they were written.
        subscription: Id of the subscription.
        workspace: ARM id of the workspace, in the group that a new stack has.
        provider: Who asks.
    """
    wanted = quota.demands(settings)
    if settings.quota == "off" or not wanted:
        return ()
    try:
        asked = quota.regions(wanted)
        answers = (await capacity.of_regions(subscription, asked, workspace=workspace, provider=provider))["regions"]
        found = quota.shortages(wanted, answers, subscription)
        if found:
            there = await capacity.of_workspace(workspace, provider=provider)
            known = quota.Existing.of(there["clusters"])
            found = quota.shortages(wanted, answers, subscription, known)
    except Exception as error:  # noqa: BLE001 - a provider that does not answer is no reason to fail
        problem = str(error) or type(error).__name__
        answers = {region: {"problem": problem} for region in quota.regions(wanted)}
        found = ()
    weakened = (_weaker(short) if settings.quota == "warn" else short for short in found)
    return (*quota.unchecked(answers), *(_placed(short, reading) for short in weakened))


def _weaker(short: Shortage) -> Shortage:
    return replace(short, finding=replace(short.finding, level=Level.WARNING))


def _placed(short: Shortage, reading: Reading) -> Finding:
    loc: Loc = ("clusters", short.index, *short.path)
    return reading.about(loc, short.finding)
