"""A pipeline as an Azure ML CLI v2 file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jobs.azureml.write.command import SCHEMAS, command_file
from jobs.azureml.write.step import step_keys
from jobs.azureml.write.sweep import names
from jobs.model.component import NO_ENVIRONMENT
from jobs.model.job import Job

if TYPE_CHECKING:
    from jobs.model.pipeline import Pipeline


def pipeline_file(pipeline: Pipeline) -> dict[str, Any]:
    """A pipeline job file; components stand inline in it."""
    result = command_file(
        Job.model_validate(
            {
                "command": "",
                "environment": NO_ENVIRONMENT,
                "inputs": pipeline.inputs,
                "outputs": {name: value for name, value in pipeline.outputs.items() if value is not None},
                **{name: getattr(pipeline, name) for name in ("compute", "identity", "services")},
            }
        )
    )
    file = {"$schema": f"{SCHEMAS}/pipelineJob.schema.json", "type": "pipeline", **names(pipeline)}
    outputs = {**result.get("outputs", {}), **{name: None for name, value in pipeline.outputs.items() if value is None}}
    file |= {key: result[key] for key in ("inputs", "compute", "identity", "services") if key in result}
    if outputs:
        file["outputs"] = outputs
    if pipeline.settings is not None:
        settings = pipeline.settings.model_dump(exclude_none=True, exclude={"extra"})
        file["settings"] = {**settings, **pipeline.settings.extra}
    if pipeline.component is not None:
        return {**file, "component": pipeline.component}
    return {**file, "jobs": {name: step_keys(step) for name, step in pipeline.jobs.items()}}
