"""Containers and conditions of the blob service, with Microsoft's own client."""

from __future__ import annotations

import hashlib
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.storage.blob import BlobBlock, BlobServiceClient, ContainerClient

from amlstack.sandbox.files import storage
from amlstack.sandbox.planes.blobs import wire
from tests.support.sandbox.refusals import status_and_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from azure.storage.blob import BlobClient

    from tests.support.running import Sandbox
    from tests.support.sandbox.sandbox_client import Arm


@pytest.fixture
def container(
    sandbox: Sandbox, arm: Arm, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[ContainerClient]:
    """A client of a container that nobody has made, one for each test."""
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    arm.make_workspace("blobs")
    key = (arm.endpoint.token.parent / "key").read_text()
    name = "".join(letter for letter in request.node.name.lower() if letter.isalnum())[-60:]
    token = storage.grant(key, "blobs", name, "racwdl")
    with ContainerClient(f"{arm.url}/blob/blobs", name, credential=token, retry_total=0) as made:
        yield made


def refused(call: Callable[[], Any]) -> tuple[int | None, str | None]:
    with pytest.raises(HttpResponseError) as caught:
        call()
    return status_and_code(caught.value)


def test_a_container_exists_once_it_was_made_and_is_made_once(container: ContainerClient) -> None:
    assert not container.exists()
    for call in (lambda: container.upload_blob("a", b"1"), lambda: list(container.list_blobs())):
        assert refused(call) == (404, "ContainerNotFound")
    assert refused(container.get_blob_client("a").get_blob_properties)[0] == 404

    made = container.create_container()

    assert container.exists()
    assert container.get_container_properties().etag == made["etag"]
    assert refused(container.create_container) == (409, "ContainerAlreadyExists")
    container.upload_blob("a", b"1")
    assert [blob.name for blob in container.list_blobs()] == ["a"]


def test_a_container_of_a_datastore_is_there_with_its_workspace(arm: Arm, container: ContainerClient) -> None:
    store = arm.get(f"{arm.make_workspace('blobs')}/datastores/workspaceblobstore").body
    name = store["properties"]["containerName"]
    key = (arm.endpoint.token.parent / "key").read_text()
    with ContainerClient(
        f"{arm.url}/blob/blobs", name, credential=storage.grant(key, "blobs", name, "racwdl")
    ) as there:
        assert there.exists()
        assert refused(there.create_container) == (409, "ContainerAlreadyExists")
    assert not container.exists()


def test_a_container_with_a_name_that_none_can_have_is_refused(arm: Arm, container: ContainerClient) -> None:
    del container
    key = (arm.endpoint.token.parent / "key").read_text()
    for name in ("Upper", "a", "a--b", "-ab"):
        with BlobServiceClient(f"{arm.url}/blob/blobs", credential=storage.grant(key, "blobs", name, "c")) as service:
            assert refused(service.get_container_client(name).create_container) == (
                400,
                "OutOfRangeInput" if len(name) < 3 else "InvalidResourceName",
            )


def test_lists_come_in_pages_that_hold_each_entry_once(container: ContainerClient) -> None:
    container.create_container()
    names = sorted(["a", "a-b", "b/1", "b/2", "b/c/3", "b0", "ü/<&>", "z"])
    for name in names:
        container.upload_blob(name, b"")

    for size in (1, 2, 3, 8, 100):
        pages = [[blob.name for blob in page] for page in container.list_blobs(results_per_page=size).by_page()]
        assert [name for page in pages for name in page] == names
        assert all(len(page) == size for page in pages[:-1])
        walked = [blob.name for page in container.walk_blobs(results_per_page=size).by_page() for blob in page]
        assert sorted(walked) == ["a", "a-b", "b/", "b0", "z", "ü/"]
    assert [blob.name for blob in container.list_blobs(name_starts_with="b/", results_per_page=2)] == names[2:5]

    first: Any = container.list_blobs(results_per_page=3).by_page()
    next(first)
    token = first.continuation_token
    container.delete_blob("a")
    assert [blob.name for blob in next(container.list_blobs(results_per_page=3).by_page(token))] == names[3:6]
    assert refused(lambda: next(container.list_blobs().by_page("nonsense"))) == (400, "OutOfRangeQueryParameterValue")


def test_an_upload_beyond_the_limit_is_refused_before_it_is_sent(arm: Arm, container: ContainerClient) -> None:
    container.create_container()
    address = urllib.request.Request(f"{container.get_blob_client('a').url}", method="PUT")
    address.add_header("Content-Length", str(wire.MOST_BYTES + 1))
    address.add_header("x-ms-blob-type", "BlockBlob")
    context = ssl.create_default_context(cafile=str(arm.endpoint.ca))

    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(address, context=context)

    with caught.value as refusal:
        assert (refusal.code, refusal.headers["x-ms-error-code"]) == (413, "RequestBodyTooLarge")
    assert not container.get_blob_client("a").exists()


WRITES: dict[str, Callable[..., Any]] = {
    "upload": lambda blob, **when: blob.upload_blob(b"new", overwrite=True, **when),
    "commit": lambda blob, **when: blob.commit_block_list([BlobBlock("a")], **when),
    "metadata": lambda blob, **when: blob.set_blob_metadata({"a": "b"}, **when),
    "delete": lambda blob, **when: blob.delete_blob(**when),
}


def state(blob: BlobClient) -> tuple[bytes, str]:
    return blob.download_blob().readall(), blob.get_blob_properties().etag


@pytest.mark.parametrize("write", WRITES)
def test_a_write_to_a_blob_that_changed_meanwhile_is_refused(container: ContainerClient, write: str) -> None:
    container.create_container()
    blob = container.get_blob_client("a")
    stale = blob.upload_blob(b"first")["etag"]
    blob.upload_blob(b"second", overwrite=True)
    blob.stage_block("a", b"new")
    before = state(blob)
    seen = blob.get_blob_properties()

    unchanged = {"etag": stale, "match_condition": MatchConditions.IfNotModified}
    assert refused(lambda: WRITES[write](blob, **unchanged)) == (412, "ConditionNotMet")
    modified = {"etag": before[1], "match_condition": MatchConditions.IfModified}
    assert refused(lambda: WRITES[write](blob, **modified)) == (412, "ConditionNotMet")
    assert refused(lambda: WRITES[write](blob, if_modified_since=seen.last_modified)) == (412, "ConditionNotMet")
    assert state(blob) == before

    WRITES[write](blob, etag=before[1], match_condition=MatchConditions.IfNotModified)

    assert not blob.exists() or state(blob) != before
    gone = container.get_blob_client("never")
    here = {"match_condition": MatchConditions.IfPresent}
    assert refused(lambda: gone.upload_blob(b"", overwrite=True, **here)) == (412, "ConditionNotMet")


def test_a_read_with_a_condition_answers_it(container: ContainerClient) -> None:
    container.create_container()
    blob = container.get_blob_client("a")
    etag = blob.upload_blob(b"first")["etag"]

    same: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
    other: dict[str, Any] = {"etag": etag, "match_condition": MatchConditions.IfModified}
    assert blob.download_blob(**same).readall() == b"first"
    assert refused(lambda: blob.download_blob(**other))[0] == 304
    assert refused(lambda: blob.get_blob_properties(**other))[0] == 304
    stale: dict[str, Any] = {"etag": '"0x1"', "match_condition": MatchConditions.IfNotModified}
    assert refused(lambda: blob.download_blob(**stale)) == (412, "ConditionNotMet")


def test_of_many_that_make_the_same_blob_one_alone_succeeds(container: ContainerClient) -> None:
    """The condition is judged where the blob is replaced, and not when the upload begins."""
    from concurrent.futures import ThreadPoolExecutor

    container.create_container()
    blob = container.get_blob_client("a")
    etag = blob.upload_blob(b"0")["etag"]

    def overwrite(number: int) -> bool:
        try:
            when = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
            blob.upload_blob(bytes([number]) * 300_000, overwrite=True, **when)
        except ResourceModifiedError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(overwrite, range(1, 9)))

    assert sum(won) == 1
    assert blob.download_blob().readall() == bytes([won.index(True) + 1]) * 300_000


