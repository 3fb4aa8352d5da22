"""A pipeline component in a file of its own, read as the pipeline job that it would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobs.azureml.read import lone_component, pipeline
from jobs.azureml.read.passthrough import steps as passthrough
from jobs.model.component import asset
from jobs.model.passthrough import literals
from jobs.model.pipeline import Pipeline, PipelineSettings
from jobs.model.values import Output

if TYPE_CHECKING:
    from jobs.azureml.cursor import Cursor

path_of = pipeline.path_of
PLACELESS = PipelineSettings(default_compute="serverless")
"""The pipeline that runs a component says where its steps run; alone they run serverless."""


def read(cursor: Cursor) -> Pipeline | None:
    """The pipeline that the component would be; None when it is too broken to be one."""
    steps = passthrough.Steps(pipeline.steps, pipeline.path_of)
    component = passthrough.read_component(cursor, "pipeline", steps)
    if component is None:
        return None
    lone_component.noted(cursor, "the pipeline")
    defaults = {name: port.default for name, port in component.inputs.items() if port.default is not None}
    return Pipeline(
        jobs=component.jobs,
        inputs={**literals(component.inputs), **defaults},
        outputs={name: Output(type=asset(port)) for name, port in component.outputs.items()},
        display_name=component.display_name,
        description=component.description,
        tags=component.tags,
        settings=PLACELESS,
    )
