"""A stack file as text: the values under ``config`` and where each of them stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Loc = tuple[str | int, ...]
"""A path in the settings: ``("clusters", 0, "nodes", "max")``."""

NAMESPACE = "amlstack"


class StackFile:
    """One ``Pulumi.<stack>.yaml``.

    Attributes:
        name: The file's name, as findings show it.
        values: The settings of our namespace, its prefix taken off; values as YAML reads them.
    """

    def __init__(self, name: str, values: dict[str, Any], marks: dict[Loc, tuple[int, int]]) -> None:
        self.name = name
        self.values = values
        self._marks = marks

    def locate(self, loc: Loc) -> tuple[int, int] | tuple[None, None]:
        """1-based line and column of a setting, or of the closest one around it that is written down."""
        while loc and loc not in self._marks:
            loc = loc[:-1]
        return self._marks.get(loc, (None, None))


def read(path: Path) -> tuple[StackFile | None, tuple[Finding, ...]]:
    """Read a stack file.

    Returns:
        The file, or None and one finding when it cannot be read.
    """
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError) as error:
        return None, (_unreadable(path, str(getattr(error, "strerror", None) or error)),)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        return None, (_unreadable(path, error.problem or "not YAML").at(None, *place),)
    except (yaml.YAMLError, RecursionError) as error:  # a character that YAML has no place for; brackets without end
        return None, (_unreadable(path, str(error).partition("\n")[0]),)
    config = _child(root, "config")
    if config is not None and not isinstance(config, yaml.MappingNode):
        mark = config.start_mark
        found = Finding("stack-file", "config", "`config` holds no keys", "`config` maps keys to values")
        return None, (found.at(path.name, mark.line + 1, mark.column + 1),)
    try:
        values, marks = _settings(config)
    except yaml.MarkedYAMLError as error:  # a key that no mapping can hold
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (None, None)
        return None, (_unreadable(path, error.problem or "not YAML").at(None, *place),)
    except (ValueError, RecursionError) as error:  # a date that is none; a value that holds itself
        return None, (_unreadable(path, str(error)),)
    return StackFile(path.name, values, marks), ()


def _settings(config: yaml.Node | None) -> tuple[dict[str, Any], dict[Loc, tuple[int, int]]]:
    values: dict[str, Any] = {}
    marks: dict[Loc, tuple[int, int]] = {}
    for key, node in _entries(config):
        # Pulumi also reads the older spelling, `amlstack:config:key`.
        namespace, _, name = str(key.value).partition(":")
        name = name.removeprefix("config:")
        if namespace == NAMESPACE and name:
            values[name] = _value(node)
            marks[name,] = _place(key)
            _mark(node, (name,), marks, set())
    return values, marks


def _unreadable(path: Path, why: str) -> Finding:
    return Finding(
        "stack-file", "", f"the stack file cannot be read: {why}", "it is a YAML file in UTF-8", file=path.name
    )


def _entries(node: yaml.Node | None) -> Iterator[tuple[yaml.ScalarNode, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        yield from ((key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode))


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    return next((value for key, value in _entries(node) if key.value == name), None)


def _value(node: yaml.Node) -> Any:
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _mark(node: yaml.Node, loc: Loc, marks: dict[Loc, tuple[int, int]], seen: set[int]) -> None:
    if id(node) in seen:  # an alias: what it stands for has its places already
        return
    seen.add(id(node))
    inside: list[tuple[str | int, yaml.Node, yaml.Node]] = []
    if isinstance(node, yaml.SequenceNode):
        inside = [(index, item, item) for index, item in enumerate(node.value)]
    else:
        inside = [(str(key.value), key, value) for key, value in _entries(node)]
    for part, at, value in inside:
        marks[*loc, part] = _place(at)
        _mark(value, (*loc, part), marks, seen)


def _place(node: yaml.Node) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1
