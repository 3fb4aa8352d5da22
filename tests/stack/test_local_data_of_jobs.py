"""Data of this machine in a stack: uploaded once, read by job, sweep and pipeline; an edit of them is another run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.stack.deployment import missing_resources
from amlstack.cli.stack_files import State
from amlstack.sandbox.store.store import job_folder
from tests.support.harness import ANALYZER
from tests.support.stack.small_jobs import job, runs_of, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

FOLDER = {"data": {"type": "uri_folder", "path": "./words"}}
READS = "cat ${{inputs.data}}/deep/word.txt; touch ${{inputs.data}}/new 2>&1 | tail -1"
PIPELINE: dict[str, Any] = {
    "type": "pipeline",
    "name": "steps",
    "settings": {"default_compute": "azureml:busy"},
    "inputs": FOLDER,
    "jobs": {
        "read": {
            "type": "command",
            "command": "cat ${{inputs.data}}/deep/word.txt ${{inputs.own}}",
            "environment": "azureml:small",
            "inputs": {
                "data": "${{parent.inputs.data}}",
                "own": {"type": "uri_file", "path": "words/deep/word.txt"},
            },
        }
    },
}


def test_data_are_uploaded_once_and_an_edit_of_them_is_another_run(own: Own, tmp_path: Path) -> None:
    words = tmp_path / "words"
    (words / "deep").mkdir(parents=True)
    (words / "deep" / "word.txt").write_text("hello\n")
    (words / "left.tmp").write_text("never sent")
    (words / ".amlignore").write_text("*.tmp\n")
    reads = job(tmp_path, "reads", READS, inputs=FOLDER)
    also = job(tmp_path, "also", "ls -a ${{inputs.data}}", inputs=FOLDER)
    steps = tmp_path / "steps.yml"
    steps.write_text(yaml.safe_dump(PIPELINE, sort_keys=False))
    stack = own.stack
    for key, value in settings("ws-data").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [{"file": str(file), "wait": "completed"} for file in (reads, also, steps)])

    made = stack.up(policy_packs=[ANALYZER]).ok()
    uploads = [step.name for step in made.planned if step.type == "amlstack:data:Upload"]
    assert sorted(name.rpartition("/")[2] for name in uploads) == ["word.txt", "words"]
    (first,) = runs_of(own.home, "reads")
    uri = first.properties["inputs"]["data"]["uri"]
    assert uri.startswith("azureml://datastores/workspaceblobstore/paths/LocalUpload/")
    assert uri.endswith("/words/")
    assert log(own, first.id).startswith("hello\n")
    assert "Read-only file system" in log(own, first.id) or "Permission denied" in log(own, first.id)
    (listed,) = runs_of(own.home, "also")
    assert log(own, listed.id).split() == [".", "..", ".amlignore", "deep"]
    (pipeline,) = runs_of(own.home, "steps")
    with store_of(own.home) as store:
        (step,) = store.family.children(pipeline.id).values()
    assert log(own, step) == "hello\nhello\n"

    (words / "left.tmp").write_text("edited, and still never sent")
    assert stack.preview().ok().changes == {}

    (words / "deep" / "word.txt").write_text("goodbye\n")
    edited = stack.up(policy_packs=[ANALYZER]).ok()
    assert edited.op("reads", "jobs:Job") == "replace"
    assert {edited.op(name, "data:Upload") for name in uploads} == {"replace"}
    before, after = runs_of(own.home, "reads")
    assert (before.id, log(own, after.id).splitlines()[0]) == (first.id, "goodbye")
    assert after.properties["inputs"]["data"]["uri"] != uri

    recorded = State(tuple(stack.state()["resources"]))
    assert [urn for urn in missing_resources(recorded, own.home) if "data:Upload" in urn] == []
    with store_of(own.home) as store:
        for blob in store.blobs.under(*_container(own), "LocalUpload/"):
            store.blobs.delete(blob)
    assert len([urn for urn in missing_resources(recorded, own.home) if "data:Upload" in urn]) == 2


def log(own: Own, run: str) -> str:
    return (job_folder(own.home, run) / "user_logs" / "std_log_process_00.txt").read_text()


def _container(own: Own) -> tuple[str, str]:
    with store_of(own.home) as store:
        (row,) = (
            one
            for one in store.resources.of_type("Microsoft.MachineLearningServices/workspaces/datastores")
            if one.name == "workspaceblobstore"
        )
    properties = row.body["properties"]
    return properties["accountName"], properties["containerName"]
