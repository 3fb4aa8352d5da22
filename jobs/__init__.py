"""What a distributed training job is: declared, planned against a size, and rendered as one body."""

from __future__ import annotations

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
from jobs.source import Source
from jobs.spec import Job
from jobs.target import Target
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service

__all__ = [
    "API_VERSION",
    "Accelerate",
    "Added",
    "Build",
    "Code",
    "Custom",
    "DeepSpeed",
    "Environment",
    "Horovod",
    "HuggingFace",
    "Identity",
    "Input",
    "Job",
    "Lightning",
    "Limits",
    "Loaded",
    "Mpi",
    "Output",
    "PerProcess",
    "Plan",
    "QueueSettings",
    "Refs",
    "Service",
    "SingleNode",
    "Source",
    "Target",
    "TensorFlow",
    "TorchRun",
    "body",
    "conda_text",
    "environment_properties",
    "load",
    "plan",
]
