"""The server of a sandbox home, started, found, shown and ended, and its endpoint.

The endpoint is its address, certificate, Azure's names, and the variables that lead clients to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.files import no_room, write_whole
from amlstack.sandbox import processes
from amlstack.sandbox.protocol import addresses, entra
from amlstack.sandbox.store.database import StateError
from amlstack.sandbox.store.folders import folder, private
from amlstack.sandbox.store.store import ResourceRow, Store

if TYPE_CHECKING:
    import socket

    from rich.table import Table


CHUNK: Final = 1 << 16
HEAD_SECONDS: Final = 60
"""A client may take so long to name the host that it wants."""
_REQUEST = re.compile(rb"CONNECT ([A-Za-z0-9.-]+):(\d+) HTTP/1\.[01]\r\n")


async def serve(listener: socket.socket, port: int) -> None:
    """Answers CONNECT on a socket until it is cancelled.

    Args:
        listener: Bound to the loopback and listening.
        port: The sandbox's own.
    """

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            await _meet(reader, writer, port)
        writer.close()

    async with await asyncio.start_server(meet, sock=listener) as server:
        await server.serve_forever()


async def _meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
    async with asyncio.timeout(HEAD_SECONDS):
        asked = await reader.readuntil(b"\r\n\r\n")
    found = _REQUEST.match(asked)
    host = found[1].decode() if found else ""
    if found is None or found[2] != b"443" or not addresses.is_known_host(host):
        names = ", ".join(addresses.HOST_NAMES)
        text = f"This proxy leads to an amlstack sandbox: {names} at port 443, and nowhere else.\n".encode()
        head = f"HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n".encode() + text)
        await writer.drain()
        return
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    try:
        await asyncio.gather(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
    finally:
        inner_writer.close()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One direction, until its end; then the other side is shown that end."""
    try:
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError):
            writer.write_eof()


HOSTS = ("127.0.0.1", "localhost", "::1", *addresses.HOST_NAMES)
SYSTEM = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Debian, Fedora and the BSDs keep their authorities here; OpenSSL's own default is often a folder, not a file."""
BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def prepare(folder: Path) -> Path:
    """The server's certificate chain with its key, and the CA; both made on the first call and kept.

    Returns:
        ``server.pem`` (mode 0600), beside ``ca.pem``. The authority's own key is never written down.
    """
    server, authority = folder / "server.pem", folder / "ca.pem"
    if not authority.exists() or not server.exists():
        import trustme  # noqa: PLC0415 - 0.2 s, needed once in a sandbox's life

        ca: Any = trustme.CA(organization_name="amlstack sandbox")
        chain: Any = ca.issue_cert(*HOSTS)
        authority.write_bytes(ca.cert_pem.bytes())
        write_whole(server, chain.private_key_and_cert_chain_pem.bytes(), mode=0o600)
    return server


def bundle(folder: Path) -> Path:
    """``ca-bundle.pem``: the authorities this machine trusts already, and ours.

    Clients that take one file only (``REQUESTS_CA_BUNDLE``) reach both the sandbox and the rest of the world with it.
    """
    path = folder / "ca-bundle.pem"
    blocks = dict.fromkeys(BLOCK.findall((folder / "ca.pem").read_text()))
    for source in _sources(path):
        blocks |= dict.fromkeys(BLOCK.findall(source.read_text(errors="ignore")))
    text = "\n".join(blocks) + "\n"
    if not path.exists() or path.read_text() != text:
        write_whole(path, text)
    return path


def _sources(own: Path) -> list[Path]:
    """Files of authorities: those the environment names (a company's own, often), the system's, certifi's."""
    import certifi  # noqa: PLC0415 - comes with requests, which every Azure client here uses

    default = ssl.get_default_verify_paths()
    named = [os.environ.get("REQUESTS_CA_BUNDLE"), os.environ.get("SSL_CERT_FILE"), default.cafile, *SYSTEM]
    found = [Path(name) for name in (*named, certifi.where()) if name]
    # Another sandbox's bundle is no source: its authority may be long gone. Ours is, in a shell that was given it.
    return [path for path in found if path.is_file() and (path == own or path.name != own.name)]


