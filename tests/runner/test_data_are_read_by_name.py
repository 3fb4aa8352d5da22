"""A job reads data assets of its workspace: by ARM id, by version, as the latest one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.contract import RefusedError
from amlstack.sandbox.files.storage import Location, Storage
from tests.support.runner.runner_lab import ML, WORKSPACE

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

PLACE = "azureml://datastores/workspaceblobstore/paths/words"


def register(lab: Lab, version: str, uri: str, *, archived: bool = False) -> str:
    data_id = f"{WORKSPACE}/data/words/versions/{version}"
    body = {"properties": {"dataType": "uri_folder", "dataUri": uri, "isArchived": archived}}
    lab.store.resources.put(data_id, f"{ML}/workspaces/data/versions", data_id.rsplit("/", 2)[0], body)
    return data_id


def test_a_job_reads_a_version_and_the_latest(lab: Lab) -> None:
    for number in ("1", "2"):
        fresh = lab.store.blobs.fresh()
        fresh.write_text(f"words {number}\n")
        lab.store.blobs.put("account", "container", f"words/{number}/word.txt", fresh)
    first = register(lab, "1", f"{PLACE}/1/")
    register(lab, "2", f"{PLACE}/2")
    register(lab, "3", f"{PLACE}/3", archived=True)
    given = {
        "id": {"jobInputType": "uri_folder", "uri": first},
        "latest": {"jobInputType": "uri_folder", "uri": "azureml:words@latest"},
        "named": {"jobInputType": "uri_folder", "uri": "azureml:words:1"},
    }
    command = "cat ${{inputs.id}}/word.txt ${{inputs.latest}}/word.txt ${{inputs.named}}/word.txt"
    job = lab.run(lab.job(command, inputs=given))
    assert job.status == "Completed", job.error
    assert lab.log("job") == "words 1\nwords 2\nwords 1\n"


@pytest.mark.parametrize("uri", ["azureml:words:9", "azureml:words@newest", "azureml:wards:1", "azureml:loop:1"])
def test_data_that_are_not_there_are_refused_by_name(lab: Lab, uri: str) -> None:
    register(lab, "1", PLACE)
    loop = f"{WORKSPACE}/data/loop/versions/1"
    body = {"properties": {"dataType": "uri_folder", "dataUri": "azureml:words:1"}}
    lab.store.resources.put(loop, f"{ML}/workspaces/data/versions", loop.rsplit("/", 2)[0], body)
    with pytest.raises(RefusedError, match=uri):
        Storage(lab.store, WORKSPACE).locate(uri, "The input")
    assert Storage(lab.store, WORKSPACE).locate("azureml:words:1", "The input") == Location(
        "account", "container", "words"
    )
