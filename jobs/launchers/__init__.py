"""How the ranks of a job come to life: one module per launcher, and the union of them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from jobs.launchers.custom import Custom
from jobs.launchers.per_process import PerProcess
from jobs.launchers.torchrun import TorchRun

Launcher = Annotated[Custom | TorchRun | PerProcess, Field(discriminator="type")]

__all__ = ["Custom", "Launcher", "PerProcess", "TorchRun"]
