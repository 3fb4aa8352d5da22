"""`rehearse --fetch` from storage that lets nobody in without a sign-in, over the sandbox's blob service."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from azure.storage.blob import ContainerClient

from amlstack.cli.rehearsal import fetching
from amlstack.sandbox.files import storage
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from tests.support.running import Sandbox


SCOPE = fetching.FetchScope(Path("/"))


def wanted(url: str, *, is_file: bool = True) -> fetching.WantedInput:
    return fetching.WantedInput(url, "data", is_file, SCOPE)


@pytest.fixture(scope="module")
def private(sandbox: Sandbox) -> Arm:
    """A client of the sandbox, in which a workspace has that name."""
    arm = Arm(sandbox.endpoint)
    arm.make_workspace("private")
    return arm


@pytest.fixture
def url(
    sandbox: Sandbox, private: Arm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> str:
    """The address of a file in a private container, one for each test."""
    key = (private.endpoint.token.parent / "key").read_text()
    container = f"c{abs(hash(request.node.name))}"
    token = storage.grant(key, "private", container, "racwdl")
    for name, value in (sandbox.environ | sandbox.endpoint.azure_names()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path))
    with ContainerClient(f"{private.url}/blob/private", container, credential=token, retry_total=0) as made:
        made.create_container()
        made.upload_blob("rows.csv", b"a,b\n1,2\n")
    return f"https://private.blob.core.windows.net/{container}/rows.csv"


def test_a_private_file_is_fetched_once_with_the_sign_in_that_was_agreed_to(url: str) -> None:
    asked: list[str] = []
    told: list[str] = []

    def decline(what: str) -> bool:
        asked.append(what)
        return False

    refusal = fetching.fetch(wanted(url), 10**6, told.append, decline)
    assert (refusal, fetching.cached(url, SCOPE), told) == (None, None, [])
    assert asked == [f"{url} with your sign-in to Azure"]

    assert fetching.fetch(wanted(url), 10**6, told.append) is None
    kept = fetching.cached(url, SCOPE)
    assert kept is not None
    assert kept.read_bytes() == b"a,b\n1,2\n"
    assert fetching.fetch(wanted(url), 10**6, told.append) is None
    assert told[-1] == f"{url} is as it was fetched: {kept}"


@pytest.mark.parametrize("form", ["https://{0}.blob.{1}/{2}/", "https://{0}.dfs.{1}/{2}", "wasbs://{2}@{0}.blob.{1}/"])
def test_a_private_folder_is_fetched_and_follows_what_changes(url: str, form: str) -> None:
    address = form.format("private", "core.windows.net", url.split("/")[3])
    assert fetching.fetch(wanted(address, is_file=False), 3, lambda _: None) is not None, "it is too large"
    assert fetching.cached(address, SCOPE) is None
    for _ in range(2):
        assert fetching.fetch(wanted(address, is_file=False), 10**6, lambda _: None) is None
        folder = fetching.cached(address, SCOPE)
        assert folder is not None
        assert [path.name for path in folder.iterdir()] == ["rows.csv"]
        (folder / "gone.csv").touch()  # as one that was fetched before and is deleted in the storage


def test_what_is_too_large_or_not_there_is_said(url: str) -> None:
    for address, most, said in ((url, 3, "`--fetch-at-most` allows"), (f"{url}.gz", 10**6, "404")):
        refusal = fetching.fetch(wanted(address), most, lambda _: None)
        assert refusal is not None
        assert said in refusal.seen
        assert fetching.cached(address, SCOPE) is None


def test_no_other_host_gets_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_signed_in", lambda: pytest.fail("signed in"))
    for host in ("private.blob.core.windows.net.example.org", "blob.core.windows.net", "example.org"):
        assert fetching._OF_AZURE.fullmatch(host) is None
