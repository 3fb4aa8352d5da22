"""A distributed training job: declared, planned against a size, and rendered as one body."""

from __future__ import annotations

from jobs.kinds import Planned, render, resolve, with_enrich
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
from jobs.loading import Loaded, load
from jobs.model.component import Component, Port
from jobs.model.job import Job
from jobs.model.pipeline import PassthroughComponent, PassthroughStep, Pipeline, PipelineSettings, Step, SweepStep
from jobs.model.schedule import Cron, Declared, Pattern, Recurrence, Schedule
from jobs.model.sweep import (
    Bandit,
    Bayesian,
    Choice,
    Grid,
    LogNormal,
    LogUniform,
    MedianStopping,
    Normal,
    Objective,
    QLogNormal,
    QLogUniform,
    QNormal,
    QUniform,
    Randint,
    Random,
    Sweep,
    SweepLimits,
    SweepResources,
    TruncationSelection,
    Uniform,
)
from jobs.planning.command import plan
from jobs.planning.pipeline import PipelinePlan
from jobs.planning.plans import Added, Plan, Target
from jobs.planning.schedule import SchedulePlan
from jobs.planning.sweep import SweepPlan
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service, Source
from jobs.wire.command import API_VERSION, Rendered, body
from jobs.wire.component import component_id
from jobs.wire.references import Refs, conda_text, environment_properties

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
    "Output",
    "PassthroughComponent",
    "PassthroughStep",
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
    "Rendered",
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
    "component_id",
    "conda_text",
    "environment_properties",
    "load",
    "plan",
    "render",
    "resolve",
    "with_enrich",
]
