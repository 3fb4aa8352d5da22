"""Files of a job on their way to this machine: halves are gone on with, and no name leads out of the folder."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import ServiceResponseError

from amlstack.cli.workspace.downloads import Downloads, RemoteFile
from amlstack.cli.workspace.local_names import RefusedNameError, inside
from amlstack.cli.workspace.place import WorkspacePlace
from amlstack.provider.arm import ArmClient
from amlstack.provider.blobs import ContainerAccess
from amlstack.rpc import ProviderError

if TYPE_CHECKING:
    from collections.abc import Iterator
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
    made = Downloads(WorkspacePlace(ArmClient("https://arm"), ("/w",), ""), "/w", lambda _: None)
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


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/passwd", "a//../b", "a\\b", "a\x00b", "", ".", "a/", "x" * 300]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedNameError):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["a", "a/b.txt", "..a/b..", "a b/ü.txt"])
def test_a_plain_name_is_a_path_below_the_folder(tmp_path: Path, name: str) -> None:
    assert inside(tmp_path, name) == tmp_path / name
