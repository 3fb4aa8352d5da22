"""The table of keys names every field of a job once, and leads each spelling back to its field."""

from __future__ import annotations

import pytest

from jobs.azureml.read import command, runtime
from jobs.model.job import Job
from jobs.model.resources import RESOURCE_FIELDS
from jobs.wire import keys

OF_THE_STACK = {"rerun", "on_edit", "wait", "delete_history", "enrich"}
"""Fields that say how a run behaves in a stack; Azure ML never sees them."""


def test_table_has_every_field_that_azure_ml_knows() -> None:
    assert sorted(key.field for key in keys.JOB) == sorted(Job.model_fields.keys() - OF_THE_STACK)


def test_table_has_the_keys_that_are_read() -> None:
    assert {*keys.BLOCKS, "type"} == command.KEYS.keys()
    assert {key.in_file for key in keys.RESOURCES} == runtime.RESOURCES.keys()
    assert tuple(key.field for key in keys.RESOURCES) == RESOURCE_FIELDS


@pytest.mark.parametrize(
    ("path", "field"),
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
