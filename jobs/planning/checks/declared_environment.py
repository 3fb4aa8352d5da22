"""The form of a job's environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.catalog import environments
from jobs.model.values import Environment
from jobs.planning.checks.names import PLACEHOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from jobs.model.job import Job

_CURATED = re.compile(
    r"(?:azureml://registries/azureml/environments/|azureml:(?=azureml-))(?P<name>[^/@:]+)", re.IGNORECASE
)


def check_environment(job: Job, known: Collection[str] = ()) -> Iterator[Finding]:
    """The form of the environment."""
    value = job.environment
    if isinstance(value, Environment):
        if (value.image is None) == (value.build is None):
            yield Finding(
                "environment-incomplete" if value.image is None else "environment-twice",
                "environment",
                "The environment has neither an image nor a build context"
                if value.image is None
                else "The environment has both an image and a build context",
                "An inline environment is one of the two",
                "Write `image:` or `build: {path: …}`.",
            )
        return
    if PLACEHOLDER.search(value) or value in known or environments.get(value):
        return
    if curated := _CURATED.match(value):
        yield from _of_the_catalogue(curated["name"])
    if value.startswith("azureml:"):
        return
    yield Finding(
        "environment-unknown",
        "environment",
        f"`{value}` is no curated environment",
        "An environment is a curated name, `azureml:NAME:VERSION`, `azureml:NAME@LABEL`, `azureml://registries/…`, or "
        "an image",
        did_you_mean(value, (*known, *(item.name for item in environments.all_environments()))),
    )


def _of_the_catalogue(name: str) -> Iterator[Finding]:
    """A curated name that is close to one of the catalogue and is none: a warning, since Azure adds some each month."""
    near = () if environments.get(name) else environments.near(name, 1)
    for close in filter(None, map(environments.get, near)):
        yield Finding(
            "environment-unknown",
            "environment",
            f"`{name}` is no curated environment of the catalogue of {close.checked:%B %Y}",
            "The registry `azureml` has environments of certain names, and Azure adds some from time to time",
            f"Did you mean `{close.name}`?",
            Level.WARNING,
        )
