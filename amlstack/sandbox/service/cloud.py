"""The cloud around resource groups: metadata before sign-in, subscriptions and the tenant, curated environments.

One document of endpoints serves all clients that read it before they sign in: azure-ai-ml and az
(``ARM_CLOUD_METADATA_URL``), azurerm (``metadata_host``), azure-native 3.8 and newer (``metadataHost``). Each reads
what it knows of it:

- azure-ai-ml 1.35: name, portal, resourceManager, authentication.loginEndpoint, suffixes.storage; it looks for
  resourceManager inside the document's own address, and makes the audience of Azure ML of the portal's domain.
- az 2.91: a list where ``ARM_CLOUD_METADATA_URL`` names the address, one object for ``az cloud register``.
- azure-native 3.8: also microsoftGraphResourceId, authentication.audiences, suffixes.keyVaultDns.

The registry ``azureml`` holds the curated environments, as ``MLClient(registry_name="azureml")`` reads it. Names come
from the catalogue. Which versions the registry of Azure ML holds today only that one knows: here each environment has
one version, called 1, in lists and under ``latest``; any other whole number is answered where it is asked for by name,
as a job may name any. A workspace has the same environments under the prefix ``AzureML-``. Retired ones are in no list,
and are answered by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog import environments
from amlstack.sandbox import kinds
from amlstack.sandbox.files.environments import NEWEST
from amlstack.sandbox.kinds.machine_learning.assets import EnvironmentVersions
from amlstack.sandbox.protocol import addresses
from amlstack.sandbox.protocol.addresses import GROUPS, ML
from amlstack.sandbox.protocol.entra import CLOUD, SUBSCRIPTION, SUBSCRIPTIONS, TENANT, resource_manager
from amlstack.sandbox.protocol.kind import Body, KindContext, Reply, ResourceKind, system_data
from amlstack.sandbox.protocol.refusals import Refused, near, not_emulated
from amlstack.sandbox.protocol.times import with_offset

if TYPE_CHECKING:
    from amlstack.catalog.environments import CatalogEnvironment, RetiredEnvironment
    from amlstack.sandbox.store.store import ResourceRow

PATH: Final = "/metadata/endpoints"
_ONE_OBJECT: Final = "2022-09-01"
"""The first api-version whose answer is no list."""


def answer(base: str, path: str, query: Mapping[str, str]) -> Any:
    """The document at a path, or None where there is none; none of them asks for a token.

    Args:
        base: ``https://127.0.0.1:PORT``.
        path: Of the request.
        query: Its parameters.

    Raises:
        Refused: The api-version is missing.
    """
    if path.rstrip("/") == PATH:
        version = query.get("api-version")
        if not version:
            message = "The api-version query parameter (?api-version=) is required for all requests."
            raise Refused(400, "MissingApiVersionParameter", message)
        return cloud(base) if version >= _ONE_OBJECT else [cloud(base)]
    tenant, _, rest = path.strip("/").partition("/")
    if rest in ("v2.0/.well-known/openid-configuration", ".well-known/openid-configuration"):
        return _openid(base, tenant)
    if path == "/common/discovery/instance":
        return {
            "tenant_discovery_endpoint": f"{base}/{TENANT}/v2.0/.well-known/openid-configuration",
            "api-version": "1.1",
            "metadata": [],
        }
    return None


def cloud(base: str) -> dict[str, Any]:
    """The cloud's endpoints; what the sandbox does not have is not named, so that no client calls Azure for it."""
    host = base.removeprefix("https://")
    return {
        "name": CLOUD,
        "portal": "https://portal.azure.com/",
        "authentication": {
            "loginEndpoint": base,
            "audiences": list(resource_manager(base)),
            "tenant": TENANT,
            "identityProvider": "AAD",
        },
        "resourceManager": base,
        "graph": base,
        "graphAudience": base,
        "microsoftGraphResourceId": base,
        "activeDirectoryDataLake": base,
        "batch": base,
        "gallery": base,
        "sqlManagement": base,
        "media": base,
        "vmImageAliasDoc": f"{base}/aliases.json",
        "suffixes": {
            "storage": "core.windows.net",
            "keyVaultDns": "vault.azure.net",
            "acrLoginServer": "azurecr.io",
            "sqlServerHostname": host,
            "azureDataLakeStoreFileSystem": host,
            "azureDataLakeAnalyticsCatalogAndJob": host,
        },
    }


