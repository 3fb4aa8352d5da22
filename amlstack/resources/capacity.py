"""The quota of a region, asked through the provider; nothing is created or recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pulumi import InvokeOptions
from pulumi.runtime import invoke_async

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pulumi


async def of_regions(
    subscription: str,
    regions: Mapping[str, Collection[str]],
    *,
    workspace: str | None = None,
    provider: pulumi.ProviderResource | None = None,
) -> dict[str, Any]:
    """The quota of regions, and of some sizes whether they are offered there.

    Args:
        subscription: Its id.
        regions: The regions, each with names of sizes.
        workspace: ARM id of the workspace whose part of the quota is asked for too.
        provider: The provider to ask; the one that the engine makes by itself when absent.

    Returns:
        As ``amlstack:capacity:ofRegions`` of the provider's schema describes it.
    """
    wanted = {name: sorted(sizes) for name, sizes in regions.items()}
    args = {"subscription": subscription, "regions": wanted, **({"workspace": workspace} if workspace else {})}
    return await _asked("amlstack:capacity:ofRegions", args, provider)


async def of_workspace(workspace: str, *, provider: pulumi.ProviderResource | None = None) -> dict[str, Any]:
    """The clusters of a workspace.

    Args:
        workspace: Its ARM id.
        provider: The provider to ask.

    Returns:
        As ``amlstack:capacity:ofWorkspace`` of the provider's schema describes it.
    """
    return await _asked("amlstack:capacity:ofWorkspace", {"workspace": workspace}, provider)


async def _asked(token: str, args: dict[str, Any], provider: pulumi.ProviderResource | None) -> dict[str, Any]:
    answer: dict[str, Any] = await invoke_async(token, args, InvokeOptions(provider=provider))
    return answer
