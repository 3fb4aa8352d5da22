"""Neighbours of a workspace beside its storage: key vaults, container registries, log workspaces, Application Insights.

Diagnostic settings say where a resource's logs go; none are written here.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.kinds.storage import check_addresses, with_tier
from amlstack.sandbox.protocol.addresses import VAULT, ArmPath
from amlstack.sandbox.protocol.entra import TENANT
from amlstack.sandbox.protocol.kind import UNDER_WAY, Body, KindContext, ResourceKind
from amlstack.sandbox.protocol.refusals import Refused, invalid
from amlstack.sandbox.protocol.times import iso, with_offset

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import ResourceRow


_NETWORK_RULES_UNTIL: Final = "2019-12-01"
REPLICATIONS: Final = "Microsoft.ContainerRegistry/registries/replications"


class Registries(ResourceKind):
    """Container registries."""

    type = "Microsoft.ContainerRegistry/registries"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Registry names are unique in all of Azure; only the premium tier is closed, or open to some."""
        given = body["properties"]
        check_addresses(given.get("networkRuleSet"), "properties.networkRuleSet")
        if body["sku"]["name"] != "Premium" and (
            given.get("publicNetworkAccess") == "Disabled" or given.get("networkRuleSet")
        ):
            message = f"Network rules and private access are not supported for the SKU {body['sku']['name']}."
            raise Refused(400, "SkuNotSupported", message, "sku.name")
        if before is None and self.is_taken(context, path.name):
            check = "https://docs.microsoft.com/en-us/rest/api/containerregistry/registries/checknameavailability"
            message = (
                f"The registry DNS name {path.name.lower()}.azurecr.io is already in use. You can check if the name is "
                f"already claimed using following API: {check}"
            )
            raise Refused(409, "AlreadyInUse", message)

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The registry's host name, which nothing answers here, and the policies that it has from the beginning.

        Source: azure-mgmt-containerregistry 8.0.0, test_managed_registry (2020-05-15).
        """
        given, premium = resource.body["properties"], resource.body["sku"]["name"] == "Premium"
        asked = given.get("policies") or {}
        policies: Body = {
            "quarantinePolicy": {"status": "disabled"},
            "trustPolicy": {"type": "Notary", "status": "disabled"},
            "retentionPolicy": {"days": 7, "lastUpdatedTime": with_offset(resource.created), "status": "disabled"},
        }
        rules = {"defaultAction": "Allow", "virtualNetworkRules": [], "ipRules": []}
        return {
            "loginServer": f"{resource.name.lower()}.azurecr.io",
            "creationDate": iso(resource.created),
            "policies": {**asked, **{name: {**policy, **asked.get(name, {})} for name, policy in policies.items()}},
            **({"networkRuleSet": given.get("networkRuleSet") or rules} if premium else {}),
        }

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The defaults, and the tier, which has the name of the SKU."""
        return with_tier(super().fill(context, path, body), str(body["sku"]["name"]))

    def in_version(self, body: Body, version: str) -> Body:
        """Without rules for networks, which api-versions up to 2019 were recorded to have and today's have not."""
        body = copy.deepcopy(super().in_version(body, version))
        for row in body["value"] if isinstance(body.get("value"), list) else [body]:
            if version[:10] > _NETWORK_RULES_UNTIL and "properties" in row:
                (row["properties"].get("networkRuleSet") or {}).pop("virtualNetworkRules", None)
        return body

    def removal(self, context: KindContext, resource: ResourceRow) -> tuple[int, bool]:
        """One that was replicated goes with time (azure-mgmt-containerregistry 8.0.0, test_replication, 2020-05-15)."""
        replicated = bool(context.store.resources.under(resource.key, REPLICATIONS))
        return int(replicated), replicated


_OF_REPLICATION: Final = "regionEndpointEnabled", "zoneRedundancy"


class Replications(ResourceKind):
    """The regions that a registry of the premium tier is in, its own among them once there is another.

    Source: azure-mgmt-containerregistry 8.0.0, test_replication (2020-05-15).
    """

    type = REPLICATIONS

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The tier allows it."""
        tier = context.store.resources[path.parent].body["sku"]["name"]
        if tier != "Premium":
            raise Refused(400, "SkuNotSupported", f"Geo-replication is not supported for the SKU {tier}.", "sku.name")

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The body with the keys that a client may send."""
        kept = {key: body["properties"][key] for key in _OF_REPLICATION if key in body["properties"]}
        return {**body, "properties": kept}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """True once it is ready."""
        ready = {} if resource.state in UNDER_WAY else {"displayStatus": "Ready"}
        return {"status": {**ready, "timestamp": iso(resource.created)}}

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """The registry's own region is one too."""
        above = resource.id.rpartition("/replications/")[0]
        home = context.store.resources[above].body["location"]
        if context.store.resources.get(f"{above}/replications/{home}") is None:
            body = {"location": home, "properties": {}}
            context.store.resources.put(f"{above}/replications/{home}", self.type, above, body)


