"""The registry ``azureml`` with its curated environments, as ``MLClient(registry_name="azureml")`` reads it.

Names come from the catalogue. Which versions the registry of Azure ML holds today only that one knows: here each
environment has one version, called 1, and a job may name any.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from amlstack.catalog import environments
from amlstack.sandbox.arm.entra import SUBSCRIPTION, TENANT
from amlstack.sandbox.arm.refusals import Refused, near, not_emulated
from amlstack.sandbox.kinds.base import Reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.catalog.environments import CatalogEnvironment
    from amlstack.sandbox.kinds.base import Body

NAME: Final = "azureml"
GROUP: Final = "azureml-registry"
PREFIX: Final = "/mferp/managementfrontend"
VERSION: Final = "1"
_DISCOVERY = re.compile(r"/registrymanagement/v1\.0/registries/(?P<registry>[^/]+)/discovery/?", re.IGNORECASE)
_REGISTRY = re.compile(
    rf"(?:{PREFIX})?/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices/registries/"
    r"(?P<registry>[^/]+)(?P<rest>(?:/.*)?)",
    re.IGNORECASE,
)


def answer(base: str, method: str, path: str, query: Mapping[str, str]) -> Reply | None:
    """Answers a read of the registry or of its environments; None for a path that is none of a registry.

    Raises:
        Refused: There is no such registry, environment or version, or the sandbox does not have that part of it.
    """
    if found := _DISCOVERY.fullmatch(path):
        _check(found["registry"])
        return Reply(200, _discovery(base))
    found = _REGISTRY.fullmatch(path)
    if found is None:
        return None
    _check(found["registry"])
    if method != "GET":
        raise not_emulated(f"{method} of a registry: the registry {NAME} can be read alone")
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
    if words[3] != VERSION:
        message = f"Version '{words[3]}' of the environment '{one.name}' was not found; it has '{VERSION}'."
        raise Refused(404, "UserError", message)
    del query
    return Reply(200, _version(one))


def _check(registry: str) -> None:
    if registry.lower() != NAME:
        raise Refused(404, "RegistryNotFound", f"The registry '{registry}' was not found; the sandbox has '{NAME}'.")


def _of_registry() -> list[CatalogEnvironment]:
    return [each for each in environments.all_environments() if each.registry == NAME]


def _environment(name: str) -> CatalogEnvironment:
    known = {each.name.lower(): each for each in _of_registry()}
    if name.lower() not in known:
        hint = near(name, (each.name for each in known.values()))
        raise Refused(404, "UserError", f"The environment '{name}' was not found in the registry.{hint}")
    return known[name.lower()]


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


def _container(one: CatalogEnvironment) -> Body:
    numbers = {"latestVersion": VERSION, "nextVersion": str(int(VERSION) + 1)}
    rest: Body = {"description": one.note or None, "isArchived": False, "tags": {}, "properties": {}}
    properties = {**rest, **numbers}
    return {"id": _id("environments", one.name), "name": one.name, "properties": properties}


def _version(one: CatalogEnvironment) -> Body:
    return {
        "id": f"azureml://registries/{NAME}/environments/{one.name}/versions/{VERSION}",
        "name": VERSION,
        "properties": {
            "image": f"mcr.microsoft.com/azureml/curated/{one.name}:{VERSION}",
            "environmentType": "Curated",
            "osType": "Linux",
            "isAnonymous": False,
            "isArchived": False,
            "description": one.note or None,
            "tags": {},
            "properties": {},
        },
    }
