"""The body that azure-ai-ml itself would send for a command job, worked out offline.

The one place that touches azure-ai-ml's internals; everything else compares with its answer, which is kept for a folder
that does not change.
"""

from __future__ import annotations

import json
import logging
import runpy
import warnings
from typing import TYPE_CHECKING, Any

from tests.support.jobs import answers

if TYPE_CHECKING:
    from pathlib import Path

RefusedError = answers.RefusedError
DERIVED = ("experimentName", "displayName")
"""Keys that azure-ai-ml makes up when the file leaves them out (a random name, the working folder)."""


def load(path: Path) -> Any:
    """The job of a file; in Python it is what the file calls `job`."""
    if path.suffix == ".py":
        job = runpy.run_path(str(path))["job"]
        return job._to_job() if hasattr(job, "_to_job") else job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml import load_job
        from azure.ai.ml._utils import _experimental

        logging.getLogger("azure.ai.ml").setLevel(logging.CRITICAL)
        # Whether to log that a class is experimental is found by reading the source of every caller: half the time of
        # a comparison, for a line that is not shown here.
        _experimental._should_skip_warning = lambda: True
        try:
            return load_job(path)
        except Exception as error:
            raise RefusedError(str(error)) from error


def _json(rest: Any) -> Any:
    from azure.ai.ml._restclient.arm_ml_service._utils.model_base import SdkJSONEncoder

    return json.loads(json.dumps(rest, cls=SdkJSONEncoder, exclude_readonly=True))


@answers.kept
def sweep(path: Path) -> dict[str, Any]:
    """The request body of a sweep job file; an inline environment of its trial stands as ``inline``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml.entities import Environment
        from azure.ai.ml.entities._job.to_rest_functions import to_rest_job_object

        job = load(path)
        given = {"displayName": job.display_name, "experimentName": job.experiment_name}
        try:
            if isinstance(job.trial.environment, Environment):
                job.trial.environment = "inline"
            return _without(_json(to_rest_job_object(job)), given)
        except Exception as error:
            raise RefusedError(str(error)) from error


@answers.kept
def pipeline(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request body of a pipeline job file, and by step the component versions registered before it.

    azure-ai-ml registers each local component anonymously and puts the id it gets in the step's place. Here the ids
    are `registered:<step>`; code stands as written, an inline environment as ``inline``.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml.entities._job.to_rest_functions import to_rest_job_object

        job = load(path)
        given = {"displayName": job.display_name, "experimentName": job.experiment_name}
        components: dict[str, Any] = {}
        try:
            _register(job.jobs, components)
            return _without(_json(to_rest_job_object(job)), given), components
        except Exception as error:
            raise RefusedError(str(error)) from error


def _register(nodes: dict[str, Any], components: dict[str, Any], prefix: str = "") -> None:
    """Put ids in the place of local components; those in a pipeline component come before it."""
    from azure.ai.ml.entities import Component, Environment

    for name, node in nodes.items():
        component = getattr(node, "_component", None)
        if not isinstance(component, Component):
            continue
        if component.type == "pipeline":
            _register(component.jobs, components, f"{prefix}{name}.jobs.")
        elif isinstance(getattr(component, "environment", None), Environment):
            component.environment = "inline"
            if component.type == "parallel":
                node.task.environment = "inline"
        components[f"{prefix}{name}"] = _json(component._to_rest_object())
        node._component = f"registered:{prefix}{name}"


@answers.kept
def component_versions(path: Path) -> dict[str, str]:
    """By step the version that azure-ai-ml registers its component under."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: node._component._get_anonymous_hash() for name, node in load(path).jobs.items()}


@answers.kept
def schedule(path: Path) -> dict[str, Any]:
    """The request body of a schedule file; ids of the steps' components are taken out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml.entities._load_functions import load_schedule

        try:
            result: dict[str, Any] = _json(load_schedule(path)._to_rest_object())
        except Exception as error:
            raise RefusedError(str(error)) from error
    for node in result["properties"]["action"]["jobDefinition"].get("jobs", {}).values():
        del node["componentId"]
    return result


def _without(result: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The body without what azure-ai-ml makes up where the file says nothing."""
    for key, value in given.items():
        if value is None:
            result["properties"].pop(key, None)
    return result


@answers.kept
def body(path: Path) -> dict[str, Any]:
    """The request body that azure-ai-ml would PUT for a command job file, ``{"properties": ...}``.

    Code, environment and compute stand there as written: uploading and resolving them is what comes after.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml._restclient.arm_ml_service._utils.model_base import SdkJSONEncoder
        from azure.ai.ml.entities import Environment
        from azure.ai.ml.entities._job.to_rest_functions import to_rest_job_object

        job = load(path)
        given: dict[str, Any] = {"displayName": job.display_name, "experimentName": job.experiment_name}
        environment = None
        try:
            if isinstance(job.environment, Environment):
                made = job.environment._to_rest_object()
                environment = json.loads(json.dumps(made, cls=SdkJSONEncoder, exclude_readonly=True))
                job.environment = "inline"
            rest = to_rest_job_object(job)
            result: dict[str, Any] = json.loads(json.dumps(rest, cls=SdkJSONEncoder, exclude_readonly=True))
        except Exception as error:
            raise RefusedError(str(error)) from error
    for key, value in given.items():
        if not value:
            result["properties"].pop(key, None)
    if environment is not None:
        result["environment"] = environment
    return result
