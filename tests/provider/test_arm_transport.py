"""The transport below the client: proxies, authorities, netrc files and broken answers."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import ssl
import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trustme
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from azure.core.rest import HttpRequest

from amlstack.provider.arm import ArmClient, ArmError
from amlstack.provider.arm.exchange import make_transport
from tests.support.loopback import Loopback
from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler

    from tests.support.provider.fake_arm import FakeArm


@pytest.fixture
def proxy() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a proxy that refuses everything, and the first line of each request to it."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(65536).partition(b"\r\n")[0])
                    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@pytest.fixture
def sent(arm: FakeArm) -> HttpRequest:
    return HttpRequest("GET", f"{arm.url}{WORKSPACE}")


def test_a_request_goes_through_the_proxy_of_the_environment(
    sent: HttpRequest, proxy: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = proxy
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTPS_PROXY", url)
    monkeypatch.setenv("https_proxy", url)
    with pytest.raises(ServiceRequestError):
        make_transport().send(sent)
    assert [line.split()[:2] for line in asked] == [[b"CONNECT", urlsplit(sent.url).netloc.encode()]]


def test_a_host_that_needs_no_proxy_is_asked_directly(
    arm: FakeArm, proxy: tuple[str, list[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, asked = proxy
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    assert ArmClient(arm.url).get(WORKSPACE).status == 200
    assert asked == []


def test_a_certificate_of_another_authority_is_refused(sent: HttpRequest, tmp_path: Path) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
        make_transport(str(other)).send(sent)


def test_authorities_are_read_once_for_all_connections_and_again_when_they_change(
    arm: FakeArm, sent: HttpRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of a machine are a hundred and more: 0.05 s of CPU each time."""
    read: list[object] = []
    load = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext, "load_verify_locations", lambda self, *files: (read.append(files), load(self, *files))[1]
    )
    file = tmp_path / "authorities.pem"
    file.write_bytes(Path(os.environ["REQUESTS_CA_BUNDLE"]).read_bytes())
    made = [make_transport(str(file)) for _ in range(3)]
    for each in made * 2:
        assert each.send(sent).status_code == 401
    assert read == [(str(file),)]
    trustme.CA().cert_pem.write_to_path(str(file))
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
        make_transport(str(file)).send(sent)


def test_a_certificate_of_another_host_is_refused(arm: FakeArm) -> None:
    elsewhere = arm.url.replace("127.0.0.1", "localhost")
    with pytest.raises(ServiceRequestError, match=r"(?i)hostname"):
        make_transport().send(HttpRequest("GET", f"{elsewhere}{WORKSPACE}"))


def test_a_folder_of_authorities_is_taken_like_a_file(sent: HttpRequest, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(ServiceRequestError, match="CERTIFICATE_VERIFY_FAILED"):
        make_transport(str(tmp_path / "empty")).send(sent)


def test_authorities_that_cannot_be_read_are_named(arm: FakeArm, tmp_path: Path) -> None:
    with pytest.raises(ArmError, match=r"missing\.pem"):
        ArmClient(arm.url, ca=str(tmp_path / "missing.pem")).look(WORKSPACE)


def test_a_netrc_takes_no_tokens_place(arm: FakeArm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    assert ArmClient(arm.url).get(WORKSPACE).status == 200


def test_a_service_that_is_not_there_is_a_typed_error(arm: FakeArm) -> None:
    arm.close()
    with pytest.raises(ServiceRequestError, match="refused"):
        make_transport().send(HttpRequest("GET", f"{arm.url}{WORKSPACE}"))


def test_compressed_answers_are_read_and_short_ones_are_errors(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"id": "\xc3\xa4"}')

    def handle(request: BaseHTTPRequestHandler, _: bytes) -> None:
        missing = 1 if request.path == "/short" else 0
        request.send_response(200)
        request.send_header("Content-Encoding", "gzip")
        request.send_header("Content-Length", str(len(whole) + missing))
        request.send_header("Connection", "close")  # else the second request may meet the connection of the first
        request.end_headers()
        request.wfile.write(whole)

    server = Loopback(tmp_path, handle)
    try:
        made = make_transport(str(server.ca))
        assert made.send(HttpRequest("GET", f"{server.url}/whole?a=b")).text() == '{"id": "ä"}'
        with pytest.raises(HttpResponseError, match="IncompleteRead"):
            made.send(HttpRequest("GET", f"{server.url}/short"))
    finally:
        server.close()


def test_a_url_with_a_query_and_a_body_arrive_unchanged(arm: FakeArm) -> None:
    body = {"properties": {"x": "ä"}}
    assert ArmClient(arm.url).put(f"{WORKSPACE}/jobs/a b", body, query={"$filter": "a eq 'b c'"}).status == 201
    assert (arm.asked[-1].path.rpartition("/")[2], arm.asked[-1].body) == ("a b", body)
    assert arm.asked[-1].query["$filter"] == "a eq 'b c'"
