"""Data of this machine in a stack: uploaded once, read by jobs and steps; an edit of them runs these alone again.

Beside them a sweep and a pipeline that read none: they run once, and their parts are jobs of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.stack.deployment import missing_resources
from amlstack.cli.stack.runs import summary_rows
from amlstack.cli.stack_files import State
from amlstack.sandbox.store.store import job_folder
from tests.support.harness import ANALYZER
from tests.support.running import left_of_jobs
from tests.support.stack.small_jobs import job, runs, runs_of, settings, store_of

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
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

PARTS: dict[str, Any] = {
    "type": "pipeline",
    "name": "parts",
    "settings": {"default_compute": "azureml:busy"},
    "outputs": {"result": {"type": "uri_folder"}},
    "jobs": {
        "write": {
            "type": "command",
            "command": "cp word.txt ${{outputs.data}}/word.txt",
            "code": "src",
            "environment": "azureml:small",
            "outputs": {"data": {"type": "uri_folder"}},
        },
        "read": {
            "type": "command",
            "command": "cat ${{inputs.data}}/word.txt > ${{outputs.result}}/read.txt",
            "environment": "azureml:small",
            "inputs": {"data": "${{parent.jobs.write.outputs.data}}"},
            "outputs": {"result": "${{parent.outputs.result}}"},
        },
        "score": {
            "type": "parallel",
            "inputs": {"data": "${{parent.jobs.write.outputs.data}}"},
            "outputs": {"rows": {"type": "uri_file"}},
            "input_data": "${{inputs.data}}",
            "mini_batch_size": "1",
            "max_concurrency_per_instance": 1,
            "mini_batch_error_threshold": 0,
            "resources": {"instance_count": 2},
            "task": {
                "type": "run_function",
                "code": "src",
                "entry_script": "score.py",
                "environment": "azureml:small",
                "append_row_to": "${{outputs.rows}}",
            },
        },
    },
}
SCORE = "def run(mini_batch):\n    return [open(file).read().strip() for file in mini_batch]\n"
SWEEP: dict[str, Any] = {
    "type": "sweep",
    "name": "tries",
    "compute": "azureml:busy",
    "trial": {
        "command": "echo ${{search_space.lr}} > outputs/lr.txt; cat word.txt",
        "code": "src",
        "environment": "azureml:small",
    },
    "search_space": {"lr": {"type": "choice", "values": [0.1, 0.2]}},
    "sampling_algorithm": "grid",
    "objective": {"goal": "minimize", "primary_metric": "loss"},
    "limits": {"max_total_trials": 2, "max_concurrent_trials": 2},
}


def test_an_edit_of_data_is_another_run_of_what_reads_them_and_of_nothing_else(own: Own, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "word.txt").write_text("hello\n")
    (tmp_path / "src" / "score.py").write_text(SCORE)
    words = tmp_path / "words"
    (words / "deep").mkdir(parents=True)
    (words / "deep" / "word.txt").write_text("hello\n")
    (words / "left.tmp").write_text("never sent")
    (words / ".amlignore").write_text("*.tmp\n")
    reads = job(tmp_path, "reads", READS, inputs=FOLDER)
    also = job(tmp_path, "also", "ls -a ${{inputs.data}}", inputs=FOLDER)
    files = [reads, also]
    for one in (PIPELINE, PARTS, SWEEP):
        files.append(tmp_path / f"{one['name']}.yml")
        files[-1].write_text(yaml.safe_dump(one, sort_keys=False))
    stack = own.stack
    for key, value in settings("ws-data").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [{"file": str(file), "wait": "completed"} for file in files])

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
    once = parts(own)
    printed = [text for _, text in summary_rows(stack.outputs(), {}, again="make up")]
    assert "write: 1 nodes × 1 processes per node = world size 1" in printed

    (words / "left.tmp").write_text("edited, and still never sent")
    assert stack.preview().ok().changes == {}

    (words / "deep" / "word.txt").write_text("goodbye\n")
    edited = stack.up(policy_packs=[ANALYZER]).ok()
    assert edited.op("reads", "jobs:Job") == "replace"
    assert {edited.op(name, "data:Upload") for name in uploads} == {"replace"}
    assert parts(own) == once
    before, after = runs_of(own.home, "reads")
    assert (before.id, log(own, after.id).splitlines()[0]) == (first.id, "goodbye")
    assert after.properties["inputs"]["data"]["uri"] != uri

    recorded = State(tuple(stack.state()["resources"]))
    assert [urn for urn in missing_resources(recorded, own.home) if "data:Upload" in urn] == []
    with store_of(own.home) as store:
        for blob in store.blobs.under(*_container(own), "LocalUpload/"):
            store.blobs.delete(blob)
    assert len([urn for urn in missing_resources(recorded, own.home) if "data:Upload" in urn]) == 2
    assert left_of_jobs(own.home) == ()


def parts(own: Own) -> dict[str, JobRow]:
    """The run of the sweep, the run of the pipeline, and their parts, which are what they should be."""
    (sweep,), (pipeline,) = (
        [row for row in runs_of(own.home, name) if "parentJobName" not in row.properties] for name in ("tries", "parts")
    )
    known = runs(own.home)
    with store_of(own.home) as store:
        trials, steps = ({place: known[key] for place, key in store.family.children(one.id).items()}
                         for one in (sweep, pipeline))  # fmt: skip
    assert ({*trials}, {*steps}) == ({"0", "1"}, {"write", "read", "score"})
    found = {row.id: row for row in (sweep, pipeline, *trials.values(), *steps.values())}
    assert {row.status for row in found.values()} == {"Completed"}
    assert (job_folder(own.home, pipeline.id) / "outputs" / "result" / "read.txt").read_text() == "hello\n"
    assert "1 mini-batches, 2 node(s) with 1 process(es) each" in log(own, steps["score"].id)
    assert (job_folder(own.home, trials["1"].id) / "outputs" / "lr.txt").read_text() == "0.2\n"
    return found


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
