"""What a distributed training job is: declared, planned against a size, and rendered as one body.

Sweeps, pipelines, schedules and what belongs to them are imported when they are first named: most job files are single
jobs, and the models of the others would be a seventh of the time that a check takes to start.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jobs.body import API_VERSION, body
from jobs.enrich import Added
from jobs.environments import conda_text, environment_properties
from jobs.launchers import (
    Accelerate,
    Custom,
    DeepSpeed,
    Horovod,
    HuggingFace,
    Lightning,
    Mpi,
    PerProcess,
    SingleNode,
    TensorFlow,
    TorchRun,
)
from jobs.load import Loaded, load
from jobs.plan import Plan, plan
from jobs.refs import Refs
from jobs.resolve import codes, parts, render, resolve, with_enrich
from jobs.source import Source
from jobs.spec import Job
from jobs.target import Target
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service

if TYPE_CHECKING:
    from jobs.component import Component, Port
    from jobs.component_body import component_id
    from jobs.composites import Declared, Planned
    from jobs.other import OtherComponent, OtherStep
    from jobs.pipeline import Pipeline, PipelineSettings, Step, SweepStep
    from jobs.pipeline_body import components
    from jobs.pipeline_plan import PipelinePlan
    from jobs.rest import RestJob, from_rest
    from jobs.schedule import Cron, Pattern, Recurrence, Schedule
    from jobs.schedule_plan import SchedulePlan
    from jobs.search_space import (
        Choice,
        LogNormal,
        LogUniform,
        Normal,
        QLogNormal,
        QLogUniform,
        QNormal,
        QUniform,
        Randint,
        Uniform,
    )
    from jobs.sweep import (
        Bandit,
        Bayesian,
        Grid,
        MedianStopping,
        Objective,
        Random,
        Sweep,
        SweepLimits,
        SweepResources,
        TruncationSelection,
    )
    from jobs.sweep_plan import SweepPlan

_LATER = {
    name: module
    for module, names in {
        "component": "Component Port",
        "component_body": "component_id",
        "composites": "Declared Planned",
        "other": "OtherComponent OtherStep",
        "pipeline": "Pipeline PipelineSettings Step SweepStep",
        "pipeline_body": "components",
        "pipeline_plan": "PipelinePlan",
        "rest": "RestJob from_rest",
        "schedule": "Cron Pattern Recurrence Schedule",
        "schedule_plan": "SchedulePlan",
        "search_space": "Choice LogNormal LogUniform Normal QLogNormal QLogUniform QNormal QUniform Randint Uniform",
        "sweep": "Bandit Bayesian Grid MedianStopping Objective Random Sweep SweepLimits SweepResources "
        "TruncationSelection",
        "sweep_plan": "SweepPlan",
    }.items()
    for name in names.split()
}
"""Name to the module that it is imported from when it is first asked for."""


def __getattr__(name: str) -> Any:
    if (module := _LATER.get(name)) is None:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    globals()[name] = found = getattr(import_module(f"{__name__}.{module}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__all__ = [
    "API_VERSION",
    "Accelerate",
    "Added",
    "Bandit",
    "Bayesian",
    "Build",
    "Choice",
    "Code",
    "Component",
    "Cron",
    "Custom",
    "Declared",
    "DeepSpeed",
    "Environment",
    "Grid",
    "Horovod",
    "HuggingFace",
    "Identity",
    "Input",
    "Job",
    "Lightning",
    "Limits",
    "Loaded",
    "LogNormal",
    "LogUniform",
    "MedianStopping",
    "Mpi",
    "Normal",
    "Objective",
    "OtherComponent",
    "OtherStep",
    "Output",
    "Pattern",
    "PerProcess",
    "Pipeline",
    "PipelinePlan",
    "PipelineSettings",
    "Plan",
    "Planned",
    "Port",
    "QLogNormal",
    "QLogUniform",
    "QNormal",
    "QUniform",
    "QueueSettings",
    "Randint",
    "Random",
    "Recurrence",
    "Refs",
    "RestJob",
    "Schedule",
    "SchedulePlan",
    "Service",
    "SingleNode",
    "Source",
    "Step",
    "Sweep",
    "SweepLimits",
    "SweepPlan",
    "SweepResources",
    "SweepStep",
    "Target",
    "TensorFlow",
    "TorchRun",
    "TruncationSelection",
    "Uniform",
    "body",
    "codes",
    "component_id",
    "components",
    "conda_text",
    "environment_properties",
    "from_rest",
    "load",
    "parts",
    "plan",
    "render",
    "resolve",
    "with_enrich",
]