class Vaults(ResourceKind):
    """Key vaults."""

    type = "Microsoft.KeyVault/vaults"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Vault names are unique in all of Azure; protection against purging stays; rules for addresses are legal."""
        check_addresses(body["properties"].get("networkAcls"), "properties.networkAcls")
        protects = body["properties"].get("enablePurgeProtection")
        was = before is not None and before.body["properties"].get("enablePurgeProtection")
        if protects is False or (was and not protects):
            message = 'The property "enablePurgeProtection" cannot be set to false. Enabling it is irreversible.'
            raise Refused(400, "BadRequest", message, "properties.enablePurgeProtection")
        if before is None and self.is_taken(context, path.name):
            raise Refused(409, "VaultAlreadyExists", f"The vault name '{path.name}' is already in use.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The vault's address, under which its keys answer (`amlstack.sandbox.server.daemon`)."""
        return {"vaultUri": f"https://{resource.name.lower()}{VAULT}/"}

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """One that was made has its name in DNS later (azure-mgmt-keyvault 7.0.0, 2020-09-15)."""
        shown = self.render(context, resource)
        if resource.changed != resource.created:
            return shown
        early = {"vaultUri": f"https://{resource.name}{VAULT}", "provisioningState": "RegisteringDns"}
        return {**shown, "properties": {**shown["properties"], **early}}


_KINDS = ("RSA", "RSA-HSM", "EC", "EC-HSM")


def vault(key: ResourceRow) -> str:
    """The name of a key's vault, in small letters."""
    return key.id.split("/")[-3].lower()


def version(key: ResourceRow) -> str:
    """The id of a key's one version."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{key.key}:{key.created}").hex


class Keys(ResourceKind):
    """Keys of a vault; a PUT of one that exists answers it and makes no version."""

    type = "Microsoft.KeyVault/vaults/keys"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """A kind of key that there is."""
        if (kind := body["properties"].get("kty")) not in _KINDS:
            raise invalid("properties.kty", f"'{kind}' is not allowed. Allowed: {', '.join(_KINDS)}.")

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The key as it was made."""
        return before.body

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Its addresses."""
        uri = f"https://{vault(resource)}{VAULT}/keys/{resource.name}"
        return {"attributes": {"enabled": True}, "keyUri": uri, "keyUriWithVersion": f"{uri}/{version(resource)}"}

    def check_delete(self, query: Mapping[str, str]) -> None:
        """There is no DELETE."""
        raise Refused(405, "MethodNotAllowed", "The resource manager has no DELETE for a key.")


NAMESPACE = uuid.UUID("8f2f7f5e-6d0c-4c1c-9d57-0c6f0e4a9b11")


class LogWorkspaces(ResourceKind):
    """Log Analytics workspaces."""

    type = "Microsoft.OperationalInsights/workspaces"

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The customer id by which agents would know it."""
        return {"customerId": str(uuid.uuid5(NAMESPACE, resource.key))}


class InsightsComponents(ResourceKind):
    """Application Insights components."""

    type = "Microsoft.Insights/components"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The type of application is required, and the log workspace must exist."""
        properties = body["properties"]
        if "Application_Type" not in properties:
            raise invalid("properties.Application_Type", "the required property is missing.")
        logs = properties.get("WorkspaceResourceId")
        if logs is not None and context.store.resources.get(logs) is None:
            raise invalid("properties.WorkspaceResourceId", f"the workspace '{logs}' was not found.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Identifiers that a client would put into its configuration."""
        key = str(uuid.uuid5(NAMESPACE, resource.key))
        return {
            "AppId": str(uuid.uuid5(NAMESPACE, f"{resource.key}/app")),
            "ApplicationId": resource.name,
            "ConnectionString": f"InstrumentationKey={key};IngestionEndpoint={context.base}/",
            "InstrumentationKey": key,
            "TenantId": TENANT,
        }


SINKS: Final = ("workspaceId", "storageAccountId", "eventHubAuthorizationRuleId", "marketplacePartnerId")
_MOST: Final = 5


class DiagnosticSettings(ResourceKind):
    """Diagnostic settings of any resource."""

    type = "Microsoft.Insights/diagnosticSettings"

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Somewhere to send to that exists, something to send, no two settings for one category and place."""
        given = body["properties"]
        sinks = {name: str(given[name]).lower() for name in SINKS if given.get(name)}
        if not sinks:
            raise Refused(400, "BadRequest", "At least one data sink needs to be specified.", "properties")
        for name in ("workspaceId", "storageAccountId"):
            if name in sinks and context.store.resources.get(sinks[name]) is None:
                raise invalid(f"properties.{name}", f"'{given[name]}' was not found.")
        categories = _categories(given)
        if not categories:
            raise Refused(400, "BadRequest", "At least one log or metric category must be specified.", "properties")
        others = [row for row in context.store.resources.under(path.parent, self.type) if row.name != path.name]
        if before is None and len(others) >= _MOST:
            raise Refused(400, "BadRequest", f"'{path.parent}' has {_MOST} diagnostic settings, which is the limit.")
        for other in others:
            theirs = other.body["properties"]
            same = categories & _categories(theirs)
            if same and any(str(theirs.get(name, "")).lower() == sink for name, sink in sinks.items()):
                message = (
                    f"Data sink '{next(iter(sinks.values()))}' is already used in diagnostic setting '{other.name}' "
                    f"for category '{min(same)}'."
                )
                raise Refused(409, "Conflict", message)


def _categories(properties: Body) -> set[str]:
    rows = [*(properties.get("logs") or ()), *(properties.get("metrics") or ())]
    return {str(row.get("category") or row.get("categoryGroup")) for row in rows if row.get("enabled")}


KINDS = (
    *(Vaults(), Keys(), Registries(), Replications()),
    *(LogWorkspaces(), InsightsComponents(), DiagnosticSettings()),
)
"""The kinds of this module; a new one is a row here."""