FOREIGN = (
    "ARM_CLIENT_SECRET",
    "ARM_CLIENT_CERTIFICATE_PATH",
    "ARM_USE_OIDC",
    "ARM_USE_MSI",
    "ARM_ENVIRONMENT",
    "AZURE_ENVIRONMENT",
    "ARM_AUXILIARY_TENANT_IDS",
)
"""Variables of a user's own login, or of another cloud's, which count for nothing here."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A running sandbox.

    Attributes:
        home: Its home folder (`amlstack.base.paths.home`).
        url: ``https://127.0.0.1:PORT``.
        pid, started: The server process, named for ever by its start time too.
        ca: PEM file of its own authority.
        bundle: PEM file of that authority and those of this machine.
        token: File with the federated token (mode 0600).
        tenant, client, subscription: Its ids.
        cloud: A name for azure-ai-ml's ``cloud=``.
        proxy: ``http://127.0.0.1:PORT``, under which Azure's own host names lead here.
    """

    home: Path
    url: str
    pid: int
    started: int
    ca: Path
    bundle: Path
    token: Path
    tenant: str = entra.TENANT
    client: str = entra.CLIENT
    subscription: str = entra.SUBSCRIPTION
    cloud: str = entra.CLOUD
    proxy: str = ""

    def environ(self) -> dict[str, str]:
        """Every variable that makes a client of Azure a client of this sandbox.

        They are to be assigned, not defaulted: a ``REQUESTS_CA_BUNDLE`` of the user's own would hide ours (the bundle
        holds this machine's authorities too, so other https keeps working).
        """
        hosts = [word for word in os.environ.get("NO_PROXY", os.environ.get("no_proxy", "")).split(",") if word]
        local = ",".join(dict.fromkeys([*hosts, "127.0.0.1", "localhost"]))
        return {
            "AMLSTACK_HOME": str(self.home),
            "AMLSTACK_ARM_ENDPOINT": self.url,
            # Where azure-ai-ml and az find the cloud's other addresses; az reads a list, and later versions are none.
            "ARM_CLOUD_METADATA_URL": f"{self.url}/metadata/endpoints?api-version=2019-05-01",
            "REGISTRY_DISCOVERY_ENDPOINT_URL": f"{self.url}/",
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": self.tenant,
            "AZURE_CLIENT_ID": self.client,
            "AZURE_SUBSCRIPTION_ID": self.subscription,
            "AZURE_FEDERATED_TOKEN_FILE": str(self.token),
            # The chain of DefaultAzureCredential is narrowed: a login of the user's own must never come here.
            "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
            "AZURE_CLIENT_SECRET": "",
            "AZURE_USERNAME": "",
            "ARM_SUBSCRIPTION_ID": self.subscription,
            "ARM_TENANT_ID": self.tenant,
            "ARM_CLIENT_ID": self.client,
            # Nor what azure-native and our provider sign in with.
            **dict.fromkeys(FOREIGN, ""),
            "REQUESTS_CA_BUNDLE": str(self.bundle),
            "SSL_CERT_FILE": str(self.bundle),
            "NO_PROXY": local,
            "no_proxy": local,
        }

    def azure_names(self) -> dict[str, str]:
        """With :meth:`environ`: what leads Azure's own host names here, for clients that take no other address.

        Accounts as ``NAME.blob.core.windows.net``, vaults as ``NAME.vault.azure.net``, and Entra ID. Over this proxy
        nothing else can be reached.
        """
        metadata = self.environ()["ARM_CLOUD_METADATA_URL"]
        led = {"ARM_CLOUD_METADATA_URL": addresses.by_name(metadata)}
        return {"HTTPS_PROXY": self.proxy, "https_proxy": self.proxy, **led}


START_SECONDS = 60.0
END_SECONDS = 15.0
TOLD = 4
"""Exit status of a server whose files cannot be used: the last line of its log is for the person who started it."""
HUNG_SECONDS = 30.0
"""A server that is alive but silent for so long is started anew: on a busy machine a few seconds are nothing."""


class SandboxError(Exception):
    """The sandbox could not be started or ended; the message says what was seen and where the log is."""


def find(home: Path | None = None) -> Endpoint | None:
    """The running server of a home, or None; a file left by a killed server is not one."""
    home = paths.home() if home is None else home
    try:
        known = json.loads((folder(home) / "endpoint.json").read_text())
        files = {name: Path(known[name]) for name in ("ca", "bundle", "token")}
        endpoint = Endpoint(home, **{**known, **files})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return endpoint if processes.alive(endpoint.pid, endpoint.started) else None


