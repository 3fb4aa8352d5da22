"""Secrets of the stack in variables of its jobs: added where the settings say so, looked up where jobs name them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.base.findings import Finding
from amlstack.base.text import did_you_mean
from jobs.wire.references import secret_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import jobs
    from infra.settings import JobFile, Reading

RULE = "A variable names a secret under `amlstack:secrets`"


def with_secrets(declared: jobs.Declared, job_file: JobFile) -> jobs.Declared:
    """A declaration with the variables that the settings add to each of its jobs, trials and steps."""
    if not job_file.environment_variables:
        return declared
    added = {name: {"secret": value.secret} for name, value in job_file.environment_variables.items()}

    def changed(value: Any) -> Any:
        if hasattr(value, "environment_variables"):
            return value.model_copy(update={"environment_variables": {**value.environment_variables, **added}})
        if value.steps:
            inner = {name: changed(step) for name, step in value.steps.items()}
            return value.with_runs(value.runs.model_copy(update={"jobs": inner}))
        return value

    return declared.with_parts(changed)


def findings(
    declared: jobs.Declared, job_file: JobFile, reading: Reading, index: int, source: jobs.Source
) -> Iterator[Finding]:
    """The findings about the secrets that a declaration names: each one has to be among the stack's.

    Args:
        declared: As the stack means it, `with_secrets`.
        job_file: Its entry in the settings.
        reading: The settings.
        index: Which of `jobs` the entry is.
        source: The job file.
    """
    known = reading.partial.secrets if reading.partial is not None else {}
    if job_file.environment_variables and (place := _without_variables(declared)):
        loc: tuple[str | int, ...] = ("jobs", index, "environment_variables")
        finding = Finding(
            "variable-misplaced",
            "",
            f"The step `{place}` would have the variables too, and tries many hyperparameters",
            "Azure ML takes no variables at such a step",
            "Take the step into a file of its own",
        )
        yield reading.about(loc, finding)
    for where, variable, name in dict.fromkeys(named(declared)):
        if name in known or reading.doubts("secrets"):
            continue
        finding = Finding(
            "secret-unknown",
            f"{where}environment_variables.{variable}",
            f"`{variable}` is to hold the secret `{name}`, which the stack does not have",
            RULE,
            did_you_mean(
                name,
                known,
                otherwise=f"Set it by `pulumi config set --secret --path amlstack:secrets.{name}`",
            ),
        )
        loc = ("jobs", index, "environment_variables", variable, "secret")
        if variable in job_file.environment_variables:
            yield reading.about(loc, finding)
        else:
            yield source.locate(finding)


def _without_variables(declared: jobs.Declared) -> str | None:
    """A step that takes no variables; None for none."""
    return next((name for name, step in declared.steps.items() if step.kind == "sweep"), None)


def named(declared: jobs.Declared) -> Iterator[tuple[str, str, str]]:
    """Each variable that names a secret: the path of the part that has it, its name, the secret's."""
    for place, part in declared.parts.items():
        yield from _of(part, f"{place}." if place else "")


def _of(part: Any, where: str) -> Iterator[tuple[str, str, str]]:
    for variable, value in getattr(part, "environment_variables", {}).items():
        if (name := secret_of(value)) is not None:
            yield where, variable, name
    for name, step in part.steps.items():
        yield from _of(step, f"{where}jobs.{name}.")
