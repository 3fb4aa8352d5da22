"""Parallel steps on the sandbox: mini-batches over processes on all nodes, retries, thresholds, `append_row_to`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.runner.children_lab import FOLDER, bound, children, pipeline
from tests.support.runner.runner_lab import ML, PLAIN, WORKSPACE

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

SCORE = """\
import argparse, os, pathlib, sys, time

def init():
    parser = argparse.ArgumentParser()
    parser.add_argument("--words")
    global words
    words = parser.parse_known_args()[0].words
    assert "RANK" not in os.environ
    print("init", os.environ["GREETING"])

def run(mini_batch, mini_batch_context):
    mark = pathlib.Path(words) / "seen"
    for file in mini_batch:
        name = os.path.basename(file)
        if name == "f2.txt" and not mark.exists():
            mark.touch()
            os._exit(3)
        if name == "f4.txt":
            raise ValueError("never four")
    return [f"{os.path.basename(file)} {open(file).read().strip()} {mini_batch_context.mini_batch_id}"
            for file in mini_batch]
"""


def parallel_component(lab: Lab, name: str, **spec: Any) -> str:
    """Registers a component that runs the entry script; its id."""
    identity = f"{WORKSPACE}/components/{name}/versions/1"
    task = {
        "type": "run_function",
        "entry_script": "score.py",
        "code": f"azureml:{lab.code({'score.py': SCORE})}",
        "environment": f"azureml:{PLAIN}",
        "program_arguments": "--words ${{outputs.words}}",
        "append_row_to": "${{outputs.rows}}",
    }
    fields = {
        "type": "parallel",
        "mini_batch_size": "2",
        "input_data": "${{inputs.data}}",
        "inputs": {"data": FOLDER},
        "outputs": {"rows": {"type": "uri_file"}, "words": FOLDER},
        "task": task,
        **spec,
    }
    lab.store.resources.put(
        identity, f"{ML}/workspaces/components/versions", identity.rsplit("/", 2)[0],
        {"properties": {"componentSpec": fields}},
    )  # fmt: skip
    return identity


def ran(lab: Lab, component: str, **step: Any) -> str:
    """A pipeline of one parallel step over seven files; its key."""
    for number in range(1, 8):
        lab.blob(f"in/f{number}.txt", f"{number}\n")
    fields = {"type": "parallel", "componentId": component, "inputs": {"data": bound("${{parent.inputs.data}}")}}
    uri = "azureml://datastores/workspaceblobstore/paths/in/"
    key = pipeline(
        lab,
        {"score": {**fields, "outputs": {"rows": {"value": "${{parent.outputs.rows}}", "type": "literal"}}, **step}},
        inputs={"data": {"jobInputType": "uri_folder", "uri": uri}},
        outputs={"rows": {"jobOutputType": "uri_file"}},
    )
    lab.run(key)
    return key


def test_mini_batches_run_on_all_nodes_and_failed_ones_again(lab: Lab) -> None:
    key = ran(
        lab,
        parallel_component(lab, "score"),
        resources={"instance_count": 2},
        max_concurrency_per_instance=2,
        mini_batch_error_threshold=1,
        retry_settings={"max_retries": 1, "timeout": 60},
        environment_variables={"GREETING": "hello"},
    )

    child = children(lab, key)["score"]
    folder = lab.folder(child.id)
    log = (folder / "user_logs" / "std_log_process_00.txt").read_text()
    assert child.status == "Completed", child.error
    assert "4 mini-batches, 2 node(s) with 2 process(es) each" in log
    assert "mini-batch 0 failed on" in log
    assert "the process ended in run() with 3" in log, "a process that dies is replaced, its mini-batch tried again"
    assert log.count("mini-batch 1 failed on") == 2, "tried as often as `max_retries` says, then given up"
    rows = next((lab.folder(key) / "outputs").rglob("rows*"))
    assert rows.read_text().splitlines() == ["f1.txt 1 0", "f2.txt 2 0", "f5.txt 5 2", "f6.txt 6 2", "f7.txt 7 3"]
    assert "items failed: 2" in (folder / "logs" / "job_progress_overview.txt").read_text()
    assert "ValueError: never four" in (folder / "logs" / "user" / "error.txt").read_text()
    printed = [file.read_text() for file in (folder / "logs" / "user" / "stdout").rglob("*.stdout.txt")]
    assert {line for text in printed for line in text.splitlines()} == {"init hello"}
    assert (child.properties["jobType"], child.properties["properties"]["azureml.parallelrunstep"]) == (
        "Command",
        "true",
    )


def test_a_step_fails_with_its_first_error_when_more_fail_than_it_allows(lab: Lab) -> None:
    key = ran(
        lab,
        parallel_component(lab, "strict", mini_batch_error_threshold=0, environment_variables={"GREETING": "x"}),
        retry_settings={"max_retries": 1},
    )

    child, row = children(lab, key)["score"], lab.store.jobs[key]
    assert (row.status, child.status) == ("Failed", "Failed")
    assert child.error is not None
    assert (
        "ParallelRunError: 1 of 4 mini-batches failed, more than `mini_batch_error_threshold` 0 allows. "
        "The first: ValueError: never four" in child.error.message
    )