def _openid(base: str, tenant: str) -> dict[str, Any]:
    """The metadata that a client of Entra ID reads of a tenant before it asks for a token."""
    root = f"{base}/{TENANT if tenant in ('common', 'organizations') else tenant}"
    return {
        "issuer": f"{root}/v2.0",
        "token_endpoint": f"{root}/oauth2/v2.0/token",
        "authorization_endpoint": f"{root}/oauth2/v2.0/authorize",
        "device_authorization_endpoint": f"{root}/oauth2/v2.0/devicecode",
        "jwks_uri": f"{root}/discovery/v2.0/keys",
        "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt"],
        "response_types_supported": ["code", "id_token"],
        "subject_types_supported": ["pairwise"],
        "id_token_signing_alg_values_supported": ["HS256"],
    }


ABOVE = ("/subscriptions", "/tenants")
"""Paths above any subscription."""
_CHECK = re.compile(r"/subscriptions/[^/]+/providers/([^/]+)/checkNameAvailability", re.IGNORECASE)
_OPERATIONS = re.compile(r"/providers/([^/]+)/operations/?", re.IGNORECASE)
_NAMED_ONCE = {
    "microsoft.storage": "Microsoft.Storage/storageAccounts",
    "microsoft.keyvault": "Microsoft.KeyVault/vaults",
    "microsoft.containerregistry": "Microsoft.ContainerRegistry/registries",
}
"""Types whose names are taken once in the whole of Azure, by their namespace."""
_REGISTRATION = re.compile(r"/subscriptions/([^/]+)/providers/([^/]+)/(register|unregister)", re.IGNORECASE)
_REGISTRATION_FREE: Final = frozenset({"microsoft.authorization", "microsoft.resources"})
"""Registered in every subscription, and never unregistered (learn.microsoft.com/azure/azure-resource-manager/
management/resource-providers-and-types, 2026-11-26)."""
_FILTER = re.compile(r"(resourceGroup|resourceType|name|location)\s+eq\s+'([^']*)'", re.IGNORECASE)


def above(path: str, version: str = "") -> Reply | None:
    """Answers ``GET /subscriptions``, ``/tenants`` and ``/providers/{namespace}/operations``; None for other paths."""
    if path not in ABOVE:
        return _operations(path)
    if path == "/tenants":
        one = {"id": f"/tenants/{TENANT}", "tenantId": TENANT, "tenantCategory": "Home"}
        one |= {"displayName": "amlstack sandbox"} if version >= "2020-01-01" else {}
        return Reply(200, {"value": [one]})
    count = {"type": "Total", "value": len(SUBSCRIPTIONS)}
    return Reply(200, {"value": [_subscription(each) for each in SUBSCRIPTIONS], "count": count})


def _operations(path: str) -> Reply | None:
    """The operations on the types of a namespace."""
    found = _OPERATIONS.fullmatch(path)
    if found is None:
        return None
    of_it = _kinds_of(_namespace(found[1]))
    return Reply(200, {"value": [_operation(kind, verb) for kind in of_it for verb in _verbs(kind)]})


def _verbs(kind: ResourceKind) -> Iterator[str]:
    yield "read"
    if not kind.read_only:
        yield from ("write", "delete")
    yield from (f"{action}/action" for action in kind.actions)


def _operation(kind: ResourceKind, verb: str) -> Body:
    provider, _, resource = kind.type.partition("/")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", provider).replace(".", " ")
    display = {"provider": words, "resource": resource, "operation": verb, "description": f"{verb} {resource}"}
    return {"name": f"{kind.type}/{verb}", "isDataAction": False, "display": display}


def subscriptions_answer(
    context: KindContext, method: str, text: str, query: Mapping[str, str], body: Any
) -> Reply | None:
    """Answers a read of the subscription itself, or of what lies in it whatever its group; None for other paths.

    Raises:
        Refused: The filter, or the provider, is one that the sandbox does not know.
    """
    if method == "POST" and (found := _CHECK.fullmatch(text)) and found[1].lower() in _NAMED_ONCE:
        return Reply(200, _availability(context, _NAMED_ONCE[found[1].lower()], body))
    if method == "POST" and (found := _REGISTRATION.fullmatch(text)):
        return Reply(200, _registration(context, found[1], _namespace(found[2]), found[3].lower()))
    if method != "GET":
        return None
    if found := re.fullmatch(r"/subscriptions/([^/]+)", text, re.IGNORECASE):
        return Reply(200, _subscription(found[1].lower()))
    if found := re.fullmatch(r"(/subscriptions/[^/]+(?:/resourceGroups/[^/]+)?)/resources", text, re.IGNORECASE):
        return Reply(200, {"value": list(_resources(context, found[1], query.get("$filter", "")))})
    if re.fullmatch(r"/subscriptions/[^/]+/providers", text, re.IGNORECASE):
        of = text.split("/")[2]
        return Reply(200, {"value": [_provider(context, of, each) for each in sorted(_namespaces())]})
    if found := re.fullmatch(r"/subscriptions/([^/]+)/providers/([^/]+)", text, re.IGNORECASE):
        return Reply(200, _provider(context, found[1], _namespace(found[2])))
    if found := re.fullmatch(r"(/subscriptions/[^/]+)/providers/([^/]+/[^/]+)", text, re.IGNORECASE):
        if found[2].lower() == f"{ML}/registries".lower():  # azureml is Microsoft's own, and in no subscription's list
            return Reply(200, {"value": []})
        kind = kinds.find(found[2])
        if kind is not None and kind.tracked:
            rows = context.store.resources.below(found[1])
            shown = {"value": [kind.render(context, row) for row in rows if _is(row, kind.type)]}
            return Reply(200, kind.in_version(shown, query["api-version"]))
    return None