def test_a_blob_is_put_from_the_url_of_another(container: ContainerClient) -> None:
    container.create_container()
    container.upload_blob("a/ü b", b"content", metadata={"of": "a"})
    source, target = container.get_blob_client("a/ü b"), container.get_blob_client("b")

    target.upload_blob_from_url(source.url, source_content_md5=bytearray(hashlib.md5(b"content").digest()))

    assert target.download_blob().readall() == b"content"
    assert refused(lambda: target.upload_blob_from_url(source.url, overwrite=False)) == (409, "BlobAlreadyExists")


def test_a_source_that_may_not_be_read_or_is_another_is_refused(container: ContainerClient, arm: Arm) -> None:
    container.create_container()
    container.upload_blob("a", b"content")
    source, target = container.get_blob_client("a").url, container.get_blob_client("b")
    plain = source.partition("?")[0]
    key = (arm.endpoint.token.parent / "key").read_text()
    write_only = f"{plain}?{storage.grant(key, 'blobs', container.container_name, 'cw')}"
    missing = container.get_blob_client("c").url

    def put(url: str, **options: Any) -> tuple[int | None, str | None]:
        return refused(lambda: target.upload_blob_from_url(url, **options))

    assert put(plain) == (401, "CannotVerifyCopySource")
    assert put(write_only) == (403, "CannotVerifyCopySource")
    assert put(missing) == (404, "CannotVerifyCopySource")
    assert put(plain, source_authorization="Bearer a.b.c") == (401, "CannotVerifyCopySource")
    assert put(source, source_content_md5=bytearray(16)) == (400, "Md5Mismatch")
    assert put("https://example.org/a") == (501, "SandboxNotEmulated")
    assert not target.exists()


