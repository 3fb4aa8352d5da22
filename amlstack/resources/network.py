"""The managed network of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.resources.base import ProviderResource, with_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pulumi


class NetworkIsolation(ProviderResource):
    """Decides which isolation a workspace gets, before it is written; refused at preview where Azure takes no step.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace, which may not exist yet: plain text, as the workspace comes after it.
        wanted: ``Disabled``, ``AllowInternetOutbound`` or ``AllowOnlyApprovedOutbound``.
        given: The settings ask for it; otherwise a workspace that exists keeps what it has.
        excluded: What of the stack cannot be in a managed network, a sentence each.
        opts: Pulumi's own options.

    Attributes:
        mode: What the workspace gets; not known at a preview that could not ask Azure.
    """

    if TYPE_CHECKING:
        mode: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: str,
        wanted: str,
        given: bool,
        excluded: Sequence[str] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "wanted": wanted, "given": given, "excluded": list(excluded) or None}
        super().__init__("amlstack:network:Isolation", resource_name, with_outputs(inputs, "mode"), opts)


class ManagedNetwork(ProviderResource):
    """The outbound rules of a managed network, all of them, and its provisioning, which clusters wait for.

    Args:
        resource_name: Name in the stack.
        workspace: ARM id of the workspace.
        mode: Its isolation; nothing is done for ``Disabled``.
        rules: Outbound rules by name, as ``workspaces/outboundRules`` has them under ``properties``.
        opts: Pulumi's own options.

    Attributes:
        status: ``Active`` once it is provisioned, ``Disabled`` without a managed network.
    """

    if TYPE_CHECKING:
        status: pulumi.Output[str]

    def __init__(
        self,
        resource_name: str,
        *,
        workspace: pulumi.Input[str],
        mode: pulumi.Input[str],
        rules: Mapping[str, Any],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {"workspace": workspace, "mode": mode, "rules": dict(rules)}
        super().__init__("amlstack:network:Managed", resource_name, with_outputs(inputs, "status"), opts)
