"""The endpoint of a running sandbox: address, certificate, Azure's names, and the variables that lead clients to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.files import write_whole
from amlstack.sandbox.protocol import addresses, entra

if TYPE_CHECKING:
    import socket

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
