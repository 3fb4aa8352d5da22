"""A token opens what it was issued for, and jobs that act for a person bring a second one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient

from tests.support.sandbox.refusals import status_and_code
from tests.support.sandbox.sandbox_client import ROOT, Arm, job

if TYPE_CHECKING:
    from tests.support.running import Sandbox

ML = "https://ml.azure.com"
STORAGE = "https://storage.azure.com"


@pytest.fixture
def token(arm: Arm) -> Any:
    return lambda audience: arm.login(arm.endpoint.token.read_text(), audience=audience)


@pytest.mark.parametrize("audience", [STORAGE, ML, "https://vault.azure.net", "https://graph.microsoft.com/"])
def test_a_token_for_another_audience_does_not_open_the_resource_manager(arm: Arm, token: Any, audience: str) -> None:
    arm.token = token(audience)

    status, code, message = arm.get(f"{ROOT}/resourceGroups/x").error

    assert (status, code) == (401, "InvalidAuthenticationTokenAudience")
    assert f"wrong audience or resource '{audience.rstrip('/')}'" in message
    assert f"'{arm.url}'" in message, "it names what it should be for"


@pytest.mark.parametrize("audience", ["https://management.azure.com", "https://management.core.windows.net/"])
def test_a_token_for_azures_own_resource_manager_opens_it_too(arm: Arm, token: Any, audience: str) -> None:
    arm.token = token(audience)

    assert arm.make_group("audience")


def test_the_data_plane_takes_a_token_for_machine_learning_and_none_for_the_storage(arm: Arm, token: Any) -> None:
    path = f"{arm.url}/history/v1.0{arm.make_workspace('plane')}/runs/nobody/details"
    arm.token = token(ML)
    assert arm.get(path).status == 404
    arm.token = token(STORAGE)
    assert arm.get(path).error[:2] == (401, "InvalidAuthenticationTokenAudience")


class Fixed:
    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        return AccessToken(self._token, 2**31)


def test_blobs_take_a_token_for_the_storage_and_no_other(
    sandbox: Sandbox, arm: Arm, token: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", sandbox.environ["REQUESTS_CA_BUNDLE"])
    arm.make_workspace("audiences")

    def upload(audience: str) -> None:
        with BlobServiceClient(f"{arm.url}/blob/audiences", credential=Fixed(token(audience))) as service:
            service.get_blob_client("box", "a").upload_blob(b"1", overwrite=True)

    with BlobServiceClient(f"{arm.url}/blob/audiences", credential=Fixed(token(STORAGE))) as service:
        service.create_container("box")
    upload(STORAGE)
    upload("https://audiences.blob.core.windows.net")
    for other in (arm.url, ML, "https://other.blob.core.windows.net"):
        with pytest.raises(HttpResponseError) as caught:
            upload(other)
        assert status_and_code(caught.value) == (401, "InvalidAuthenticationInfo")


PIPELINE = {"properties": {"jobType": "Pipeline", "jobs": {}}}


@pytest.mark.parametrize(
    ("acting", "words"),
    [
        ("", "The request has no such header"),
        (STORAGE, "The token of this request is for 'https://storage.azure.com'"),
        ("nonsense", "this sandbox did not issue it"),
    ],
    ids=["none", "for the storage", "nonsense"],
)
@pytest.mark.parametrize("kind", ["pipeline", "user"])
def test_a_job_that_acts_for_a_person_is_refused_without_that_persons_token(
    arm: Arm, token: Any, kind: str, acting: str, words: str
) -> None:
    workspace = arm.make_workspace("acting")
    body = PIPELINE if kind == "pipeline" else job(None, identity={"identityType": "UserIdentity"})
    arm.acting = token(acting) if acting.startswith("https") else acting

    status, code, message = arm.put(f"{workspace}/jobs/refused", body).error

    assert (status, code) == (400, "UserError")
    assert "x-azureml-token" in message
    assert words in message
    assert arm.get(f"{workspace}/jobs/refused").status == 404


def test_other_jobs_need_none_and_an_existing_job_is_edited_without_one(arm: Arm) -> None:
    workspace = arm.make_workspace("acting")
    compute = arm.make_cluster(workspace)
    user = job(compute, identity={"identityType": "UserIdentity"})
    assert arm.put(f"{workspace}/jobs/of-a-user", user).status == 201
    arm.acting = ""

    assert arm.put(f"{workspace}/jobs/plain", job(compute)).status == 201
    assert arm.put(f"{workspace}/jobs/managed", job(compute, identity={"identityType": "Managed"})).status == 201
    user["properties"]["isArchived"] = True
    assert arm.put(f"{workspace}/jobs/of-a-user", user).status in {200, 201}