def up(home: Path | None = None, *, hold_jobs: bool = False, site: str | None = None) -> Endpoint:
    """Starts the server unless it runs, and waits until it answers. May be called by several at once.

    Args:
        home: The home folder; `amlstack.base.paths.home` by default.
        hold_jobs: From now on jobs stay queued until `hold` lets them start, those that wait already included.
        site: The profile, as text, by which Slurm gives later jobs their nodes; empty for this machine from now on,
            None leaves it as it is.

    Raises:
        SandboxError: It ended or did not answer in time; the end of its log is in the message. Or the home holds
            files of others.
    """
    home = paths.home() if home is None else home
    with _alone(home):
        if told := no_room(home):
            raise SandboxError(told)
        if hold_jobs:
            hold(home, hold=True)
        if site:
            write_whole(home / homes.SITE, f"{site}\n", mode=0o600)
        elif site is not None:
            (home / homes.SITE).unlink(missing_ok=True)
        endpoint = find(home)
        if endpoint is not None and _answers(endpoint, patience=HUNG_SECONDS):
            return endpoint
        if endpoint is not None:
            _end(endpoint.pid, endpoint.started)
        return _start(home)


def hold(home: Path | None = None, *, hold: bool) -> None:
    """Keeps jobs that have not started in the queue from now on, or lets them start; the server sees it in a second.

    Raises:
        SandboxError: The state file was written by another version.
    """
    try:
        with contextlib.closing(Store(paths.home() if home is None else home)) as store:
            store.hold_jobs(hold=hold)
    except StateError as error:
        raise SandboxError(str(error)) from None


def down(home: Path | None = None, *, remove: bool = False) -> int:
    """Ends the server, the runners of jobs and every process that a job left behind; may be repeated.

    Args:
        home: The home folder; `amlstack.base.paths.home` by default.
        remove: Also remove the sandbox's folder: all state, all logs, all keys.

    Returns:
        The number of processes that were ended.

    Raises:
        SandboxError: A process does not end, or the home is none of ours.
    """
    home = paths.home() if home is None else home
    place = folder(home)
    if not place.exists():
        return 0
    with _alone(home):
        ended = 0
        endpoint = find(home)
        if endpoint is not None:
            ended += _end(endpoint.pid, endpoint.started)
        ended += _end_jobs(home)
        if remove:
            homes.remove_folder(home, place.name)
            (home / homes.SITE).unlink(missing_ok=True)
    return ended


def _start(home: Path) -> Endpoint:
    place = private(folder(home))
    log = place / "serve.log"
    log.touch(mode=0o600)
    with log.open("ab") as out:
        begun = out.tell()
        command = [sys.executable, "-m", "amlstack.sandbox.server.serve"]
        environ = {**os.environ, "AMLSTACK_HOME": str(home), "PYTHONUNBUFFERED": "1"}
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environ, cwd=place, start_new_session=True
        )
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        endpoint = find(home)
        if endpoint is not None and endpoint.pid == process.pid and _answers(endpoint):
            # It outlives this process on purpose and is not waited for.
            process.returncode = 0
            return endpoint
        if process.poll() is not None:
            if process.returncode == TOLD and (told := _logged(log, begun)):
                raise SandboxError(told[-1])
            seen = f"ended with {process.returncode} while it started"
            break
        time.sleep(0.02)
    else:
        seen = f"did not answer within {START_SECONDS:.0f} s"
        process.terminate()
        process.wait()
    tail = "\n".join(_logged(log, begun)[-20:])
    raise SandboxError(f"the sandbox {seen}; the end of {log}:\n{tail}")


def _logged(log: Path, begun: int) -> list[str]:
    with log.open("rb") as file:
        file.seek(begun)
        return file.read().decode(errors="replace").splitlines()


def _answers(endpoint: Endpoint, patience: float = 5.0) -> bool:
    context = ssl.create_default_context(cafile=str(endpoint.ca))
    # No proxy of the environment: the address is on loopback.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    try:
        with opener.open(f"{endpoint.url}/healthz", timeout=patience) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _end_jobs(home: Path) -> int:
    """Runners first, so that they do not report what is about to happen as a failure; then whatever is left."""
    ended = 0
    # A state that this version cannot read names no runners; their marks are found all the same.
    with contextlib.suppress(StateError):
        ended += _end_recorded(home)
    # More than one look: what is being ended may still start something.
    while strays := processes.marked(home):
        ended += sum(_end(pid, processes.started(pid)) for pid in strays)
    return ended


