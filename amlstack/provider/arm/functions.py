"""``amlstack:capacity:*``: what a subscription may use, of a region and at all, and which clusters a workspace has.

Asked before anything is planned, so nothing here repeats or waits for long, and nothing fails: what could not be read
is answered as a ``problem`` in words. Shapes are those of the resource manager's ``usages``, ``vmSizes`` and ``quotas``
of Microsoft.MachineLearningServices (learn.microsoft.com/rest/api/azureml: usages/list, virtual-machine-sizes/list,
quotas/list and quotas/update, whose example has the ids of a workspace's rows).

The function ``amlstack:azure:lookUp``: what Azure says of one resource, as an answer and never as an error.

A program asks before it registers anything whether what it builds on exists. azure-native's functions end the program
where they do not find a resource, and know one subscription only.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.api_versions import RESOURCES
from amlstack.provider.arm.exchange import ArmError, InterruptedWaitError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from amlstack.provider.arm.client import ArmClient

SECONDS: Final = 20.0
"""The longest time that the answers to one question may take together."""
_NOBODY: Final = "no answer"
_LOOK: Final = 0.1


def read_regions(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The quota of regions, and of some sizes whether they are offered there.

    Args:
        arm: Azure Resource Manager.
        args: ``{"subscription": id, "regions": {name: [size, …]}, "workspace": ARM id}``; without a workspace, its part
            of the quota is not asked for.
        cancelled: Ends the wait.

    Returns:
        ``{"regions": {name: {"usages": [{"name", "label", "current", "limit"}], "sizes": {name: {"family", "vcpus",
        "lowPriority"}}, "listed": count of sizes, "problem": text, "granted": [{"name", "label", "current", "limit"}],
        "grantedProblem": text}}}``; a problem is empty where all was read.
    """
    root = f"/subscriptions/{args['subscription']}/providers/Microsoft.MachineLearningServices/locations"
    regions: Mapping[str, Collection[str]] = args["regions"]
    workspace = str(args.get("workspace") or "")
    lists = ("usages", "vmSizes", "quotas") if workspace else ("usages", "vmSizes")
    paths = [f"{root}/{region}/{what}" for region in regions for what in lists]
    answers = _answers(arm, paths, cancelled)
    found: dict[str, dict[str, Any]] = {}
    for region, wanted in regions.items():
        usages, sizes = answers[f"{root}/{region}/usages"], answers[f"{root}/{region}/vmSizes"]
        problems = [each for each in (usages, sizes) if isinstance(each, str)]
        found[region] = {
            "usages": [] if isinstance(usages, str) else [_usage(row) for row in usages],
            "sizes": {} if isinstance(sizes, str) else _sizes(sizes, wanted),
            "listed": 0 if isinstance(sizes, str) else len(sizes),
            "problem": problems[0] if problems else "",
        }
        if workspace:
            quotas = answers[f"{root}/{region}/quotas"]
            failed = isinstance(quotas, str)
            found[region]["granted"] = [] if isinstance(quotas, str) else _granted(quotas, workspace)
            found[region]["grantedProblem"] = quotas if failed else ""
    return {"regions": found}


