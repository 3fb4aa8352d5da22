"""What the input types of the installed azure-native SDK can say, read from its sources without importing it."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_ARGUMENT = re.compile(r"                 (\w+): (.*?)(?: = None)?(?:,|\):)$")
_DESCRIBED = re.compile(r"        :param \S+(?: \S+)*? (\w+): (.*)")
_CLASS = re.compile(r"class (\w+Args):")
_REFERENCE = re.compile(r"'(\w+Args)'")
_TOKEN = re.compile(r'@pulumi\.type_token\("azure-native:(\w+:\w+)"\)')


class Argument(NamedTuple):
    """One argument of an input type: its Python name, its annotation, its documentation."""

    name: str
    annotation: str
    text: str


class Property(NamedTuple):
    """A property that a resource can have, at a path of wire names."""

    path: tuple[str, ...]
    name: str
    text: str


def _classes(source: str) -> dict[str, dict[str, Argument]]:
    """Input types of a module, each with its arguments."""
    found: dict[str, dict[str, Argument]] = {}
    current: dict[str, Argument] = {}
    inside = False
    for line in source.splitlines():
        if line.startswith("class "):
            named = _CLASS.match(line)
            current, inside = (found.setdefault(named[1], {}) if named else {}), False
        elif line.startswith("    def __init__(__self__, *,"):
            inside = True
        elif inside and (argument := _ARGUMENT.match(line)):
            current[argument[1]] = Argument(argument[1], argument[2], "")
        elif inside and (described := _DESCRIBED.match(line)):
            if described[1] in current:
                current[described[1]] = current[described[1]]._replace(text=described[2])
        elif line.startswith("    @_builtins.property"):
            inside = False
    return found


def wire(name: str) -> str:
    """The wire name of an argument."""
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


@lru_cache(maxsize=1)
def resources() -> dict[str, tuple[Property, ...]]:
    """Every resource, ``module:Type``, with each property that its inputs can have at any depth, once."""
    spec = find_spec("pulumi_azure_native")
    assert spec is not None
    assert spec.origin is not None
    found: dict[str, tuple[Property, ...]] = {}
    for module in sorted(Path(spec.origin).parent.iterdir()):
        inputs = module / "_inputs.py"
        types = _classes(inputs.read_text(encoding="utf-8")) if inputs.is_file() else {}
        for path in sorted(module.glob("*.py")) if module.is_dir() else ():
            if path.name.startswith(("_", "get_", "list_")) or path.name == "outputs.py":
                continue
            source = path.read_text(encoding="utf-8")
            if (token := _TOKEN.search(source)) is not None:
                own = next(iter(_classes(source[: token.start()]).values()), {})
                found[token[1]] = tuple(_walk(own, types))
    return found


def _walk(arguments: dict[str, Argument], types: dict[str, dict[str, Argument]]) -> Iterator[Property]:
    """Properties, outer ones first; a type that is used at many places is entered at the first of them."""
    todo: list[tuple[tuple[str, ...], dict[str, Argument]]] = [((), arguments)]
    entered: set[str] = set()
    while todo:
        at, level = todo.pop(0)
        for one in level.values():
            path = (*at, wire(one.name))
            yield Property(path, one.name, one.text)
            for inner in _REFERENCE.findall(one.annotation):
                if inner in types and inner not in entered:
                    entered.add(inner)
                    todo.append((path, types[inner]))
