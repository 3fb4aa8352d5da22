"""Our provider signs in as azure-native does: it is given azure-native's own settings of the stack.

The engine gives a provider the settings of its own namespace alone, and environment variables anyway. A stack that has
none of these settings keeps the provider that the engine makes by itself.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import pulumi
from pulumi.runtime import config as engine_config

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

SETTINGS = (
    "environment",
    "tenantId",
    "clientId",
    "clientSecret",
    "clientCertificatePath",
    "clientCertificatePassword",
    "useOidc",
    "oidcToken",
    "oidcTokenFilePath",
    "oidcRequestToken",
    "oidcRequestUrl",
    "oidcAudience",
    "useMsi",
    "useDefaultAzureCredential",
    "disableInstanceDiscovery",
    "auxiliaryTenantIds",
)
"""Of azure-native; ``amlstack/provider/schema.json`` describes each."""
SECRET = ("clientSecret", "clientCertificatePassword", "oidcToken", "oidcRequestToken")
_NAMESPACE = "azure-native:"


def provide(config: Mapping[str, str], arm_endpoint: str | None) -> pulumi.ProviderResource | None:
    """Has every resource of our provider made by one that signs in with azure-native's settings, if there are any.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        arm_endpoint: The stack's own resource manager.

    Returns:
        That provider, for what no transformation reaches; None where the engine makes one.
    """
    secret = [key for key in config if engine_config.is_config_secret(key)]
    settings = given(config, secret)
    if not settings:
        return None
    if arm_endpoint:
        settings["armEndpoint"] = arm_endpoint
    provider = pulumi.ProviderResource("amlstack", "amlstack", settings)

    def assign(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
        if not args.type_.startswith("amlstack:") or not isinstance(args.resource, pulumi.CustomResource):
            return None
        opts = copy.copy(args.opts)
        opts.provider = provider
        return pulumi.ResourceTransformationResult(props=args.props, opts=opts)

    pulumi.runtime.register_stack_transformation(assign)
    return provider


def given(config: Mapping[str, str], secret: Collection[str] = ()) -> dict[str, pulumi.Input[str]]:
    """azure-native's settings for signing in; what is secret in the stack, or always is, stays secret.

    Args:
        config: The engine's configuration, ``namespace:key`` → value.
        secret: Keys whose values are secret in it.
    """
    found: dict[str, pulumi.Input[str]] = {}
    for name in SETTINGS:
        key = f"{_NAMESPACE}{name}"
        if key in config:
            hidden = name in SECRET or key in secret
            found[name] = pulumi.Output.secret(config[key]) if hidden else config[key]
    return found
