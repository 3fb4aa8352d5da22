"""The table of keys names every field of a job once, and leads each spelling back to its field."""

from __future__ import annotations

from typing import get_args

import jobs
from amlstack.base.text import snake
from jobs.azureml.read import command
from jobs.azureml.write import WRITERS
from jobs.kinds import KINDS
from jobs.model.job import RESOURCE_FIELDS, Job
from jobs.model.pipeline import Declared
from jobs.wire import keys, pipeline
from tests.support.rows import for_each

OF_THE_STACK = {"rerun", "on_edit", "wait", "after", "delete_history", "enrich", "fabric"}
"""Fields that say how a run behaves in a stack; Azure ML never sees them."""


def test_table_has_every_field_that_azure_ml_knows() -> None:
    assert sorted(key.field for key in keys.JOB) == sorted(Job.model_fields.keys() - OF_THE_STACK)


def test_table_has_the_keys_that_are_read() -> None:
    assert {*keys.BLOCKS, "type"} == command.KEYS.keys()
    assert {key.in_file for key in keys.RESOURCES} == command.RESOURCES.keys()
    assert tuple(key.field for key in keys.RESOURCES) == RESOURCE_FIELDS


@for_each(
    "path, field",
    [
        ("resources.shmSize", "shm_size"),
        ("resources.shm_size", "shm_size"),
        ("resources.instance_count", "nodes"),
        ("environmentId", "environment"),
        ("environment", "environment"),
        ("environmentVariables.NCCL_DEBUG", "environment_variables.NCCL_DEBUG"),
        ("distribution.processCountPerInstance", "launcher"),
        ("queueSettings.jobTier", "queue_settings.job_tier"),
        ("limits.trialTimeout", "limits.trial_timeout"),
        ("settings.default_compute", "settings.default_compute"),
    ],
)
def test_field_is_found_by_its_path_in_a_body_or_a_node(path: str, field: str) -> None:
    assert keys.field_of(path) == field


def test_a_steps_node_takes_every_key_of_the_table_that_it_does_not_have_in_other_words() -> None:
    left = pipeline._NOT_OF_A_NODE
    assert left < {key.field for key in keys.JOB}, "each key that is left out is one of the table"
    assert set(pipeline.OF_A_NODE) == {key.wire for key in keys.JOB} - {
        key.wire for key in keys.JOB if key.field in left
    }
    assert all(pipeline.OF_A_NODE), "a key that is not sent has no name on the wire"


def test_a_steps_node_has_what_its_job_says_under_every_such_key() -> None:
    whole = Job(
        command="true",
        environment="azureml:e:1",
        environment_variables={"A": "b"},
        compute="gpu",
        launcher=jobs.Mpi(),
        limits=jobs.Limits(timeout=60),
        queue_settings=jobs.QueueSettings(job_tier="standard"),
        identity=jobs.Identity(type="managed"),
        services={"look": jobs.Service(type="vs_code")},
    )
    planned = jobs.resolve(jobs.Pipeline(jobs={"train": whole}), lambda _: (jobs.Target(), ()))

    node = jobs.render(planned.enriched).body["properties"]["jobs"]["train"]

    assert {key if key == "computeId" else snake(key) for key in pipeline.OF_A_NODE} <= node.keys()


def test_every_kind_of_declaration_is_planned_rendered_and_written_to_a_file() -> None:
    assert KINDS.keys() == WRITERS.keys() == set(get_args(Declared))
