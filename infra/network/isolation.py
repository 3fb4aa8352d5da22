"""Isolation of a workspace, and the settings that a managed network excludes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from infra.security.defaults import SANDBOX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from infra.settings import Settings

OFF: Final = "Disabled"
OPEN: Final = "AllowInternetOutbound"
APPROVED: Final = "AllowOnlyApprovedOutbound"

MODES: Final[Mapping[str, str]] = {"off": OFF, "allow_internet_outbound": OPEN, "only_approved": APPROVED}
"""Azure's word by the settings'."""


@dataclass(frozen=True, slots=True)
class WantedIsolation:
    """What the settings ask of the workspace's isolation.

    Attributes:
        mode: In Azure's words.
        given: The settings say so; otherwise a workspace that exists keeps what it has.
        excluded: What of the stack cannot be in a managed network, a sentence each.
    """

    mode: str
    given: bool
    excluded: tuple[str, ...] = ()


def declared(settings: Settings) -> str | None:
    """The mode that the settings ask for, in Azure's words; None where they leave it to the stack."""
    network = settings.workspace.network
    if network is None:
        return None
    if network.isolation is not None:
        return MODES[network.isolation]
    return OFF if network.vnet is not None and network.vnet.compute is not None else None


def wanted(settings: Settings, stack: str) -> WantedIsolation | None:
    """What is asked of the workspace's isolation; None where nothing is, and nothing is to be looked at.

    Args:
        settings: The stack's settings.
        stack: Its name.
    """
    mode, excluded = declared(settings), tuple(_excluded(settings))
    if mode is not None:
        return WantedIsolation(mode, given=True, excluded=excluded)
    # An imported workspace keeps the network that it has, until the settings say another one.
    if stack == SANDBOX or settings.workspace.adopted:
        return None
    return WantedIsolation(OFF if excluded else OPEN, given=False, excluded=excluded)


def _excluded(settings: Settings) -> Iterator[str]:
    for cluster in settings.clusters:
        if cluster.subnet is not None:
            yield f"cluster {cluster.name} has a subnet of its own"
        if cluster.location is not None and cluster.location != settings.location:
            yield f"cluster {cluster.name} is in {cluster.location}, the workspace in {settings.location}"
