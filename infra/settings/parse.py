"""Settings from the engine's configuration or from a stack file, with every finding that they give."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from amlstack.findings import Finding
from infra.settings import problems
from infra.settings.model import CuratedEnvironment, Settings
from infra.settings.stackfile import NAMESPACE, StackFile, read

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from infra.settings.stackfile import Loc


def read_stack_file(path: Path) -> tuple[Settings | None, tuple[Finding, ...]]:
    """The settings of a stack, read from its file without the engine.

    Returns:
        The settings, or None when they are not usable; and all findings, each with its line.
    """
    file, found = read(path)
    if file is None:
        return None, found
    return parse({key: _as_engine(value) for key, value in file.values.items()}, file)


def from_engine(config: Mapping[str, str], file: StackFile | None) -> tuple[Settings | None, tuple[Finding, ...]]:
    """The settings as the engine hands them to the program: every value a string, structured ones JSON.

    Args:
        config: The whole configuration, ``namespace:key`` → value; other namespaces are left alone.
        file: The stack file, to say where things stand; the engine's values count even where it differs.
    """
    values = {}
    for key, text in config.items():
        namespace, _, name = key.partition(":")
        if namespace == NAMESPACE:
            values[name] = _decoded(text)
    return parse(values, file)


def parse(values: Mapping[str, Any], file: StackFile | None = None) -> tuple[Settings | None, tuple[Finding, ...]]:
    """Validate settings.

    Returns:
        The settings, or None when an error makes them unusable; and all findings, with their places where ``file``
        knows them.
    """
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        found = [problems.describe(each) for each in error.errors(include_url=False)]
        return None, tuple(located(file, loc, finding) for loc, finding in found)
    twice = tuple(located(file, loc, finding) for loc, finding in _duplicates(settings))
    return (None if twice else settings), twice


def located(file: StackFile | None, loc: Loc, finding: Finding) -> Finding:
    """The finding with the place of a setting in the stack file, when there is one."""
    if file is None:
        return finding
    return finding.at(file.name, *file.locate(loc))


def _decoded(text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _as_engine(value: Any) -> Any:
    """A top-level scalar as the engine would hand it over: a string."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _duplicates(settings: Settings) -> list[tuple[Loc, Finding]]:
    # Azure compares the names of clusters and environments without letter case.
    named: dict[str, list[str]] = {
        "clusters": [cluster.name for cluster in settings.clusters],
        "environments": [
            environment.curated if isinstance(environment, CuratedEnvironment) else environment.name
            for environment in settings.environments
        ],
        "jobs": [job.file for job in settings.jobs],
    }
    found: list[tuple[Loc, Finding]] = []
    for key, names in named.items():
        seen: dict[str, int] = {}
        for index, name in enumerate(names):
            folded = name if key == "jobs" else name.lower()
            first = seen.setdefault(folded, index)
            if first != index:
                what = f"`{name}` stands here and in {problems.dotted((key, first))}"
                rule = f"each of the {key} is listed once"
                found.append(((key, index), Finding("setting-twice", problems.dotted((key, index)), what, rule)))
    return found