def _availability(context: KindContext, of_type: str, body: Any) -> Body:
    """Return whether a name is free, as the three services answer it."""
    name, kind = str(body.get("name") or "") if isinstance(body, dict) else "", kinds.find(of_type)
    if kind is not None and not re.fullmatch(kind.names.pattern, name):
        return {"nameAvailable": False, "reason": "AccountNameInvalid", "message": f"'{name}': {kind.names.words}."}
    if any(row.name.lower() == name.lower() for row in context.store.resources.of_type(of_type)):
        return {"nameAvailable": False, "reason": "AlreadyExists", "message": f"The name '{name}' is already in use."}
    return {"nameAvailable": True}


_POLICIES: Final = {
    "locationPlacementId": "Public_2014-09-01",
    "quotaId": "PayAsYouGo_2014-09-01",
    "spendingLimit": "Off",
}
"""As of a subscription that is paid as it is used; the form is recorded (azure-mgmt-resource 18.0.0, 2021-05-19)."""


def _subscription(own: str) -> Body:
    name = "amlstack sandbox" if own == SUBSCRIPTION else "amlstack sandbox, another subscription"
    return {
        "id": f"/subscriptions/{own}",
        "subscriptionId": own,
        "tenantId": TENANT,
        "displayName": name,
        "state": "Enabled",
        "subscriptionPolicies": _POLICIES,
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
    }


def _resources(context: KindContext, scope: str, condition: str) -> Iterator[Body]:
    """Every tracked resource in a scope, as the list of all resources shows one: without its properties."""
    wanted = _conditions(condition)
    for row in context.store.resources.below(scope):
        kind = kinds.find(row.type)
        # Groups have a list of their own, and what lies in a resource is in that one's.
        if kind is None or not kind.tracked or row.type.count("/") != 1 or _is(row, GROUPS):
            continue
        shown = {key: value for key, value in kind.render(context, row).items() if key != "properties"}
        group = row.id.split("/")[4]
        values = {"resourcegroup": group, "resourcetype": row.type, "name": row.name, "location": shown.get("location")}
        if all(str(values[name] or "").lower() == value for name, value in wanted.items()):
            yield shown


def _conditions(text: str) -> Mapping[str, str]:
    """``resourceGroup eq 'g' and name eq 'n'`` as lower-case pairs."""
    parts = [part.strip() for part in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE) if part.strip()]
    found = {}
    for part in parts:
        match = _FILTER.fullmatch(part)
        if match is None:
            raise not_emulated(f"the filter '{part}', only resourceGroup, resourceType, name and location with eq")
        found[match[1].lower()] = match[2].lower()
    return found


def _namespaces() -> frozenset[str]:
    return frozenset(kind.type.partition("/")[0] for kind in kinds.ALL)


def _namespace(wanted: str) -> str:
    """A namespace in its own letters, or the refusal of one that is none."""
    known = {each.lower(): each for each in _namespaces()}
    if wanted.lower() not in known:
        message = f"The resource namespace '{wanted}' is invalid.{near(wanted, known.values())}"
        raise Refused(404, "InvalidResourceNamespace", message)
    return known[wanted.lower()]


def _kinds_of(namespace: str) -> list[ResourceKind]:
    return [kind for kind in kinds.ALL if kind.type.partition("/")[0] == namespace]


