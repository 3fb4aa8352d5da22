"""`Job`: what a person declares. Nothing here is derived; `jobs.plan` derives, `jobs.body` renders."""

# ruff: noqa: TC001 - pydantic reads the annotations
from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import Field, StrictBool, StrictStr

from jobs.launchers import Custom, Launcher
from jobs.model.resources import Resources
from jobs.model.run_fields import RunFields
from jobs.model.values import (
    AnyValue,
    CodeFolder,
    Environment,
    FabricBlocks,
    Identity,
    Input,
    Limits,
    OutputOrType,
    QueueSettings,
    Scalar,
    Service,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal, Unpack

    from amlstack.catalog.fabric import Block
    from jobs.model.resources import ResourceArguments
    from jobs.model.values import AssetType, Code, Output


class Job(RunFields, Resources):
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

    kind: ClassVar[str] = "command"
    """Kind of step that it is in a pipeline."""
    RUNS: ClassVar[str] = ""
    """A step that is a job names no component: it runs itself."""
    declares_ports: ClassVar[bool] = True
    """Whether it says itself what it reads and writes; what does not is given that by its step."""

    command: StrictStr
    """Shell command; `${{inputs.x}}` and `${{outputs.y}}` are bound."""
    environment: str | Environment
    """Curated name (`acpt-pytorch-2.8-cuda12.6`), `azureml:NAME:VERSION`, `azureml:NAME@LABEL`,
    `azureml://registries/…`, or one written inline.
    """
    code: CodeFolder | None = None
    """Folder that the command runs in."""
    inputs: dict[str, Input | Scalar] = Field(default_factory=dict)
    """What the command reads, by name."""
    outputs: dict[str, OutputOrType] = Field(default_factory=dict)
    """What the command writes, by name."""
    environment_variables: dict[str, AnyValue] = Field(default_factory=dict)
    """Variables of every process."""

    # A factory: making one at import would build its validators in every process that imports jobs.
    launcher: Launcher = Field(default_factory=Custom)
    """How the ranks are started."""
    compute: str | None = None
    """Cluster by name or id, or `local`; unset: serverless."""
    limits: Limits | None = None
    """When the job is ended."""
    queue_settings: QueueSettings | None = None
    """Tier and priority in the queue."""
    identity: Identity | None = None
    """As whom the job reads its data."""
    services: dict[str, Service] | None = None
    """Ways into the running job, by name."""
    parent_job_name: str | None = None
    """Run that this one is filed under."""

    enrich: StrictBool | None = None
    """Add the fabric's variables and shared memory; unset: for typed launchers, and where `fabric` asks."""
    fabric: FabricBlocks = ()
    """Further variables of the size's fabric: `azure-tuned`, `sharp`, `topology` (docs/fabric.md)."""

    if TYPE_CHECKING:
        # What may be given is wider than what a field holds (`code="src"`), which editors cannot see in the fields.
        def __init__(
            self,
            *,
            command: str,
            environment: str | Environment,
            code: Code | str | None = None,
            inputs: Mapping[str, Input | Scalar] = ...,
            outputs: Mapping[str, Output | AssetType] = ...,
            environment_variables: Mapping[str, Any] = ...,
            launcher: Launcher = ...,
            compute: str | None = None,
            limits: Limits | None = None,
            queue_settings: QueueSettings | None = None,
            identity: Identity | None = None,
            services: Mapping[str, Service] | None = None,
            parent_job_name: str | None = None,
            enrich: bool | None = None,
            fabric: Block | Sequence[Block] = (),
            # As of every run.
            name: str | None = None,
            display_name: str | None = None,
            description: str | None = None,
            experiment_name: str | None = None,
            tags: Mapping[str, str | None] = ...,
            properties: Mapping[str, str | None] = ...,
            rerun: str | None = None,
            on_edit: Literal["refuse", "cancel", "keep"] = "refuse",
            wait: Literal["none", "started", "completed"] = "none",
            after: str | Sequence[str] = (),
            delete_history: bool = False,
            **resources: Unpack[ResourceArguments],
        ) -> None: ...

    @property
    def typed(self) -> bool:
        """Whether the launcher is one of ours, not Azure ML's words taken as they are."""
        return not isinstance(self.launcher, Custom)

    def with_runs(self, runs: Self) -> Self:
        """The other job."""
        return runs

    def job(self) -> Self:
        """The command job that an inline step is: the job itself."""
        return self

    def with_parts(self, change: Callable[[Self], Self]) -> Self:
        """The job changed: it is its own one part."""
        return change(self)
