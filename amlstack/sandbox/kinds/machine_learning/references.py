"""References of a job: compute, code, environment, size. Each must exist before the job is accepted."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.catalog import environments, sizes
from amlstack.sandbox.files import environments as handed
from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.refusals import Refused, invalid, near, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.ids import ArmPath
    from amlstack.sandbox.protocol.kind import Body, KindContext

CURATED = re.compile(
    r"azureml://registries/(?P<registry>[^/]+)/environments/(?P<name>[^/]+)/(versions|labels)/(?P<version>[^/]+)"
)
SHORT = re.compile(r"azureml:AzureML-(?P<name>[^/@:]+)(@latest|:[^/@:]+)")
"""The short form of a curated environment, which the service expands itself."""


def check(context: KindContext, path: ArmPath, properties: Body) -> None:
    """Refuses a command job whose compute, code, environment or size does not exist, or whose nodes do not fit."""
    resources = properties.get("resources") or {}
    for kind in ("inputs", "outputs"):
        for name, port in (properties.get(kind) or {}).items():
            where = f"properties.{kind}.{name}"
            requests.check_folder_name(name, where)
            requests.check_uri(str((port or {}).get("uri") or ""), f"{where}.uri")
    _check_place(context, path, properties, resources)
    if (code := properties.get("codeId")) is not None:
        _check_known(context, path, code, "codes", "properties.codeId")
    _check_environment(context, path, properties["environmentId"])


def _check_place(context: KindContext, path: ArmPath, properties: Body, resources: Body) -> None:
    compute = properties.get("computeId")
    count = resources.get("instanceCount", 1)
    if count < 1:
        raise invalid("properties.resources.instanceCount", f"{count} nodes; at least 1 is needed.")
    if compute:
        _check_known(context, path, compute, "computes", "properties.computeId")
        _check_fits(context, compute, count)
    elif size := resources.get("instanceType"):
        check_size(size, "properties.resources.instanceType")
    # With neither the job is serverless, and the service chooses a size that the quota has room for.


def _check_fits(context: KindContext, compute: str, count: int) -> None:
    cluster = context.store.resources.get(compute)
    if cluster is None:
        return
    high = cluster.body["properties"]["properties"]["scaleSettings"]["maxNodeCount"]
    if count > high:
        message = (
            f"The job asks for {count} nodes, but the compute '{cluster.name}' has at most {high} "
            "(scaleSettings.maxNodeCount)."
        )
        raise Refused(400, "InvalidNodeCount", message, "properties.resources.instanceCount")


def _check_known(context: KindContext, path: ArmPath, given: str, word: str, where: str) -> None:
    root = f"{path.parent}/{word}/".lower()
    known = context.store.resources.get(given)
    if known is None or not known.key.startswith(root):
        names = [row.id for row in context.store.resources.below(path.parent) if row.key.startswith(root)]
        raise Refused(400, "UserError", f"'{given}' was not found in the workspace.{near(given, names)}", where)


def _check_environment(context: KindContext, path: ArmPath, given: str) -> None:
    where = "properties.environmentId"
    if handed.are_given(context.store.home, path.name, given):
        return
    if (short := SHORT.fullmatch(given)) is not None:
        _check_curated(short["name"], where)
        return
    if handed.curated(given) is not None and context.store.resources.get(given) is None:
        return
    if not given.startswith("azureml:"):
        _check_known(context, path, given, "environments", where)
        return
    found = CURATED.fullmatch(given)
    if found is None:
        message = (
            "an environment is an ARM id or 'azureml://registries/azureml/environments/<name>/versions/<version>'."
        )
        raise invalid(where, f"'{given}': {message}")
    if found["registry"] != "azureml":
        raise not_emulated(f"the registry '{found['registry']}', only 'azureml'")
    _check_curated(found["name"], where)


def _check_curated(name: str, where: str) -> None:
    if environments.get(name) is None:
        message = (
            f"The environment '{name}' was not found in the registry 'azureml' as the sandbox knows it, and it has no "
            f"stand-in; Azure may have it.{near(name, [each.name for each in environments.all_environments()])} "
            "`amlstack rehearse` takes a stand-in of your own from rehearsal.toml."
        )
        raise Refused(400, "UserError", message, where)


def check_size(name: str, where: str) -> None:
    """Refuses a VM size that Azure does not have; near misses by name."""
    if sizes.get(name) is None:
        close = sizes.near(name)
        hint = f" Did you mean {' or '.join(repr(each) for each in close)}?" if close else ""
        raise Refused(400, "InvalidVmSize", f"The VM size '{name}' is not known in any region.{hint}", where)
