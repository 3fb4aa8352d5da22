"""The component of a step: registered, in a file of its own, or inline."""

from __future__ import annotations

import os
import posixpath
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import is_file, names_in
from jobs.azureml.cursor import Bad, Cursor, source_of
from jobs.azureml.read import command
from jobs.azureml.read.component import read
from jobs.model.passthrough import PassthroughComponent
from jobs.model.values import Code, Environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.model.component import Component
    from jobs.model.job import Job

    Movable = TypeVar("Movable", Component, PassthroughComponent, Job)


MAX_DEPTH: Final = 16
"""How deep pipelines may lie in pipelines."""
MAX_FILES: Final = 200
"""How often one step may have component files read, those in its own component included."""


@dataclass
class _Inside:
    """The component files that are being read: each names the next one.

    Attributes:
        chain: Their paths, resolved, outermost first.
        read: How many were read since the outermost.
    """

    chain: list[Path] = field(default_factory=list)
    read: int = 0

    def refused(self, cursor: Cursor, path: Path, written: str) -> Any:
        """What a step gets whose component cannot be read for where it stands; None for one that can."""
        if path in self.chain:
            names = " → ".join(each.name for each in (*self.chain[self.chain.index(path) :], path))
            return cursor.bad(
                "component-circle",
                f"`{written}` is a part of itself ({names})",
                "A pipeline component holds other components, never itself",
                "Name another component.",
            )
        self.read += 1
        if self.read == MAX_FILES + 1:
            return cursor.bad(
                "component-depth",
                f"The components of this step lie in each other more than {MAX_FILES} times",
                f"A step has at most {MAX_FILES} components in it",
                "Register the inner ones and name them with `azureml:`.",
            )
        if self.read > MAX_FILES:
            return Bad  # reported once
        if len(self.chain) >= MAX_DEPTH:
            return cursor.bad(
                "component-depth",
                f"`{written}` lies {MAX_DEPTH + 1} components deep",
                f"Components lie in each other {MAX_DEPTH} deep at most",
                "Register the inner ones and name them with `azureml:`.",
            )
        return None


_INSIDE: ContextVar[_Inside | None] = ContextVar("_INSIDE", default=None)


def moved(component: Movable, folder: Path, base: Path) -> Movable:
    """A component, or a step of a pipeline that is one, with its paths as seen from another folder.

    Args:
        component: As its file has it.
        folder: That file's folder.
        base: Where its paths shall start.
    """
    there = os.path.relpath(folder, base)
    update: dict[str, Any] = {}

    def seen(path: str) -> str:
        return path if posixpath.isabs(path) else posixpath.normpath(posixpath.join(there, path))

    if component.code is not None and component.code.local:
        includes = tuple(map(seen, getattr(component, "additional_includes", ())))
        update["code"] = Code(
            path=seen(component.code.path), includes=includes or tuple(map(seen, component.code.includes))
        )
    environment = component.environment
    if isinstance(environment, Environment):
        inner: dict[str, Any] = {}
        if isinstance(environment.conda_file, str):
            inner["conda_file"] = seen(environment.conda_file)
        if environment.build is not None and "://" not in environment.build.path:
            inner["build"] = environment.build.model_copy(update={"path": seen(environment.build.path)})
        update["environment"] = environment.model_copy(update=inner)
    if isinstance(component, PassthroughComponent) and component.jobs:
        update["jobs"] = {name: _step(step, folder, base) for name, step in component.jobs.items()}
    return component.model_copy(update=update)


def _step(step: Any, folder: Path, base: Path) -> Any:
    """A step of a pipeline component, moved with it."""
    return step if isinstance(step.runs, str | None) else step.with_runs(moved(step.runs, folder, base))


def reference(
    cursor: Cursor, reader: Callable[[Cursor], Any] = read, path_of: Callable[[str], tuple[str, ...]] = command.path_of
) -> Any:
    """A component of a step: registered, in a file of its own, or inline.

    Args:
        cursor: What names it.
        reader: Reads a component of the step's kind.
        path_of: From a path in such a component to the keys in its file.
    """
    value = cursor.value
    if isinstance(value, dict):
        component = reader(cursor)
        return Bad if component is None else component
    if not isinstance(value, str):
        return cursor.wrong("a component: `azureml:NAME:VERSION`, a file, or a mapping")
    if value.startswith("azureml:"):
        return value
    path = cursor.base / value.removeprefix("file:")
    if not is_file(path):
        folder = path.parent
        names = names_in(folder)
        return cursor.bad(
            "component-missing",
            f"`{value}` is not there",
            "A step names a component's file, or a registered component with `azureml:`",
            did_you_mean(path.name, names, otherwise=f"Create {path}."),
        )
    return from_file(cursor, path, value, reader, path_of)


def from_file(
    cursor: Cursor, path: Path, written: str, reader: Callable[[Cursor], Any], path_of: Callable[[str], tuple[str, ...]]
) -> Any:
    """The component of a file; its faults are placed in that file."""
    inside = _INSIDE.get() or _Inside()
    if (refused := inside.refused(cursor, path.resolve(), written)) is not None:
        return refused
    token = _INSIDE.set(inside)
    inside.chain.append(path.resolve())
    try:
        return _from_file(cursor, path, written, reader, path_of)
    finally:
        inside.chain.pop()
        _INSIDE.reset(token)


def _from_file(
    cursor: Cursor, path: Path, written: str, reader: Callable[[Cursor], Any], path_of: Callable[[str], tuple[str, ...]]
) -> Any:
    from amlstack.base import yamltext  # noqa: PLC0415 - only where a pipeline names files
    from jobs.azureml.read import distributed_component  # noqa: PLC0415

    content = yamltext.read(path)
    found: list[tuple[Any, Finding]] = [((), finding) for finding in content.findings]
    component: Any = None
    if content.data is not None or not content.findings:
        inner = Cursor(content.data, (), found, path.parent)
        of_file = (
            distributed_component.read if reader is read and distributed_component.is_one(content.data) else reader
        )
        component = of_file(inner)
    for place, finding in found:
        line, column = content.spot(place) or (None, None)
        cursor.findings.append((cursor.path, finding.at(str(path), line, column)))
    if component is None:
        return Bad
    component = moved(component, path.parent, cursor.base)
    # `file:` makes it a part of the pipeline's file in azure-ai-ml's eyes.
    return component.model_copy(
        update={"inline": written.startswith("file:"), "source": source_of(content, cursor.base, path_of)}
    )
