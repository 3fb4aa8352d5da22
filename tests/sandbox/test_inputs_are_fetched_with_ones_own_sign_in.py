"""`rehearse --fetch` from storage that lets nobody in without a sign-in, over the sandbox's blob service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from azure.storage.blob import ContainerClient

from amlstack.cli.rehearsal import fetching
from amlstack.sandbox.files import storage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox
    from tests.support.sandbox.sandbox_client import Arm


@pytest.fixture
def url(
    sandbox: Sandbox, arm: Arm, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> str:
    """The address of a file in a private container, one for each test."""
    arm.make_workspace("private")
    key = (arm.endpoint.token.parent / "key").read_text()
    container = f"c{abs(hash(request.node.name))}"
    token = storage.grant(key, "private", container, "racwdl")
    for name, value in (sandbox.environ | sandbox.endpoint.azure_names()).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path))
    with ContainerClient(f"{arm.url}/blob/private", container, credential=token, retry_total=0) as made:
        made.create_container()
        made.upload_blob("rows.csv", b"a,b\n1,2\n")
    return f"https://private.blob.core.windows.net/{container}/rows.csv"


def test_a_private_file_is_fetched_once_with_the_sign_in_that_was_agreed_to(url: str) -> None:
    asked: list[str] = []
    told: list[str] = []
    refusal = fetching.fetch(url, "data", 10**6, told.append, lambda what: bool(asked.append(what)))
    assert (refusal, fetching.cached(url), told) == (None, None, [])
    assert asked == [f"{url} with your sign-in to Azure"]

    assert fetching.fetch(url, "data", 10**6, told.append) is None
    kept = fetching.cached(url)
    assert kept is not None
    assert kept.read_bytes() == b"a,b\n1,2\n"
    assert fetching.fetch(url, "data", 10**6, told.append) is None
    assert told[-1] == f"{url} is as it was fetched: {kept}"


def test_what_is_too_large_or_not_there_is_said(url: str) -> None:
    for address, most, said in ((url, 3, "`--fetch-at-most` allows"), (f"{url}.gz", 10**6, "404")):
        refusal = fetching.fetch(address, "data", most, lambda _: None)
        assert refusal is not None
        assert said in refusal.seen
        assert fetching.cached(address) is None


def test_no_other_host_gets_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_signed_in", lambda: pytest.fail("signed in"))
    for host in ("private.blob.core.windows.net.example.org", "blob.core.windows.net", "example.org"):
        assert fetching._OF_AZURE.fullmatch(host) is None