def _end_recorded(home: Path) -> int:
    ended = 0
    if (folder(home) / "state.db").exists():
        with contextlib.closing(Store(home)) as store:
            for job in store.jobs.list(active=True):
                store.jobs.request_cancel(job.id)
                ended += _end(job.runner_pid, job.runner_started)
                store.nodes.release(job.id)
                store.jobs.move(job.id, "Canceled", detail="the sandbox was taken down")
            if store.sites.any() or (home / homes.SITE).exists():
                from amlstack.sandbox import slurm  # noqa: PLC0415 - only for who has one

                with contextlib.suppress(
                    slurm.SlurmError
                ):  # it does not answer; nodes without an agent go by themselves
                    slurm.cancel(*(each.number for each in slurm.allocations(home).values()))
    return ended


def _end(pid: int | None, start: int | None) -> int:
    """Asks a process to end, then makes it; 1 when it was alive."""
    if pid is None or not processes.alive(pid, start):
        return 0
    for sig, seconds in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, END_SECONDS)):
        processes.send(pid, sig)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not processes.alive(pid, start):
                return 1
            time.sleep(0.02)
    raise SandboxError(f"the process {pid} does not end")


@contextlib.contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One `up` or `down` at a time per home; the lock lies beside the folder that `remove` removes."""
    try:
        homes.claim(home)
        homes.close(home)
    except homes.ForeignHomeError as error:
        raise SandboxError(str(error)) from None
    with (home / homes.LOCK).open("w") as lock:
        os.fchmod(lock.fileno(), 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def gather(home: Path) -> dict[str, Any]:
    """Plain data for ``--json``: ``running``, ``url``, ``pid``, ``held``, ``clusters``, ``jobs``, ``resources``.

    ``jobs`` counts them by status, ``resources`` is a count, and unstarted jobs wait while ``held`` is true. With
    ``slurm``, the profile by which jobs get nodes of Slurm; None where they run on this machine.
    """
    endpoint = find(home)
    known = {"url": endpoint.url, "pid": endpoint.pid} if endpoint else {"url": None, "pid": None}
    state: dict[str, Any] = {"running": endpoint is not None, **known, "home": str(folder(home)), "slurm": None}
    with contextlib.suppress(OSError, ValueError):
        state["slurm"] = json.loads((home / homes.SITE).read_text())
    if not (folder(home) / "state.db").exists():
        return {**state, "held": False, "clusters": [], "jobs": {}, "resources": 0}
    with contextlib.closing(Store(home)) as store:
        return {
            **state,
            "held": store.holds_jobs(),
            "clusters": [_cluster(store, cluster) for cluster in store.clusters()],
            "jobs": dict(Counter(job.status for job in store.jobs.list())),
            "resources": sum(row.type.startswith("Microsoft.") for row in store.resources.all()),
        }


def _cluster(store: Store, cluster: ResourceRow) -> dict[str, Any]:
    properties = cluster.body["properties"]["properties"]
    scale = properties["scaleSettings"]
    nodes = [{"number": node.number, "state": node.state, "job": node.job} for node in store.nodes.of(cluster.key)]
    return {
        "name": cluster.name,
        "id": cluster.id,
        "state": cluster.state,
        "size": properties["vmSize"],
        "priority": properties.get("vmPriority") or "Dedicated",
        "min": scale["minNodeCount"],
        "max": scale["maxNodeCount"],
        "nodes": nodes,
    }


def clusters(state: dict[str, Any]) -> Table:
    """The clusters of what `gather` gives, as a table for a person."""
    from rich.table import Table  # noqa: PLC0415 - only a person needs it

    table = Table("cluster", "size", "nodes", "scale", "held by", title="Clusters", title_justify="left")
    for cluster in state["clusters"]:
        nodes = [f"{node['number']} {node['state']}" for node in cluster["nodes"]]
        held = sorted({node["job"] for node in cluster["nodes"] if node["job"]})
        scale = f"{cluster['min']} to {cluster['max']}"
        table.add_row(cluster["name"], cluster["size"], "\n".join(nodes) or "none", scale, "\n".join(held))
    return table
