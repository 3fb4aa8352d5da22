"""What a distributed training job is: declared, planned against a size, and rendered as one body."""

from __future__ import annotations

from jobs.body import API_VERSION, body
from jobs.component import Component, Port
from jobs.component_body import component_id
from jobs.composites import Declared, Planned
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
from jobs.other import OtherComponent, OtherStep
from jobs.pipeline import Pipeline, PipelineSettings, Step, SweepStep
from jobs.pipeline_body import components
from jobs.pipeline_plan import PipelinePlan
from jobs.plan import Plan, plan
from jobs.refs import Refs
from jobs.resolve import codes, parts, render, resolve, with_enrich
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
from jobs.source import Source
from jobs.spec import Job
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
from jobs.target import Target
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service

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
    "load",
    "parts",
    "plan",
    "render",
    "resolve",
    "with_enrich",
]
