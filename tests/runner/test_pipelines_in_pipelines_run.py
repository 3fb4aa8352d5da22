"""Pipelines in pipelines on the sandbox: a step that is a pipeline is a job with steps of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.files import environments
from tests.support.runner.children_lab import (
    FOLDER,
    bound,
    child_log,
    children,
    component,
    pipeline,
    pipeline_component,
    statuses,
    step,
)

if TYPE_CHECKING:
    from amlstack.sandbox.store.store import JobRow
    from tests.support.runner.runner_lab import Lab

WORDS = {"word": {"type": "string", "default": "hello"}, "more": {"type": "string", "optional": True}}


@pytest.fixture
def inner(lab: Lab) -> str:
    """A pipeline component of two steps: a word, and what its folder says, in capitals."""
    says = component(
        *(
            lab,
            "says",
            "cat ${{inputs.data}}/a.txt > ${{outputs.text}}/a.txt; echo ${{inputs.word}} $[[${{inputs.more}}]]",
        ),
        inputs={"data": FOLDER, **WORDS},
        outputs={"text": FOLDER},
    )
    shouts = component(
        *(lab, "shouts", "tr a-z A-Z < ${{inputs.text}}/a.txt | tee ${{outputs.loud}}/a.txt"),
        inputs={"text": FOLDER},
        outputs={"loud": FOLDER},
    )
    steps = {
        "say": step(
            says,
            inputs={name: bound(f"${{{{parent.inputs.{name}}}}}") for name in ("data", "word", "more")},
        ),
        "shout": step(
            shouts,
            inputs={"text": bound("${{parent.jobs.say.outputs.text}}")},
            outputs={"loud": {"value": "${{parent.outputs.result}}", "type": "literal"}},
        ),
    }
    return pipeline_component(lab, "inner", steps, inputs={"data": FOLDER, **WORDS}, outputs={"result": FOLDER})


def nested(lab: Lab, inner: str, **more: Any) -> str:
    """A pipeline whose middle step is the component; its key."""
    makes = component(lab, "makes", "echo made > ${{outputs.data}}/a.txt", outputs={"data": FOLDER})
    shows = component(lab, "shows", "cat ${{inputs.loud}}/a.txt", inputs={"loud": FOLDER})
    steps = {
        "make": step(makes),
        "deep": {
            **step(inner, inputs={"data": bound("${{parent.jobs.make.outputs.data}}"), **more}),
            "type": "pipeline",
        },
        "show": step(shows, inputs={"loud": bound("${{parent.jobs.deep.outputs.result}}")}),
    }
    return pipeline(lab, steps, experimentName="exp")


def deep(lab: Lab, key: str) -> JobRow:
    return children(lab, key)["deep"]


def test_a_step_that_is_a_pipeline_takes_and_gives_data_like_any_step(lab: Lab, inner: str) -> None:
    row = lab.run(key := nested(lab, inner, word=bound("goodbye")))

    assert row.status == "Completed", row.error
    assert child_log(lab, key, "show") == "MADE\n"
    assert child_log(lab, deep(lab, key).id, "say") == "goodbye\n"
    assert statuses(lab, deep(lab, key).id) == {"say": "Completed", "shout": "Completed"}
    made = deep(lab, key).properties
    assert (made["jobType"], made["parentJobName"], made["experimentName"]) == ("Pipeline", "pipe", "exp")
    assert (lab.folder(deep(lab, key).id) / "outputs" / "result" / "a.txt").read_text() == "MADE\n"


def test_an_input_that_is_not_given_has_its_default_in_the_steps_below(lab: Lab, inner: str) -> None:
    row = lab.run(key := nested(lab, inner))
    assert row.status == "Completed", row.error
    assert child_log(lab, deep(lab, key).id, "say") == "hello\n"


def test_a_pipeline_that_names_a_component_has_its_steps(lab: Lab, inner: str) -> None:
    lab.blob("raw/a.txt", "raw\n")
    given = {"jobInputType": "uri_folder", "uri": "azureml://datastores/workspaceblobstore/paths/raw/"}
    row = lab.run(key := pipeline(lab, {}, componentId=inner, inputs={"data": given}))

    assert row.status == "Completed", row.error
    assert child_log(lab, key, "shout") == "RAW\n"


def test_a_step_that_fails_deep_down_is_named_with_the_way_to_it(lab: Lab) -> None:
    breaks = component(lab, "breaks", "echo ValueError: odd >&2; exit 3")
    innermost = pipeline_component(lab, "innermost", {"bad": step(breaks)})
    middle = pipeline_component(lab, "middle", {"low": {**step(innermost), "type": "pipeline"}})
    row = lab.run(pipeline(lab, {"deep": {**step(middle), "type": "pipeline"}}))

    assert row.status == "Failed"
    assert row.error is not None
    message = row.error.message
    assert message.index("Step 'deep'") < message.index("Step 'low'") < message.index("Step 'bad'")


def test_data_and_code_of_this_machine_are_found_by_the_way_to_the_step(lab: Lab, inner: str) -> None:
    here = lab.home.parent / "here"
    here.mkdir()
    (here / "a.txt").write_text("of this machine\n")
    environments.write_inputs(lab.home, "pipe", {"deep.jobs.say": {"data": here}}, ("make",))
    environments.write_code(lab.home, "pipe", {"deep.jobs.say": [here]})

    row = lab.run(key := nested(lab, inner))
    assert row.status == "Completed", row.error
    assert child_log(lab, key, "show") == "OF THIS MACHINE\n"
    say = children(lab, deep(lab, key).id)["say"]
    assert environments.code_of(lab.store, say).roots == (here,)


def test_no_step_of_a_given_pipeline_is_run(lab: Lab) -> None:
    breaks = component(lab, "breaks", "exit 3", outputs={"data": FOLDER})
    bad = step(breaks, outputs={"data": {"value": "${{parent.outputs.data}}", "type": "literal"}})
    fetches = pipeline_component(lab, "fetches", {"bad": bad}, outputs={"data": FOLDER})
    here = lab.home.parent / "here"
    here.mkdir()
    (here / "a.txt").write_text("of this machine\n")
    environments.write_inputs(lab.home, "pipe", {"show": {"data": here}}, ("fetch",))
    shows = component(lab, "shows", "cat ${{inputs.data}}/a.txt", inputs={"data": FOLDER})
    steps = {
        "fetch": {**step(fetches), "type": "pipeline"},
        "show": step(shows, inputs={"data": bound("${{parent.jobs.fetch.outputs.data}}")}),
    }
    row = lab.run(key := pipeline(lab, steps))

    assert row.status == "Completed", row.error
    assert child_log(lab, key, "show") == "of this machine\n"


def test_a_cancel_reaches_the_steps_of_a_step(lab: Lab) -> None:
    pipe = lab.pipe()
    long = pipeline_component(lab, "long", {"waits": step(component(lab, "waits", f"echo up > {pipe}; sleep 1000"))})
    key = pipeline(lab, {"deep": {**step(long), "type": "pipeline"}})

    asyncio.run(lab.during(key, act=lambda: lab.store.jobs.request_cancel(key), pipe=pipe))

    assert lab.store.jobs[key].status == "Canceled"
    assert statuses(lab, deep(lab, key).id) == {"waits": "Canceled"}
    assert lab.survivors() == ()
