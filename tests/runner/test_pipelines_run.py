"""Pipelines on the sandbox: their steps really run, in the order of what they read, as jobs of their own."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from amlstack.sandbox import scheduling
from amlstack.sandbox.files import environments
from tests.support.runner.children_lab import FOLDER, bound, child_log, children, component, pipeline, statuses, step
from tests.support.runner.runner_lab import CLUSTER

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab


def test_what_a_step_writes_is_read_by_the_next_and_collected(lab: Lab) -> None:
    prepare = component(
        *(
            lab,
            "prepare",
            "cat ${{inputs.raw}}/a.txt > ${{outputs.data}}/b.txt; echo ${{inputs.n}} >> ${{outputs.data}}/b.txt",
        ),
        inputs={"raw": FOLDER, "n": {"type": "integer", "default": "2"}},
        outputs={"data": FOLDER},
    )
    train = component(
        *(lab, "train", "[ $RANK = 1 ] || cp ${{inputs.data}}/b.txt ${{outputs.model}}/m.txt; echo $WORLD_SIZE"),
        inputs={"data": FOLDER},
        outputs={"model": FOLDER},
        distribution={"type": "pytorch", "process_count_per_instance": 1},
        resources={"instance_count": 2},
    )
    lab.blob("raw/a.txt", "raw\n")
    # Written in the other order on purpose: what they read decides.
    key = pipeline(
        lab,
        {
            "train": step(
                train,
                inputs={"data": bound("${{parent.jobs.prepare.outputs.data}}")},
                outputs={"model": {"value": "${{parent.outputs.model}}", "type": "literal"}},
            ),
            "prepare": step(
                prepare,
                inputs={"raw": bound("${{parent.inputs.raw}}"), "n": bound("${{parent.inputs.n}}")},
            ),
        },
        inputs={
            "raw": {"jobInputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/raw/"},
            "n": {"jobInputType": "literal", "value": "7"},
        },
        outputs={"model": {"jobOutputType": "uri_folder"}},
        experimentName="exp",
    )

    row = lab.run(key)

    assert row.status == "Completed", row.error
    made = children(lab, key)
    assert list(made) == ["prepare", "train"]
    assert (made["train"].started or 0) >= (made["prepare"].ended or 0)
    assert child_log(lab, key, "train") == "2\n"
    assert (lab.folder(key) / "outputs" / "model" / "m.txt").read_text() == "raw\n7\n"
    properties = made["train"].properties
    assert (properties["displayName"], properties["parentJobName"], properties["experimentName"]) == (
        "train",
        "pipe",
        "exp",
    )
    assert properties["properties"]["azureml.moduleName"] == "train"
    assert (lab.folder(key) / "children" / "train").resolve() == lab.folder(made["train"].id).resolve()
    assert lab.steps(key) == ["NotStarted", "Running", "Completed"]
    assert json.loads((lab.folder(key) / "report.json").read_text())["children"][0]["place"] == "prepare"


def test_a_step_reads_what_the_run_of_another_keeps_by_itself(lab: Lab) -> None:
    hello = component(lab, "hello", "echo shown; echo kept > outputs/a.txt", outputs={"artifacts": FOLDER})
    world = component(
        lab,
        "world",
        "cat ${{inputs.run}}/outputs/a.txt ${{inputs.run}}/user_logs/std_log_process_00.txt",
        inputs={"run": FOLDER},
    )
    steps = {
        "hello": step(hello),
        "world": step(world, inputs={"run": bound("${{parent.jobs.hello.outputs.artifacts}}")}),
    }
    key = pipeline(lab, steps)
    row = lab.run(key)
    assert row.status == "Completed", row.error
    assert child_log(lab, key, "world").split() == ["kept", "shown"]


def test_steps_that_need_nothing_of_each_other_run_at_once(lab: Lab) -> None:
    pipe = lab.pipe()
    reads, writes = component(lab, "reads", f"cat {pipe}"), component(lab, "writes", f"echo met > {pipe}")

    row = lab.run(key := pipeline(lab, {"one": step(reads), "two": step(writes)}))

    assert row.status == "Completed", row.error
    assert child_log(lab, key, "one") == "met\n"


def test_a_failed_step_is_named_and_what_does_not_need_it_still_runs(lab: Lab) -> None:
    breaks = component(lab, "breaks", "echo ValueError: odd >&2; exit 3", outputs={"o": FOLDER})
    works, reads = component(lab, "works", "true"), component(lab, "reads", "true", inputs={"i": FOLDER})
    jobs = {
        "bad": step(breaks),
        "other": step(works),
        "after": step(reads, inputs={"i": bound("${{parent.jobs.bad.outputs.o}}")}),
    }

    row = lab.run(key := pipeline(lab, jobs))

    assert row.status == "Failed"
    assert statuses(lab, key) == {"bad": "Failed", "other": "Completed"}
    assert row.error is not None
    name = children(lab, key)["bad"].name
    assert row.error.message.startswith(f"Step 'bad' (job {name}) failed: Execution failed: rank 0 of 1")
    assert "exited with code 3" in row.error.message
    assert row.error.message.endswith("Not run: after.")


def test_a_pipeline_ends_its_other_steps_when_it_may_not_continue(lab: Lab) -> None:
    pipe = lab.pipe()
    breaks = component(lab, "breaks", f"echo > {pipe}; exit 3")
    waits = component(lab, "waits", f"cat {pipe}; sleep 1000")
    settings = {"default_compute": CLUSTER, "continue_on_step_failure": False}

    row = lab.run(key := pipeline(lab, {"bad": step(breaks), "long": step(waits)}, settings=settings))

    assert row.status == "Failed"
    assert statuses(lab, key) == {"bad": "Failed", "long": "Canceled"}
    assert row.error is not None
    assert row.error.message.startswith("Step 'bad'")


def test_a_cancel_ends_all_steps_and_starts_no_more(lab: Lab) -> None:
    pipe = lab.pipe()
    waits = component(lab, "waits", f"echo up > {pipe}; sleep 1000", outputs={"o": FOLDER})
    reads = component(lab, "reads", "true", inputs={"i": FOLDER})
    jobs = {"long": step(waits), "after": step(reads, inputs={"i": bound("${{parent.jobs.long.outputs.o}}")})}
    key = pipeline(lab, jobs)

    asyncio.run(lab.during(key, act=lambda: lab.store.jobs.request_cancel(key), pipe=pipe))

    assert lab.store.jobs[key].status == "Canceled"
    assert statuses(lab, key) == {"long": "Canceled"}
    assert lab.survivors() == ()


def test_another_server_takes_a_pipeline_over(lab: Lab) -> None:
    """The first scheduler ends while a step runs; the next one finishes the pipeline."""
    up, go = lab.pipe(), lab.pipe()
    waits = component(lab, "waits", f"echo up > {up}; cat {go} > ${{{{outputs.o}}}}/x", outputs={"o": FOLDER})
    reads = component(lab, "reads", "cat ${{inputs.i}}/x", inputs={"i": FOLDER})
    jobs = {"first": step(waits), "second": step(reads, inputs={"i": bound("${{parent.jobs.first.outputs.o}}")})}
    key = pipeline(lab, jobs)

    heard: list[str] = []

    async def hear() -> None:
        heard.append(await asyncio.to_thread(up.read_text))
        lab.wake.set()

    async def until_it_runs() -> None:
        hearing = asyncio.create_task(hear())
        await lab.drive(lambda: bool(heard))
        await hearing

    asyncio.run(until_it_runs())
    assert statuses(lab, key) == {"first": "Running"}
    writer = subprocess.Popen([sys.executable, "-c", f"open({str(go)!r}, 'w').write('go')"])
    row = lab.run(key)

    assert writer.wait() == 0
    assert row.status == "Completed", row.error
    assert child_log(lab, key, "second") == "go"


def test_a_lost_node_of_a_step_fails_the_pipeline_by_name(lab: Lab) -> None:
    pipe = lab.pipe()
    waits = component(lab, "waits", f"echo up > {pipe}; sleep 1000")
    key = pipeline(lab, {"long": step(waits)}, name="pipe-1a2b3c")

    asyncio.run(lab.during(key, act=lambda: scheduling.evict(lab.store, "pipe/long", 0) and None, pipe=pipe))

    row = lab.store.jobs[key]
    assert row.status == "Failed"
    assert row.error is not None
    assert "Step 'long'" in row.error.message
    assert "pre-empted" in row.error.message


def test_a_component_that_is_gone_fails_the_pipeline_in_words(lab: Lab) -> None:
    key = pipeline(lab, {"one": step(f"{os.path.dirname(CLUSTER)}/none")})  # noqa: PTH120 - an id, not a path

    row = lab.run(key)

    assert row.status == "Failed"
    assert row.error is not None
    assert "was not found in the workspace" in row.error.message


def test_a_step_whose_output_this_machine_has_is_not_run(lab: Lab) -> None:
    fetch = component(lab, "fetch", "exit 7", outputs={"data": FOLDER})
    train = component(lab, "train", "cat ${{inputs.data}}/b.txt", inputs={"data": FOLDER})
    here = lab.home.parent / "here"
    here.mkdir()
    (here / "b.txt").write_text("of this machine\n")
    environments.write_inputs(lab.home, "pipe", {"train": {"data": here}}, ("fetch",))
    key = pipeline(
        lab,
        {
            "fetch": step(fetch),
            "train": step(train, inputs={"data": bound("${{parent.jobs.fetch.outputs.data}}")}),
        },
    )
    row = lab.run(key)
    assert row.status == "Completed", row.error
    assert child_log(lab, key, "train") == "of this machine\n"
