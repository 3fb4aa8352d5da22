"""The image that an environment's Dockerfile starts from, held against the nodes: what the body does not show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from amlstack.catalog import clock, images
from jobs.model.values import Environment
from policies.checks.job_environment import check_image_runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.model.job import Job
    from jobs.planning.target import Target

_LINE = re.compile(r"^\s*(?P<word>ARG|FROM|RUN)\s+(?P<rest>.*)$", re.IGNORECASE)
_FROM = re.compile(r"(?:--\S+\s+)*(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?\s*(?:#.*)?$", re.IGNORECASE)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
_MAY_BRING_TORCH = re.compile(
    r"torch|requirement|\s-[re]\b|\.(?:txt|ya?ml|toml|sh|whl|lock)\b|\binstall\s+\.|\b(?:conda|mamba)\b|\bsync\b"
)
"""Commands after which another PyTorch may run than the image's: they name it, or a file or project that may."""


class Start(NamedTuple):
    """What a Dockerfile's last stage starts from, and whether a command of it may bring another PyTorch."""

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


def check(job: Job, target: Target, base: Path) -> Iterator[Finding]:
    """Whether the nodes can run what the Dockerfile of a job's own environment starts from.

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
