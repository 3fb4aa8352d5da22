"""Files of a job on their way to this machine: halves are gone on with, and no name leads out of the folder."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import ServiceResponseError
from azure.storage.blob import ContainerClient

from amlstack.cli.logs.files import RefusedNameError, inside
from amlstack.cli.workspace.downloads import Downloads, RemoteFile
from amlstack.provider.arm import ArmClient
from amlstack.provider.blobs import ContainerAccess
from amlstack.rpc import ProviderError
from tests.support.loopback import Loopback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

CONTENT = b"0123456789" * 10
THEN = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
ACCESS = ContainerAccess("https://account.blob.core.windows.net/container", "sig")


@dataclass
class Container:
    """A container of one blob, whose connection breaks after some bytes, as often as `breaks` says."""

    breaks: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)

    def download_blob(self, name: str, *, offset: int, **_: Any) -> Container:
        self.asked.append(offset)
        return self

    def chunks(self) -> Iterator[bytes]:
        rest = CONTENT[self.asked[-1] :]
        if self.breaks:
            yield rest[: self.breaks.pop(0)]
            raise ServiceResponseError("the connection broke")
        yield rest


def downloads(container: Container) -> Downloads:
    made = Downloads(ArmClient("https://arm"), "/w", lambda _: None)
    made._clients[ACCESS.url] = container
    return made


def remote(folder: Path, etag: str = "one") -> RemoteFile:
    return RemoteFile(ACCESS, "run/a.bin", folder / "a.bin", len(CONTENT), etag, THEN)


def test_a_connection_that_breaks_is_gone_on_with(tmp_path: Path) -> None:
    container = Container([30, 20])
    downloads(container).fetch([remote(tmp_path)])
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    assert container.asked == [0, 30, 50]
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


def test_an_answer_of_the_storage_that_is_cut_in_its_body_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    ranges: list[int] = []

    def handle(http: BaseHTTPRequestHandler, _: bytes) -> None:
        start = int(str(http.headers["x-ms-range"]).removeprefix("bytes=").partition("-")[0])
        whole = len(ranges) >= 3  # so often the storage client asks by itself, else a second apart
        ranges.append(start)
        http.send_response(206)
        for name, value in {
            "Content-Length": len(CONTENT) - start,
            "Content-Range": f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}",
            "Content-Type": "application/octet-stream",
            "ETag": '"one"',
            "Last-Modified": "Fri, 02 Jan 2026 00:00:00 GMT",
            "x-ms-blob-type": "BlockBlob",
        }.items():
            http.send_header(name, str(value))
        http.end_headers()
        http.wfile.write(CONTENT[start:] if whole else CONTENT[: len(CONTENT) // 2])
        http.close_connection = True

    service = Loopback(tmp_path, handle)
    try:
        made = downloads(Container())
        made._clients[ACCESS.url] = ContainerClient.from_container_url(
            f"{service.url}/container?sig=x", connection_verify=str(service.ca), retry_total=0
        )
        (tmp_path / "to").mkdir()
        made.fetch([remote(tmp_path / "to")])
    finally:
        service.close()
    assert (tmp_path / "to/a.bin").read_bytes() == CONTENT
    assert len(ranges) == 4


def test_a_download_that_is_ended_leaves_no_half_under_the_files_name(tmp_path: Path) -> None:
    made = downloads(Container([30]))
    made._cancelled.set()  # as a Ctrl-C, or the failure of another file, while a part is on its way
    made._one(remote(tmp_path))
    assert not (tmp_path / "a.bin").exists()
    container = Container()
    downloads(container).fetch([remote(tmp_path)])
    assert container.asked == [30]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT


def test_a_half_has_not_the_files_name_and_the_same_again_goes_on(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="download failed"):
        downloads(Container([10, 10, 10, 10])).fetch([remote(tmp_path)])
    assert not (tmp_path / "a.bin").exists()
    container = Container()
    downloads(container).fetch([remote(tmp_path)])
    assert container.asked == [40]
    assert (tmp_path / "a.bin").read_bytes() == CONTENT
    again = Container()
    downloads(again).fetch([remote(tmp_path)])
    assert again.asked == [], "what is there and has not changed is left"


def test_a_half_of_another_content_is_not_gone_on_with(tmp_path: Path) -> None:
    with pytest.raises(ProviderError):
        downloads(Container([10, 10, 10, 10])).fetch([remote(tmp_path)])
    container = Container()
    downloads(container).fetch([remote(tmp_path, "two")])
    assert container.asked == [0]


@for_each("name", ["../x", "a/../../x", "/etc/passwd", "a//../b", "a\\b", "a\x00b", "", ".", "a/", "x" * 300])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedNameError):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["a", "a/b.txt", "..a/b..", "a b/ü.txt"])
def test_a_plain_name_is_a_path_below_the_folder(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name) == tmp_path / name
