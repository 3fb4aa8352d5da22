"""`Job`: what a person declares. Nothing here is derived; `jobs.plan` derives, `jobs.body` renders."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.model.values import (
    Code,
    Count,
    Environment,
    Identity,
    Input,
    Limits,
    Model,
    Output,
    QueueSettings,
    Scalar,
    Service,
)


def _code(value: Any) -> Any:
    return Code(path=value) if isinstance(value, str) else value


class Job(Model):
    """One training run: a command, where it runs, on how many nodes, and how its ranks are started.

    Usage::

        job = Job(
            name="ddp",
            command="python train.py --epochs ${{inputs.epochs}}",
            code="src",
            inputs={"epochs": 3},
            environment="acpt-pytorch-2.8-cuda12.6",
            compute="h100",
            nodes=2,
            launcher=TorchRun(),
        )
    """

    command: Annotated[StrictStr, Field(description="Shell command; `${{inputs.x}}` and `${{outputs.y}}` are bound.")]
    environment: Annotated[
        str | Environment,
        Field(
            description="Curated name (`acpt-pytorch-2.8-cuda12.6`), `azureml:NAME:VERSION`, `azureml:NAME@LABEL`, "
            "`azureml://registries/…`, or one written inline."
        ),
    ]
    name: Annotated[
        str | None, Field(description="Name of the run; its id is this plus a hash. Unset: the file's name.")
    ] = None
    code: Annotated[Code | None, BeforeValidator(_code), Field(description="Folder that the command runs in.")] = None
    inputs: Annotated[
        dict[str, Input | Scalar], Field(default_factory=dict, description="What the command reads, by name.")
    ]
    outputs: Annotated[dict[str, Output], Field(default_factory=dict, description="What the command writes, by name.")]
    environment_variables: Annotated[
        dict[str, Any], Field(default_factory=dict, description="Variables of every process.")
    ]

    launcher: Annotated[Launcher, Field(description="How the ranks are started.")] = Custom()
    nodes: Annotated[Count | None, Field(description="Number of nodes; unset: 1.")] = None
    compute: Annotated[str | None, Field(description="Cluster by name or id, or `local`; unset: serverless.")] = None
    instance_type: Annotated[str | None, Field(description="VM size of a serverless job.")] = None
    locations: Annotated[tuple[str, ...] | None, Field(description="Regions that a serverless job may run in.")] = None
    max_instance_count: Annotated[Count | None, Field(description="Upper bound of nodes of an elastic job.")] = None
    shm_size: Annotated[
        str | None, Field(description="Shared memory of the container, e.g. `64g`; Azure ML's own default is 2g.")
    ] = None
    docker_args: Annotated[str | tuple[str, ...] | None, Field(description="Further arguments of `docker run`.")] = None
    resource_properties: Annotated[
        dict[str, Any] | None, Field(description="Properties of the resources, handed on as they are.")
    ] = None

    limits: Annotated[Limits | None, Field(description="When the job is ended.")] = None
    queue_settings: Annotated[QueueSettings | None, Field(description="Tier and priority in the queue.")] = None
    identity: Annotated[Identity | None, Field(description="As whom the job reads its data.")] = None
    services: Annotated[dict[str, Service] | None, Field(description="Ways into the running job, by name.")] = None
    experiment_name: Annotated[str | None, Field(description="Experiment that the run is filed under.")] = None
    display_name: Annotated[str | None, Field(description="Name shown in the studio; may change later.")] = None
    description: Annotated[str | None, Field(description="Description; may change later.")] = None
    tags: Annotated[dict[str, str | None], Field(default_factory=dict, description="Tags; may change later.")]
    properties: Annotated[
        dict[str, str | None], Field(default_factory=dict, description="Properties of the run record.")
    ]
    parent_job_name: Annotated[str | None, Field(description="Run that this one is filed under.")] = None

    rerun: Annotated[str | None, Field(description="Any word; another word is another run of the same job.")] = None
    on_edit: Annotated[
        Literal["refuse", "cancel", "keep"],
        Field(description="What an edit does while the old run is active: refuse it, cancel the old run, or keep it."),
    ] = "refuse"
    wait: Annotated[
        Literal["none", "started", "completed"],
        Field(description="What `up` waits for before whatever depends on the job goes on."),
    ] = "none"
    delete_history: Annotated[StrictBool, Field(description="Delete the run's record when the job is removed.")] = False
    enrich: Annotated[
        StrictBool | None,
        Field(description="Add the fabric's variables and shared memory; unset: for typed launchers only."),
    ] = None

    @property
    def typed(self) -> bool:
        """Whether the launcher is one of ours, not Azure ML's words taken as they are."""
        return not isinstance(self.launcher, Custom)
