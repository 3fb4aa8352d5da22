"""Requests that are none, are too large or come too slowly get the services' own refusals, and nothing is kept."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import TYPE_CHECKING

import pytest
import uvicorn

from amlstack.sandbox.arm import app, entra
from amlstack.sandbox.data.blobs import wire
from amlstack.sandbox.server import bounded_protocol
from tests.support.sandbox.sandbox_client import ROOT

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager

GROUP = f"{ROOT}/resourceGroups/slow"
BLOB = "/blob/space1/box/name"
LONG = 3600.0
"""Seconds that no test lasts."""


@pytest.fixture(autouse=True)
def _short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of these tests has sent all of it before it reads: none needs the time that the server lingers."""
    monkeypatch.setattr(bounded_protocol, "LINGER_SECONDS", 0.05)


def exchange(manager: Manager, sent: bytes, bound: float) -> tuple[int, dict[str, str], bytes]:
    """What a server answers to these bytes, before it closes the connection; status, headers and body.

    Args:
        manager: Whose state is served.
        sent: Everything that the client sends; it keeps the connection open.
        bound: Seconds that a head, or a part of a body, may take.
    """

    async def ask() -> bytes:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            config = uvicorn.Config(
                app.make(manager.context, "federated"),
                http=bounded_protocol.protocol(app.refusal, bound),
                h11_max_incomplete_event_size=bounded_protocol.HEAD_BYTES,
                log_level="critical",
                ws="none",
                lifespan="off",
            )
            server = uvicorn.Server(config)
            serving = asyncio.create_task(server._serve([listener]))  # without its signal handlers
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(sent)
            answer = await reader.read()
            writer.close()
            server.should_exit = True
            await serving
            return answer

    head, _, body = asyncio.run(ask()).partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


def request(manager: Manager, path: str, body: bytes, length: int | str, audience: str = "") -> bytes:
    token = entra.issue(manager.context.key, audience or manager.context.base)
    head = f"PUT {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nx-ms-blob-type: BlockBlob\r\n"
    return head.encode() + f"Content-Length: {length}\r\n\r\n".encode() + body


@pytest.mark.parametrize("sent", [b"", b"GET ", b"GET / HTTP/1.1\r\nHost: a\r\n"])
def test_a_head_that_does_not_come_is_given_up(manager: Manager, sent: bytes) -> None:
    status, headers, body = exchange(manager, sent, bound=0.05)

    assert (status, headers["connection"]) == (408, "close")
    assert json.loads(body)["error"]["code"] == headers["x-ms-error-code"] == "RequestTimeout"


def test_a_body_that_does_not_come_is_given_up_and_nothing_is_stored(manager: Manager) -> None:
    path = f"{GROUP}?api-version=2024-03-01"

    status, _, body = exchange(manager, request(manager, path, b'{"location": "eastus"', 22), bound=0.05)

    assert (status, json.loads(body)["error"]["code"]) == (408, "RequestTimeout")
    assert manager.call("GET", GROUP)[0] == 404


@pytest.mark.parametrize("query", ["", "?comp=block&blockid=YQ=="], ids=["a blob", "a block"])
def test_an_upload_that_does_not_end_leaves_nothing(manager: Manager, query: str) -> None:
    blobs = manager.store.blobs
    blobs.make_container("space1", "box")
    sent = request(manager, BLOB + query, b"half", 8, "https://storage.azure.com")

    status, headers, body = exchange(manager, sent, bound=0.05)

    assert (status, headers["x-ms-error-code"]) == (408, "RequestTimeout")
    assert b"<Code>RequestTimeout</Code>" in body
    assert blobs.get("space1", "box", "name") is None
    assert [path for path in blobs.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("length", [str(wire.MOST_BYTES + 1), "9" * 19], ids=["too large", "far too large"])
def test_an_upload_beyond_the_limit_is_refused_before_it_is_sent(manager: Manager, length: str) -> None:
    manager.store.blobs.make_container("space1", "box")
    sent = request(manager, BLOB, b"", length, "https://storage.azure.com")

    status, headers, body = exchange(manager, sent, bound=0.2)

    assert (status, headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")
    assert b"<Code>RequestBodyTooLarge</Code>" in body
    assert manager.store.blobs.get("space1", "box", "name") is None


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", 400, "BadRequest"),
        (b"nonsense\r\n\r\n", 400, "BadRequest"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "BadRequest"),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400, "BadRequest"),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400, "BadRequest"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA: " + b"x" * (2 << 16), 431, "RequestHeaderFieldsTooLarge"),
    ],
    ids=["TLS", "no request", "no host", "a negative length", "two lengths", "a large head"],
)
def test_what_is_no_request_is_refused_in_the_resource_managers_form(
    manager: Manager, sent: bytes, status: int, code: str
) -> None:
    answered, headers, body = exchange(manager, sent, bound=LONG)

    assert (answered, headers["connection"]) == (status, "close")
    assert json.loads(body)["error"]["code"] == headers["x-ms-error-code"] == code


def test_a_chunk_that_is_none_ends_the_upload_and_leaves_nothing(manager: Manager) -> None:
    blobs = manager.store.blobs
    blobs.make_container("space1", "box")
    head = request(manager, BLOB, b"", 0, "https://storage.azure.com")
    head = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")

    status, _, body = exchange(manager, head + b"4\r\nhalf\r\nnonsense\r\n", bound=LONG)

    assert (status, b"<Code>BadRequest</Code>" in body) == (400, True)
    assert blobs.get("space1", "box", "name") is None


def test_the_bound_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(bounded_protocol.VARIABLE, raising=False)
    assert bounded_protocol.seconds() == bounded_protocol.SECONDS
    monkeypatch.setenv(bounded_protocol.VARIABLE, "2.5")
    assert bounded_protocol.seconds() == 2.5
