"""What a distributed training job is: declared, planned against a size, and rendered as one body."""

from __future__ import annotations

from jobs.body import API_VERSION, body
from jobs.enrich import Added
from jobs.environments import conda_text, environment_properties
from jobs.launchers import Custom, PerProcess, TorchRun
from jobs.load import Loaded, load
from jobs.plan import Plan, plan
from jobs.refs import Refs
from jobs.source import Source
from jobs.spec import Job
from jobs.target import Target
from jobs.values import Build, Code, Environment, Identity, Input, Limits, Output, QueueSettings, Service

__all__ = [
    "API_VERSION",
    "Added",
    "Build",
    "Code",
    "Custom",
    "Environment",
    "Identity",
    "Input",
    "Job",
    "Limits",
    "Loaded",
    "Output",
    "PerProcess",
    "Plan",
    "QueueSettings",
    "Refs",
    "Service",
    "Source",
    "Target",
    "TorchRun",
    "body",
    "conda_text",
    "environment_properties",
    "load",
    "plan",
]