def read_providers(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The states of resource providers in a subscription.

    Args:
        arm: Azure Resource Manager.
        args: ``{"subscription": id, "namespaces": [name, …]}``.
        cancelled: Ends the wait.

    Returns:
        ``{"states": {namespace: "Registered", …}, "problem": text}``; what could not be read has no state.
    """
    paths = {f"/subscriptions/{args['subscription']}/providers/{name}": name for name in args["namespaces"]}
    answers = _answers(arm, list(paths), cancelled, lambda path: [arm.look(path, RESOURCES).body or {}])
    problems = [each for each in answers.values() if isinstance(each, str)]
    read = {paths[at]: rows[0] for at, rows in answers.items() if not isinstance(rows, str)}
    states = {name: str(row.get("registrationState") or "") for name, row in read.items()}
    return {"states": states, "problem": problems[0] if problems else ""}


def read_clusters(arm: ArmClient, args: Mapping[str, Any], cancelled: threading.Event) -> dict[str, Any]:
    """The AmlCompute clusters of a workspace; a workspace that is not there has none.

    Args:
        arm: Azure Resource Manager.
        args: ``{"workspace": ARM id}``.
        cancelled: Ends the wait.

    Returns:
        ``{"clusters": [{"name", "location", "size", "priority", "max"}], "problem": text}``.
    """
    path = f"{args['workspace']}/computes"
    rows = _answers(arm, [path], cancelled)[path]
    if isinstance(rows, str):
        return {"clusters": [], "problem": rows}
    return {"clusters": [_cluster(row) for row in rows if _inner(row, "vmSize")], "problem": ""}


FUNCTIONS: Final[Mapping[str, Callable[[ArmClient, Mapping[str, Any], threading.Event], dict[str, Any]]]] = {
    "amlstack:capacity:ofRegions": read_regions,
    "amlstack:capacity:ofProviders": read_providers,
    "amlstack:capacity:ofWorkspace": read_clusters,
}


def _answers(
    arm: ArmClient,
    paths: list[str],
    cancelled: threading.Event,
    read: Callable[[str], list[Any]] | None = None,
) -> dict[str, list[Any] | str]:
    """The rows of each list, or why there are none. The first is asked alone: signing in once is enough."""
    read = read or (lambda path: list(arm.rows(path, once=True)))
    end = time.monotonic() + SECONDS
    found: dict[str, list[Any] | str] = {}
    for some in (paths[:1], paths[1:]):
        threads = [threading.Thread(target=_into, args=(found, read, path), daemon=True) for path in some]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive() and time.monotonic() < end and not cancelled.is_set():
                thread.join(_LOOK)
        if isinstance(first := found.get(paths[0]), str) and first.startswith(_NOBODY):
            return dict.fromkeys(paths, first)  # who did not answer the first does not answer the others
    return {path: found.get(path, f"{_NOBODY} within {SECONDS:.0f} s") for path in paths}


def _into(found: dict[str, list[Any] | str], read: Callable[[str], list[Any]], path: str) -> None:
    try:
        found[path] = read(path)
    except ArmError as error:
        found[path] = str(error) if error.status else f"{_NOBODY}: {error}"
    except InterruptedWaitError:
        found[path] = "interrupted"


def _usage(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row.get("name") if isinstance(row.get("name"), dict) else {}
    return {
        "name": str((name or {}).get("value") or ""),
        "label": str((name or {}).get("localizedValue") or ""),
        "current": _number(row.get("currentValue")),
        "limit": _number(row.get("limit"), -1),
    }


def _granted(rows: list[Any], workspace: str) -> list[dict[str, Any]]:
    """The rows of one workspace: their ids lie under its own, ``…/workspaces/NAME/quotas/FAMILY``."""
    under = f"{workspace}/quotas/".casefold()
    return [
        {**_usage(row), "label": str(row["id"]).rsplit("/", 1)[-1]}
        for row in rows
        if str(row.get("id") or "").casefold().startswith(under)
    ]


def _sizes(rows: list[Any], wanted: Collection[str]) -> dict[str, Any]:
    """The service's answers on the sizes that are asked for, under the names by which they are asked for."""
    listed = {str(row.get("name")).casefold(): row for row in rows}
    return {
        name: {
            "family": str(row.get("family") or ""),
            "vcpus": _number(row.get("vCPUs")),
            "lowPriority": row.get("lowPriorityCapable") is not False,
        }
        for name in wanted
        if (row := listed.get(name.casefold())) is not None
    }


def _cluster(row: Mapping[str, Any]) -> dict[str, Any]:
    outer = row.get("properties") or {}
    return {
        "name": str(row.get("name") or ""),
        "location": str(outer.get("computeLocation") or row.get("location") or "").replace(" ", "").lower(),
        "size": str(_inner(row, "vmSize")),
        "priority": str(_inner(row, "vmPriority") or "Dedicated"),
        "max": _number((_inner(row, "scaleSettings") or {}).get("maxNodeCount")),
    }


def _inner(row: Mapping[str, Any], name: str) -> Any:
    return ((row.get("properties") or {}).get("properties") or {}).get(name)


def _number(value: Any, otherwise: int = 0) -> int:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


FUNCTION: Final = "amlstack:azure:lookUp"


def look_up(arm: ArmClient, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Ask for a resource.

    Args:
        arm: Azure Resource Manager.
        asked: ``{"id": ARM id, "apiVersion": …, "properties": [names]}``; nothing but the named properties is given
            back, as some hold keys.

    Returns:
        ``{"status": 200, "location", "properties": {…}}``, or ``{"status", "code", "message"}`` with the service's own
        words; status 0 when it could not be asked.
    """
    try:
        body = arm.get(str(asked["id"]), str(asked["apiVersion"])).body
    except ArmError as error:
        return {"status": error.status, "code": error.code, "message": error.message}
    properties = body.get("properties") or {}
    wanted = asked.get("properties") or ()
    found = {name: properties[name] for name in wanted if properties.get(name) is not None}
    return {"status": 200, "location": str(body.get("location") or ""), "properties": found}
