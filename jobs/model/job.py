"""`Job`: what a person declares. Nothing here is derived; `jobs.plan` derives, `jobs.body` renders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.model.resources import Resources
from jobs.model.run_fields import Run
from jobs.model.values import Code, Environment, Identity, Input, Limits, Output, QueueSettings, Scalar, Service

if TYPE_CHECKING:
    from collections.abc import Callable


def _code(value: Any) -> Any:
    return Code(path=value) if isinstance(value, str) else value


class Job(Run, Resources):
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
    code: Annotated[Code | None, BeforeValidator(_code), Field(description="Folder that the command runs in.")] = None
    inputs: dict[str, Input | Scalar] = Field(default_factory=dict, description="What the command reads, by name.")
    outputs: dict[str, Output] = Field(default_factory=dict, description="What the command writes, by name.")
    environment_variables: dict[str, Any] = Field(default_factory=dict, description="Variables of every process.")

    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom, description="How the ranks are started.")
    data_class: Annotated[str | None, Field(description="Class of the data that the job reads.")] = None
    compute: Annotated[str | None, Field(description="Cluster by name or id, or `local`; unset: serverless.")] = None
    limits: Annotated[Limits | None, Field(description="When the job is ended.")] = None
    queue_settings: Annotated[QueueSettings | None, Field(description="Tier and priority in the queue.")] = None
    identity: Annotated[Identity | None, Field(description="As whom the job reads its data.")] = None
    services: Annotated[dict[str, Service] | None, Field(description="Ways into the running job, by name.")] = None
    parent_job_name: Annotated[str | None, Field(description="Run that this one is filed under.")] = None
    lineage_word: Annotated[str | None, Field(description="Word that the lineage of the run is found by.")] = None

    enrich: Annotated[
        StrictBool | None,
        Field(description="Add the fabric's variables and shared memory; unset: for typed launchers only."),
    ] = None

    @property
    def typed(self) -> bool:
        """Whether the launcher is one of ours, not Azure ML's words taken as they are."""
        return not isinstance(self.launcher, Custom)

    @property
    def runs(self) -> Self:
        """What an inline step runs: the job itself."""
        return self

    def with_runs(self, runs: Self) -> Self:
        """The other job."""
        return runs

    def job(self) -> Self:
        """The command job that an inline step is: the job itself."""
        return self

    def with_parts(self, change: Callable[[Self], Self]) -> Self:
        """The job changed: it is its own one part."""
        return change(self)
