"""The managed network: its isolation before the workspace, its rules and provisioning before the first cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi

from amlstack import resources
from infra.network.isolation import OFF

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.network.isolation import WantedIsolation

FOUND_LATER = ("managedNetwork.outboundRules", "managedNetwork.status")
"""What Azure writes into the workspace's settings and a refresh finds there; the rules have a resource of their own."""


def isolation(wanted: WantedIsolation, workspace_id: str, *, parent: pulumi.Resource) -> resources.NetworkIsolation:
    """Register what decides the isolation of the workspace.

    Args:
        wanted: What the settings ask for.
        workspace_id: ARM id of the workspace.
        parent: The component that it belongs to.
    """
    return resources.NetworkIsolation(
        "isolation",
        workspace=workspace_id,
        wanted=wanted.mode,
        given=wanted.given,
        excluded=list(wanted.excluded) or None,
        opts=pulumi.ResourceOptions(parent=parent),
    )


def settings_of(
    decided: resources.NetworkIsolation, wanted: WantedIsolation, firewall: str | None
) -> pulumi.Output[dict[str, Any] | None]:
    """The workspace's ``managedNetwork``; nothing without isolation.

    Args:
        decided: The isolation.
        wanted: What counts where no provider has decided, as in a look at the declaration alone.
        firewall: Size of the firewall.
    """
    sku = {"firewallSku": firewall.capitalize()} if firewall else {}

    def settings(mode: str | None) -> dict[str, Any] | None:
        found = wanted.mode if mode is None else mode
        return None if found == OFF else {"isolationMode": found, **sku}

    return decided.mode.apply(settings)


def network(
    decided: resources.NetworkIsolation,
    workspace_id: pulumi.Output[str],
    rules: Mapping[str, Any],
    *,
    parent: pulumi.Resource,
) -> resources.ManagedNetwork:
    """Register rules and provisioning.

    Args:
        decided: The isolation.
        workspace_id: ARM id of the workspace, behind it and what its network leads to.
        rules: Outbound rules by name.
        parent: The component that it belongs to.
    """
    opts = pulumi.ResourceOptions(parent=parent)
    return resources.ManagedNetwork("network", workspace=workspace_id, mode=decided.mode, rules=dict(rules), opts=opts)
