"""The registry ``azureml`` with its curated environments, as ``MLClient(registry_name="azureml")`` reads it.

Names come from the catalogue. Which versions the registry of Azure ML holds today only that one knows: here each
environment has one version, called 1, in lists and under ``latest``; any other whole number is answered where it is
asked for by name, as a job may name any. A workspace has the same environments under the prefix ``AzureML-``. Retired
ones are in no list, and are answered by name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog import environments
from amlstack.sandbox.files.environments import NEWEST
from amlstack.sandbox.kinds.machine_learning.assets import EnvironmentVersions
from amlstack.sandbox.protocol.entra import SUBSCRIPTION, TENANT
from amlstack.sandbox.protocol.kind import Reply, system_data
from amlstack.sandbox.protocol.refusals import Refused, near, not_emulated
from amlstack.sandbox.protocol.times import with_offset

if TYPE_CHECKING:
    from amlstack.catalog.environments import CatalogEnvironment, RetiredEnvironment
    from amlstack.sandbox.protocol.kind import Body, KindContext

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


def answer(context: KindContext, method: str, path: str, version: str) -> Reply | None:
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
