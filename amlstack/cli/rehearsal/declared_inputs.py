"""The inputs of a job file: by which name `--input` gives them, where their data lie, and what they are bound to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import jobs

BELOW = ".jobs."
"""Between the names of a step and of a step in it."""
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
    def around(self) -> str:
        """The step whose pipeline this is a step of; empty for the outermost one."""
        return self.step.rpartition(BELOW)[0]

    @property
    def where(self) -> str:
        """Its place in the declaration."""
        steps = "".join(f"jobs.{step}." for step in self.step.split(BELOW)) if self.step else ""
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
        outer = f"{self.around}{BELOW}" if self.around else ""
        return f"{outer}{found['step']}.{found['name']}"

    @property
    def is_data(self) -> bool:
        """Whether it is data, or bound to some; else it is a value."""
        return hasattr(self.value, "path") or bool(self.bound) or "${{" in str(self.value)


def within(step: str, steps: Collection[str]) -> bool:
    """Whether a step is one of some steps, or a step in one of them."""
    return any(f"{step}{BELOW}".startswith(f"{each}{BELOW}") for each in steps)


def declared(plan: jobs.Planned) -> Iterator[DeclaredInput]:
    """The inputs of a job, of a sweep's trial, or of a pipeline and its steps."""
    import jobs

    if isinstance(plan, jobs.PipelinePlan):
        for name, value in plan.job.inputs.items():
            yield DeclaredInput("", name, value)
        yield from _of_pipelines(plan.job.jobs, "")
    for place, part in plan.parts.items():
        for name, value in part.job.inputs.items():
            yield DeclaredInput(plan.step(place), name, value)


def _of_pipelines(steps: Mapping[str, Any], above: str) -> Iterator[DeclaredInput]:
    """What steps that are pipelines are given: a plan's parts are the commands in them."""
    for name, step in steps.items():
        if step.steps:
            for port, value in step.inputs.items():
                yield DeclaredInput(f"{above}{name}", port, value)
            yield from _of_pipelines(step.steps, f"{above}{name}{BELOW}")