def check_registered(context: KindContext, subscription: str, kind: ResourceKind) -> None:
    """Refuses to make or change a resource of a provider that the subscription has not registered.

    Code, words and details: Azure/azure-sdk-for-go, sdk/azcore/arm/runtime/policy_register_rp_test.go (2026-11-26).
    """
    namespace = kind.type.partition("/")[0]
    if f"{subscription}/{namespace}".lower() in context.store.unregistered():
        code = "MissingSubscriptionRegistration"
        message = (
            "The subscription registration is in 'Unregistered' state. The subscription must be registered to use "
            f"namespace '{namespace}'. See https://aka.ms/rps-not-found for how to register subscriptions."
        )
        raise Refused(409, code, message, details=({"code": code, "target": namespace, "message": message},))


def _registration(context: KindContext, subscription: str, namespace: str, what: str) -> Body:
    """Registers a provider, or takes it back; the answer says that it is under way, the next one that it is done.

    Recorded: azure-mgmt-resource 18.0.0, test_provider_registration, 2021-05-19; there it takes longer.
    """
    registered, below = what == "register", f"/subscriptions/{subscription}"
    if not registered and namespace.lower() in _REGISTRATION_FREE:
        raise not_emulated(f"to unregister '{namespace}', which every subscription has")
    if not registered and any(
        row.type.lower().startswith(f"{namespace}/".lower()) for row in context.store.resources.below(below)
    ):
        raise Refused(409, "Conflict", f"'{namespace}' cannot be unregistered while it has resources in '{below}'.")
    context.store.register(f"{subscription}/{namespace}".lower(), registered=registered)
    shown = _provider(context, subscription, namespace)
    return {**shown, "registrationState": "Registering" if registered else "Unregistering"}


def _provider(context: KindContext, subscription: str, namespace: str) -> Body:
    listed: list[dict[str, Any]] = [
        {
            "resourceType": kind.type.partition("/")[2],
            "apiVersions": list(reversed(addresses.known_versions().get(kind.type.lower(), ()))),
            "locations": [],
        }
        for kind in _kinds_of(namespace)
    ]
    free = namespace.lower() in _REGISTRATION_FREE
    missing = f"{subscription}/{namespace}".lower() in context.store.unregistered()
    return {
        "id": f"/subscriptions/{subscription}/providers/{namespace}",
        "namespace": namespace,
        "registrationState": "Unregistered" if missing else "Registered",
        "registrationPolicy": "RegistrationFree" if free else "RegistrationRequired",
        "resourceTypes": listed,
    }


def _is(row: ResourceRow, kind: str) -> bool:
    return row.type.lower() == kind.lower()


NAME: Final = "azureml"
GROUP: Final = "azureml-registry"
PREFIX: Final = "/mferp/managementfrontend"
VERSION: Final = NEWEST
_DISCOVERY = re.compile(r"/registrymanagement/v1\.0/registries/(?P<registry>[^/]+)/discovery/?", re.IGNORECASE)
_REGISTRY = re.compile(
    rf"(?:{PREFIX})?/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/registries/"
    r"(?P<registry>[^/]+)(?P<rest>(?:/.*)?)",
    re.IGNORECASE,
)
_IN_WORKSPACE = re.compile(
    r"(?P<workspace>/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/workspaces/"
    r"[^/]+)/environments/(?P<name>AzureML-[^/]+)(?P<versions>/versions(?:/(?P<version>[^/]+))?)?/?",
    re.IGNORECASE,
)
_MAKER: Final = {
    f"{word}{part}": value
    for word in ("createdBy", "lastModifiedBy")
    for part, value in (("", "Microsoft"), ("Type", "User"))
}


def answer_of_a_registry(context: KindContext, method: str, path: str, version: str) -> Reply | None:
    """Answers a read of the registry or of its environments, in a workspace too; None for any other path.

    Args:
        context: As for any kind.
        method: Of HTTP.
        path: Of the request.
        version: The api-version; environments of a workspace are answered by it.

    Raises:
        Refused: There is no such registry, environment or version, or the sandbox does not have that part of it.
    """
    if found := _DISCOVERY.fullmatch(path):
        _check(found["registry"])
        return Reply(200, _discovery(context.base))
    found = _REGISTRY.fullmatch(path)
    if found is None:
        return _in_workspace(context, method, path, version)
    if method != "GET":
        raise not_emulated(f"{method} of a registry: the registry {NAME} can be read alone")
    _check(found["registry"])
    words = found["rest"].strip("/").split("/") if found["rest"].strip("/") else []
    if not words:
        return Reply(200, _registry())
    if words[0].lower() != "environments" or (len(words) > 2 and words[2].lower() != "versions") or len(words) > 4:
        raise not_emulated(f"{'/'.join(words)} of a registry, only its environments")
    if len(words) == 1:
        return Reply(200, {"value": [_container(each) for each in _of_registry()]})
    one = _environment(words[1])
    if len(words) == 2:
        return Reply(200, _container(one))
    if len(words) == 3:
        return Reply(200, {"value": [_version(one)]})
    return Reply(200, _version(one, _number(one, words[3])))


