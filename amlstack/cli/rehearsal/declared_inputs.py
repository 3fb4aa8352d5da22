"""The inputs of a job file: by which name `--input` gives them, where their data lie, and what they are bound to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jobs

_BOUND = re.compile(r"\$\{\{\s*parent\.inputs\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")
_WRITTEN = re.compile(r"\$\{\{\s*parent\.jobs\.(?P<step>[^}\s.]+)\.outputs\.(?P<name>[^}\s]+?)(?:\.path)?\s*\}\}")


@dataclass(frozen=True, slots=True)
class DeclaredInput:
    """An input of a job, a pipeline or a step.

    Attributes:
        step: The step's name; empty for a job or the pipeline itself.
        name: Its name.
        value: As it is declared: data, or a value.
    """

    step: str
    name: str
    value: jobs.Input | object

    @property
    def label(self) -> str:
        """How ``--input`` names it: ``NAME`` or ``STEP.NAME``."""
        return f"{self.step}.{self.name}" if self.step else self.name

    @property
    def where(self) -> str:
        """Its place in the declaration."""
        steps = "".join(f"jobs.{step}." for step in self.step.split(".jobs.")) if self.step else ""
        return f"{steps}inputs.{self.name}.path"

    @property
    def path(self) -> str:
        """Where its data lie as declared; empty for a value and for data that are given elsewhere."""
        return str(getattr(self.value, "path", None) or "")

    @property
    def bound(self) -> str:
        """The pipeline's input that it is; empty for none."""
        text = self.path or self.value
        found = _BOUND.fullmatch(text.strip()) if isinstance(text, str) else None
        return found["name"] if found else ""

    @property
    def written(self) -> str:
        """The output of a step of the same pipeline that it is, ``STEP.OUTPUT``; empty for none."""
        text = self.path or self.value
        found = _WRITTEN.fullmatch(text.strip()) if isinstance(text, str) else None
        if found is None:
            return ""
        outer = f"{self.step.rpartition('.jobs.')[0]}.jobs." if ".jobs." in self.step else ""
        return f"{outer}{found['step']}.{found['name']}"

    @property
    def is_data(self) -> bool:
        """Whether it is data, or bound to some; else it is a value."""
        return hasattr(self.value, "path") or bool(self.bound) or "${{" in str(self.value)


def declared(plan: jobs.Planned) -> Iterator[DeclaredInput]:
    """The inputs of a job, of a sweep's trial, or of a pipeline and its steps."""
    import jobs

    is_pipeline = isinstance(plan, jobs.PipelinePlan)
    if isinstance(plan, jobs.PipelinePlan):
        for name, value in plan.job.inputs.items():
            yield DeclaredInput("", name, value)
    for place, part in plan.parts.items():
        for name, value in part.job.inputs.items():
            yield DeclaredInput(place.removeprefix("jobs.") if is_pipeline else "", name, value)
