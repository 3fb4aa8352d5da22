"""A sweep and a pipeline of a stack: `pulumi up` runs them once, a second does nothing, the end leaves nothing."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.cli.stack.runs import summary_rows
from amlstack.sandbox.store.store import Store, job_folder
from tests.support.harness import ANALYZER
from tests.support.running import left_of_jobs
from tests.support.stack.small_jobs import runs, settings

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import JobRow
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(3600)]

PIPELINE: dict[str, Any] = {
    "type": "pipeline",
    "name": "steps",
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


def test_they_run_once_and_their_parts_are_jobs_of_their_own(own: Own, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "word.txt").write_text("hello\n")
    (tmp_path / "src" / "score.py").write_text(SCORE)
    files = []
    for result in (PIPELINE, SWEEP):
        files.append(tmp_path / f"{result['name']}.yml")
        files[-1].write_text(yaml.safe_dump(result, sort_keys=False))
    stack = own.stack
    for key, value in settings("ws-parts").items():
        stack.set(key, value, path=False)
    stack.set("amlstack:jobs", [{"file": str(file), "wait": "completed"} for file in files])
    stack.up(policy_packs=[ANALYZER]).ok()
    before = runs(own.home)
    outputs = stack.outputs()
    stack.up(policy_packs=[ANALYZER]).ok()
    assert runs(own.home).keys() == before.keys()

    children = _children(own.home, before)
    assert children["steps"].keys() == {"write", "read", "score"}
    assert children["tries"].keys() == {"0", "1"}
    assert {row.status for row in before.values()} == {"Completed"}
    folder = job_folder(own.home, _parent(before, "steps").id)
    assert (folder / "outputs" / "result" / "read.txt").read_text() == "hello\n"
    score = job_folder(own.home, children["steps"]["score"].id) / "user_logs" / "std_log_process_00.txt"
    assert "1 mini-batches, 2 node(s) with 1 process(es) each" in score.read_text()
    trial = job_folder(own.home, children["tries"]["1"].id)
    assert (trial / "outputs" / "lr.txt").read_text() == "0.2\n"
    printed = [text for _, text in summary_rows(outputs, {}, again="make up")]
    assert "write: 1 nodes × 1 processes per node = world size 1" in printed
    stack.destroy().ok()
    assert left_of_jobs(own.home) == ()


def _parent(known: dict[str, JobRow], name: str) -> JobRow:
    (found,) = (
        row for row in known.values() if row.name.rpartition("-")[0] == name and "parentJobName" not in row.properties
    )
    return found


def _children(home: Path, known: dict[str, JobRow]) -> dict[str, dict[str, JobRow]]:
    with closing(Store(home)) as store:
        return {
            name: {place: known[key] for place, key in store.family.children(_parent(known, name).id).items()}
            for name in ("steps", "tries")
        }
