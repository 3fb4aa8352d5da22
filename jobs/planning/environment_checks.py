"""Checks of a job's environment: its form, its name, and the image that its Dockerfile starts from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.findings import Finding, Level
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock, environments, images
from jobs.planning.job_checks import PLACEHOLDER
from jobs.values import Environment
from policies.checks.job_environment import check_image_runs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from jobs.model.job import Job
    from jobs.planning.plans import Target

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


_LINE = re.compile(r"^\s*(?P<word>ARG|FROM|RUN)\s+(?P<rest>.*)$", re.IGNORECASE)
_FROM = re.compile(r"(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?\s*(?:#.*)?$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_MAY_BRING_TORCH = re.compile(
    r"torch|requirement|\s-[re]\b|\.(?:txt|ya?ml|toml|sh|whl|lock)\b|\binstall\s+\.|\b(?:conda|mamba)\b|\bsync\b"
)
"""Commands after which another PyTorch may run than the image's: they name it, or a file or project that may."""


class Start(NamedTuple):
    """The image of a Dockerfile's last stage, and whether a command of it may bring another PyTorch."""

    image: str
    installs: bool


def start(text: str) -> Start | None:
    """Read a Dockerfile; None where it has no FROM, or one whose argument has no value in it."""
    given: dict[str, str] = {}
    stages: dict[str, Start] = {}
    last: Start | None = None
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        word, rest = found["word"].upper(), found["rest"].strip()
        if word == "ARG":
            name, equals, value = rest.partition("=")
            if equals and last is None:  # after the first FROM an argument is the stage's
                given[name.strip()] = value.strip().strip("\"'")
        elif word == "FROM" and (stage := _FROM.match(_filled(rest, given))) is not None:
            earlier = stages.get(stage["image"].lower())
            last = earlier or Start(stage["image"], installs=False)
            if stage["stage"]:
                stages[stage["stage"].lower()] = last
        elif word == "RUN" and last is not None and _MAY_BRING_TORCH.search(rest.lower()):
            stages |= {name: Start(one.image, installs=True) for name, one in stages.items() if one is last}
            last = Start(last.image, installs=True)
    return None if last is None or "$" in last.image else last


def check_build_context(job: Job, target: Target, base: Path) -> Iterator[Finding]:
    """Judges whether the nodes can run what the Dockerfile of a job's own environment starts from.

    Args:
        job: As declared.
        target: Where it runs; nothing is judged where its size is not known.
        base: Folder that relative paths start from.
    """
    environment, size = job.environment, target.facts
    if not isinstance(environment, Environment) or environment.build is None or size is None:
        return
    build = environment.build
    try:
        file = base / str(build.path) / (build.dockerfile_path or "Dockerfile")
        text = file.read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):  # a folder that is not there is a finding elsewhere
        return
    begins = start(text)
    image = None if begins is None else images.named(begins.image)
    if begins is None or image is None or size.retired_on(clock.today()):
        return
    yield from check_image_runs(
        image.without_framework() if begins.installs else image,
        size,
        command=job.command,
        variables=job.environment_variables,
        where="environment",
    )


def _filled(text: str, given: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda each: given.get(each[1] or each[3]) or each[2] or each[0], text)
