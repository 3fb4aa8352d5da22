"""Parts of blobs and containers, with Microsoft's own clients: leases, tags, headers, blocks, copies, directories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.identity import WorkloadIdentityCredential
from azure.storage.blob import BlobBlock, BlobServiceClient, BlobType, BlockState, ContentSettings
from azure.storage.filedatalake import DataLakeServiceClient

from amlstack.sandbox.files import storage
from tests.support.sandbox.refusals import status_and_code
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from azure.storage.blob import BlobClient, ContainerClient
    from azure.storage.filedatalake import FileSystemClient

    from tests.support.running import Sandbox


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return "".join(letter for letter in request.node.name.lower() if letter.isalnum())[-60:]


@pytest.fixture(scope="module")
def service(sandbox: Sandbox) -> Iterator[BlobServiceClient]:
    """A client of an account, signed in with Entra ID."""
    arm = Arm(sandbox.endpoint)
    arm.make_workspace("parts")
    with pytest.MonkeyPatch.context() as patch:
        for key, value in sandbox.environ.items():
            patch.setenv(key, value)
        with BlobServiceClient(f"{arm.url}/blob/parts", credential=WorkloadIdentityCredential(), retry_total=0) as made:
            yield made


@pytest.fixture
def container(service: BlobServiceClient, name: str) -> ContainerClient:
    return service.create_container(name, metadata={"team": "a"})


@pytest.fixture
def blob(container: ContainerClient) -> BlobClient:
    made = container.get_blob_client("a/b.txt")
    made.upload_blob(b"first", metadata={"team": "b"})
    return made


@pytest.fixture
def files(service: BlobServiceClient, arm: Arm, name: str) -> Iterator[FileSystemClient]:
    """A file system of the same account, at its other endpoint."""
    del service
    address = f"{arm.url}/blob/parts.dfs.core.windows.net"
    with DataLakeServiceClient(address, credential=WorkloadIdentityCredential(), retry_total=0) as made:
        yield made.create_file_system(name)


def refused(call: Callable[[], Any]) -> tuple[int | None, str | None]:
    with pytest.raises(HttpResponseError) as caught:
        call()
    return status_and_code(caught.value)


def test_the_containers_of_an_account_are_listed_by_pages(service: BlobServiceClient, name: str) -> None:
    for number in range(3):
        service.create_container(f"{name[:50]}{number}", metadata={"number": str(number)})
    prefix = name[:50]
    pages = [
        [(each.name[-1], each.metadata["number"]) for each in page]
        for page in service.list_containers(prefix, include_metadata=True, results_per_page=2).by_page()
    ]
    assert pages == [[("0", "0"), ("1", "1")], [("2", "2")]]
    assert "azureml" in [each.name for each in service.list_containers()], "the containers of datastores are there too"


def test_a_container_is_gone_with_its_blobs_until_it_is_made_again(
    container: ContainerClient, blob: BlobClient
) -> None:
    container.set_container_metadata({"team": "c"})
    assert container.get_container_properties().metadata == {"team": "c"}
    container.delete_container()
    assert not container.exists()
    assert refused(container.delete_container) == (404, "ContainerNotFound")
    container.create_container()
    assert not blob.exists()
    assert container.get_container_properties().metadata == {}


def test_the_container_of_a_datastore_can_be_deleted_and_made_again(service: BlobServiceClient) -> None:
    container = service.get_container_client("azureml")
    container.delete_container()
    assert not container.exists()
    assert "azureml" not in [each.name for each in service.list_containers()]
    container.create_container()
    assert container.exists()


def test_a_download_repeats_the_headers_that_were_set(blob: BlobClient) -> None:
    settings = ContentSettings("text/plain", "identity", "en", "inline", "no-cache")
    blob.set_http_headers(settings)
    found = blob.get_blob_properties().content_settings
    assert (found.content_type, found.content_language) == ("text/plain", "en")
    assert (found.content_disposition, found.cache_control) == ("inline", "no-cache")
    assert blob.get_blob_properties().metadata == {"team": "b"}
    blob.upload_blob(b"second", overwrite=True)
    assert blob.get_blob_properties().content_settings.cache_control is None


def test_tags_and_tier_are_kept(container: ContainerClient, blob: BlobClient) -> None:
    blob.set_blob_tags({"kind": "log", "of": "job & step"})
    assert blob.get_blob_tags() == {"kind": "log", "of": "job & step"}
    blob.set_standard_blob_tier("Cool")
    assert [each.blob_tier for each in container.list_blobs()] == ["Cool"]
    assert [each.metadata for each in container.list_blobs(include=["metadata"])] == [{"team": "b"}]
    assert refused(lambda: blob.set_blob_tags({str(number): "" for number in range(11)}))[0] == 400


def test_only_who_holds_the_lease_writes(blob: BlobClient) -> None:
    lease = blob.acquire_lease(15)
    for call in (lambda: blob.upload_blob(b"2", overwrite=True), blob.delete_blob):
        assert refused(call) == (412, "LeaseIdMissing")
    assert refused(lambda: blob.acquire_lease(15)) == (409, "LeaseAlreadyPresent")
    wrong = "11111111-1111-1111-1111-111111111111"
    assert refused(lambda: blob.delete_blob(lease=wrong)) == (412, "LeaseIdMismatchWithBlobOperation")
    blob.upload_blob(b"mine", overwrite=True, lease=lease)
    assert blob.get_blob_properties().lease.state == "leased"
    lease.renew()
    lease.release()
    blob.upload_blob(b"anybody's", overwrite=True)
    blob.acquire_lease(-1).break_lease()
    blob.delete_blob()


def test_a_leased_container_is_deleted_by_who_holds_the_lease(container: ContainerClient) -> None:
    lease = container.acquire_lease()
    assert container.get_container_properties().lease.state == "leased"
    assert refused(container.delete_container) == (412, "LeaseIdMissing")
    assert refused(lambda: container.delete_container(lease="no-id")) == (400, "InvalidHeaderValue")
    container.delete_container(lease=lease)
    assert refused(container.get_container_properties) == (404, "ContainerNotFound")


def test_a_block_is_a_part_of_another_blob(container: ContainerClient, blob: BlobClient) -> None:
    made = container.get_blob_client("part")
    credential = WorkloadIdentityCredential()
    token = credential.get_token("https://storage.azure.com/.default").token
    made.stage_block_from_url("MQ==", blob.url, 1, 3, source_authorization=f"Bearer {token}")
    made.commit_block_list([BlobBlock("MQ==")])
    assert made.download_blob().readall() == b"irs"


def test_a_name_that_xml_cannot_hold_is_listed(container: ContainerClient) -> None:
    container.upload_blob("a/\uffff", b"")
    assert [one.name for one in container.list_blobs()] == ["a/\uffff"]


def test_a_list_of_blocks_is_taken_with_its_digest_alone(blob: BlobClient) -> None:
    blob.stage_block("MQ==", b"one")
    made = blob.commit_block_list([BlobBlock("MQ==")], validate_content=True)
    assert made["content_md5"] is not None
    wrong = {"Content-MD5": "AAAAAAAAAAAAAAAAAAAAAA=="}
    listed = [BlobBlock("MQ==")]
    assert refused(lambda: blob.commit_block_list(listed, headers=wrong)) == (400, "Md5Mismatch")


def test_blocks_are_listed_and_kept_from_one_list_to_the_next(container: ContainerClient) -> None:
    blob = container.get_blob_client("blocks")
    blob.stage_block("MQ==", b"one")
    blob.stage_block("Mg==", b"two")
    assert [[row.id for row in rows] for rows in blob.get_block_list("all")] == [[], ["MQ==", "Mg=="]]
    blob.commit_block_list([BlobBlock("MQ=="), BlobBlock("Mg==")])
    blob.stage_block("Mw==", b"three")
    blob.commit_block_list([BlobBlock("Mg==", state=BlockState.COMMITTED), BlobBlock("Mw==")])
    assert blob.download_blob().readall() == b"twothree"
    committed, waiting = blob.get_block_list("all")
    assert ([(row.id, row.size) for row in committed], waiting) == ([("Mg==", 3), ("Mw==", 5)], [])
    assert refused(lambda: blob.commit_block_list([BlobBlock("MQ==")])) == (400, "InvalidBlockList")
    assert blob.download_blob().readall() == b"twothree"


def test_a_blob_is_copied_within_its_account(container: ContainerClient, blob: BlobClient) -> None:
    copy = container.get_blob_client("copy")
    assert copy.start_copy_from_url(blob.url)["copy_status"] == "success"
    assert (copy.download_blob().readall(), copy.get_blob_properties().copy.status) == (b"first", "success")
    missing = container.get_blob_client("none").url
    assert refused(lambda: container.get_blob_client("other").start_copy_from_url(missing))[0] == 404


def test_an_append_blob_grows_by_blocks_and_counts_them(container: ContainerClient, blob: BlobClient) -> None:
    log = container.get_blob_client("log")
    log.create_append_blob()
    log.append_block(b"one ")
    assert log.append_block(b"two", appendpos_condition=4)["blob_append_offset"] == "4"
    assert refused(lambda: log.append_block(b"x", appendpos_condition=4)) == (412, "AppendPositionConditionNotMet")
    assert refused(lambda: log.append_block(b"x", maxsize_condition=7)) == (412, "MaxBlobSizeConditionNotMet")
    found = log.get_blob_properties()
    assert (found.blob_type, found.append_blob_committed_block_count, found.size) == (BlobType.APPENDBLOB, 2, 7)
    assert log.download_blob().readall() == b"one two"
    row = next(each for each in container.list_blobs() if each.name == "log")
    assert (row.blob_type, row.blob_tier) == (BlobType.APPENDBLOB, None)
    blob.upload_blob(b"x", overwrite=True)
    assert refused(lambda: blob.append_block(b"x")) == (409, "InvalidBlobType")


def test_properties_that_are_set_without_a_type_have_none(blob: BlobClient) -> None:
    blob.upload_blob(b"x", overwrite=True)
    blob.set_http_headers()
    settings = blob.get_blob_properties().content_settings
    assert (settings.content_type, settings.content_md5) == (None, None)


def test_what_the_blob_service_does_not_know_is_refused_by_name(container: ContainerClient, blob: BlobClient) -> None:
    assert refused(blob.create_snapshot) == (501, "SandboxNotEmulated")
    upload = container.get_blob_client("other").upload_blob
    assert refused(lambda: upload(b"x" * 512, BlobType.PAGEBLOB))[0] == 501
    assert refused(lambda: upload(b"x" * 512, BlobType.PAGEBLOB))[0] == 501
    assert refused(lambda: container.upload_blob("x" * 1025, b"")) == (400, "InvalidResourceName")


def test_a_file_system_shows_directories_and_files_that_the_blob_service_shows_too(
    files: FileSystemClient, service: BlobServiceClient
) -> None:
    folder = files.create_directory("data/raw", metadata={"team": "a"})
    file = folder.create_file("x.bin")
    file.append_data(b"abc", 0, 3)
    file.append_data(b"def", 3, 3)
    file.flush_data(6)
    rows = [(each.name, each.is_directory) for each in files.get_paths()]
    assert rows == [("data", True), ("data/raw", True), ("data/raw/x.bin", False)]
    assert [each.name for each in files.get_paths(recursive=False)] == ["data"]
    assert file.download_file().readall() == b"abcdef"
    assert service.get_blob_client(files.file_system_name, "data/raw/x.bin").download_blob().readall() == b"abcdef"
    assert folder.get_directory_properties().metadata["team"] == "a"
    pages = [[each.name for each in page] for page in files.get_paths(max_results=2).by_page()]
    assert pages == [["data", "data/raw"], ["data/raw/x.bin"]]


def test_a_directory_is_renamed_and_deleted_with_what_lies_in_it(files: FileSystemClient) -> None:
    files.get_file_client("a/b/c.txt").upload_data(b"1" * 10, overwrite=True)
    files.get_directory_client("a/b").rename_directory(f"{files.file_system_name}/z")
    assert [each.name for each in files.get_paths()] == ["a", "z", "z/c.txt"]
    files.get_directory_client("z").delete_directory()
    assert [each.name for each in files.get_paths()] == ["a"]


def test_what_a_file_system_cannot_do_is_refused(files: FileSystemClient) -> None:
    file = files.create_file("one")
    file.append_data(b"abc", 0, 3)
    assert refused(lambda: file.flush_data(5)) == (400, "InvalidFlushPosition")
    assert refused(lambda: files.create_file("one/two")) == (409, "PathConflict")
    assert refused(lambda: files.get_file_client("none").get_file_properties())[0] == 404
    assert refused(lambda: list(files.get_paths("none"))) == (404, "PathNotFound")


def test_a_signature_for_another_container_opens_no_file_system(arm: Arm, files: FileSystemClient) -> None:
    key = (arm.endpoint.token.parent / "key").read_text()
    address = f"{arm.url}/blob/parts.dfs.core.windows.net"
    with DataLakeServiceClient(
        address, credential=storage.grant(key, "parts", "other", "racwdl"), retry_total=0
    ) as other:
        paths = other.get_file_system_client(files.file_system_name).get_paths()
        assert refused(lambda: list(paths))[0] == 403