def test_a_copy_within_an_account_needs_no_second_token_and_is_done_when_it_is_answered(
    sandbox: Sandbox, arm: Arm, container: ContainerClient
) -> None:
    container.create_container()
    container.upload_blob("a", b"1", metadata={"by": "me"})
    token = arm.login(arm.endpoint.token.read_text(), audience="https://storage.azure.com")
    source = f"{arm.url}/blob/blobs/{container.container_name}/a"
    headers = {"Authorization": f"Bearer {token}", "x-ms-copy-source": source}

    def copy(name: str, **more: str) -> Any:
        request = urllib.request.Request(f"{source[:-1]}{name}", method="PUT", headers={**headers, **more})
        context = ssl.create_default_context(cafile=str(sandbox.endpoint.ca))
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers).open(request)

    with copy("b") as answer:
        assert (answer.status, answer.headers["x-ms-copy-status"]) == (202, "success")
    assert container.download_blob("b").readall() == b"1"
    assert container.get_blob_client("b").get_blob_properties().metadata == {"by": "me"}
    codes = {}
    for other in (f"others/{container.container_name}/a", f"blobs/{container.container_name}/none"):
        with pytest.raises(urllib.error.HTTPError) as caught:
            copy("b", **{"x-ms-copy-source": f"{arm.url}/blob/{other}"})
        codes[other.partition("/")[0]] = caught.value.code, caught.value.headers["x-ms-error-code"]
        caught.value.close()
    assert codes == {"others": (401, "CannotVerifyCopySource"), "blobs": (404, "BlobNotFound")}


def test_a_blob_that_is_replaced_keeps_when_it_was_first_made(container: ContainerClient) -> None:
    container.create_container()
    blob = container.get_blob_client("a")
    blob.upload_blob(b"1")
    first = blob.get_blob_properties()
    blob.upload_blob(b"2", overwrite=True)
    again = blob.get_blob_properties()
    assert again.creation_time == first.creation_time
    assert again.etag != first.etag
