"""What a job refers to: compute, code, environment, size. Each must be there before the job is taken."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.sandbox.refusals import Refused, invalid, near, not_emulated

if TYPE_CHECKING:
    from amlstack.sandbox.ids import ArmPath
    from amlstack.sandbox.kinds.base import Body, Context

CURATED = re.compile(
    r"azureml://registries/(?P<registry>[^/]+)/environments/(?P<name>[^/]+)/(versions|labels)/(?P<version>[^/]+)"
)


def check(context: Context, path: ArmPath, properties: Body) -> None:
    """Refuses a job whose compute, code, environment or size does not exist, or whose nodes do not fit."""
    if properties["jobType"] != "Command":
        raise not_emulated(f"jobs of type '{properties['jobType']}', only Command")
    resources = properties.get("resources") or {}
    _check_place(context, path, properties, resources)
    if (code := properties.get("codeId")) is not None:
        _check_known(context, path, code, "codes", "properties.codeId")
    _check_environment(context, path, properties["environmentId"])


def _check_place(context: Context, path: ArmPath, properties: Body, resources: Body) -> None:
    compute = properties.get("computeId")
    count = resources.get("instanceCount", 1)
    if count < 1:
        raise invalid("properties.resources.instanceCount", f"{count} nodes; at least 1 is needed.")
    if compute:
        _check_known(context, path, compute, "computes", "properties.computeId")
        _check_fits(context, compute, count)
    elif size := resources.get("instanceType"):
        from amlstack.sandbox.kinds import computes  # noqa: PLC0415 - computes knows jobs; sizes are its own

        computes.check_size(size, "properties.resources.instanceType")
    else:
        message = "neither properties.computeId nor, for a serverless job, properties.resources.instanceType is given."
        raise invalid("properties.computeId", message)


def _check_fits(context: Context, compute: str, count: int) -> None:
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


def _check_known(context: Context, path: ArmPath, given: str, word: str, where: str) -> None:
    root = f"{path.parent}/{word}/".lower()
    known = context.store.resources.get(given)
    if known is None or not known.key.startswith(root):
        names = [row.id for row in context.store.resources.below(path.parent) if row.key.startswith(root)]
        raise Refused(400, "UserError", f"'{given}' was not found in the workspace.{near(given, names)}", where)


def _check_environment(context: Context, path: ArmPath, given: str) -> None:
    where = "properties.environmentId"
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
    from amlstack.catalog import environments  # noqa: PLC0415 - data, only needed here

    if environments.get(found["name"]) is None:
        message = f"The environment '{found['name']}' was not found in the registry 'azureml'."
        raise Refused(400, "UserError", message, where)
