"""Azure's own host names, led to the sandbox: an HTTP proxy for clients that cannot be given another address.

Pulumi's ``azblob://`` and ``azurekeyvault://`` are such clients, and whatever else composes an address from the name of
an account or a vault. With ``HTTPS_PROXY`` they need no other setting. The proxy passes bytes on and reads none: TLS is
between the client and the sandbox, whose certificate has these names. Everything else is refused, so that nothing of
Azure's and nothing of anybody else's is called by mistake.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import TYPE_CHECKING, Final

from amlstack.sandbox.protocol import azure_hosts

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
    if found is None or found[2] != b"443" or not azure_hosts.is_known(host):
        names = ", ".join(azure_hosts.NAMES)
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