def _in_workspace(context: KindContext, method: str, path: str, api_version: str) -> Reply | None:
    """Answers a read of a curated environment by its name in a workspace; None for anything else.

    Source: test_environment_get of azure-ai-ml, 2023-02-23.

    Raises:
        Refused: It has no such version.
    """
    found = _IN_WORKSPACE.fullmatch(path) if method == "GET" else None
    one = None if found is None else _find(found["name"])
    workspace = None if found is None else context.store.resources.get(found["workspace"])
    if found is None or one is None or workspace is None:
        return None
    above = f"{found['workspace']}/environments/{found['name']}"
    if context.store.resources.get(above) is not None:
        return None
    if found["versions"] is None:
        return Reply(200, {**_container(one), "id": above, "name": found["name"]})
    number = VERSION if found["version"] is None else _number(one, found["version"])
    stamp = {**system_data(workspace.created, workspace.created, form=with_offset), **_MAKER}
    version = {**_version(one, number), "id": f"{above}/versions/{number}", "type": EnvironmentVersions.type}
    version = EnvironmentVersions().in_version({**version, "systemData": stamp}, api_version)
    return Reply(200, {"value": [version]} if found["version"] is None else version)


def _number(one: CatalogEnvironment | RetiredEnvironment, text: str) -> str:
    if not re.fullmatch(r"[1-9]\d{0,5}", text):
        message = f"Version '{text}' of the environment '{one.name}' was not found; versions are whole numbers."
        raise Refused(404, "UserError", message)
    return text


def _check(registry: str) -> None:
    if registry.lower() != NAME:
        raise Refused(404, "RegistryNotFound", f"The registry '{registry}' was not found; the sandbox has '{NAME}'.")


def _of_registry() -> list[CatalogEnvironment]:
    return [each for each in environments.all_environments() if each.registry == NAME]


def _find(name: str) -> CatalogEnvironment | RetiredEnvironment | None:
    one = environments.get(name)
    return environments.retired(name) if one is None or one.registry != NAME else one


def _environment(name: str) -> CatalogEnvironment | RetiredEnvironment:
    if (one := _find(name)) is None:
        hint = near(name, (each.name for each in _of_registry()))
        raise Refused(404, "UserError", f"The environment '{name}' was not found in the registry.{hint}")
    return one


def _discovery(base: str) -> Body:
    return {
        "registryName": NAME,
        "tenantId": TENANT,
        "subscriptionId": SUBSCRIPTION,
        "resourceGroup": GROUP,
        "primaryRegion": "westeurope",
        "primaryRegionResourceProviderUri": f"{base}/",
        "regions": ["westeurope"],
        "registryFqdns": {"westeurope": {"uri": base}},
    }


def _id(*words: str) -> str:
    root = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers/Microsoft.MachineLearningServices"
    return "/".join((root, "registries", NAME, *words))


def _registry() -> Body:
    properties: dict[str, Any] = {"discoveryUrl": "", "publicNetworkAccess": "Enabled", "regionDetails": []}
    return {"id": _id(), "name": NAME, "location": "westeurope", "properties": properties}


def _container(one: CatalogEnvironment | RetiredEnvironment) -> Body:
    numbers = {"latestVersion": VERSION, "nextVersion": str(int(VERSION) + 1)}
    rest: Body = {"description": one.note or None, "isArchived": False, "tags": {}, "properties": {}}
    properties = {**rest, **numbers}
    return {"id": _id("environments", one.name), "name": one.name, "properties": properties}


def _version(one: CatalogEnvironment | RetiredEnvironment, number: str = VERSION) -> Body:
    return {
        "id": f"azureml://registries/{NAME}/environments/{one.name}/versions/{number}",
        "name": number,
        "type": "Microsoft.MachineLearningServices/registries/environments/versions",
        "properties": {
            **dict.fromkeys(("autoDeleteSetting", "intellectualProperty")),
            "autoRebuild": "OnBaseImageUpdate",
            "condaFile": "",
            "provisioningState": "Succeeded",
            "stage": "Development",
            "image": f"mcr.microsoft.com/azureml/curated/{one.name}:{number}",
            "environmentType": "Curated",
            "osType": "Linux",
            "isAnonymous": False,
            "isArchived": False,
            "description": one.note or None,
            "tags": {},
            "properties": {},
        },
    }
