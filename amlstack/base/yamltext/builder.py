"""Parser events to values, without recursion."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from yaml.constructor import SafeConstructor

from amlstack.base.findings import Finding, Level
from amlstack.base.yamltext.faults import RefusalError, refusal, refusal_at

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 60
MAX_VALUES = 100_000
"""Bounds of one file: levels of nesting, and values once aliases are written out."""

_NODE: Any = yaml.ScalarNode
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()
_TAG = "tag:yaml.org,2002:"
_STR, _MERGE = f"{_TAG}str", f"{_TAG}merge"
_SCALARS: dict[str, Any] = {
    f"{_TAG}str": lambda node: node.value,
    f"{_TAG}null": lambda _: None,
    f"{_TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{_TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{_TAG}float": _CONSTRUCTOR.construct_yaml_float,
    f"{_TAG}timestamp": _CONSTRUCTOR.construct_yaml_timestamp,
    f"{_TAG}binary": _CONSTRUCTOR.construct_yaml_binary,
    f"{_TAG}value": lambda node: node.value,
}


@dataclass(slots=True)
class Box:
    """A value being built: its place, the places of what is in it, and how many values it holds written out."""

    value: Any
    mark: Any
    inner: dict[Any, tuple[Any, Box]] = field(default_factory=dict)
    weight: int = 1
    open: bool = False
    merge: bool = False


_NOTHING: dict[Any, tuple[Any, Box]] = {}  # what is in a scalar; shared, as most values are scalars


class Builder:
    """Turns parser events into values, without recursion."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.anchors: dict[str, Box] = {}

    def build(self, loader: Any) -> Box | None:
        """The document's root; None for an empty one.

        Raises:
            RefusalError: At the first fault that leaves nothing to read on.
        """
        root: Box | None = None
        stack: list[tuple[Box, list[Box]]] = []  # open collections, with the parts gathered so far
        for event in _events(loader):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                box = self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(stack) >= MAX_DEPTH:
                    raise refusal(
                        event, "yaml-nesting", f"More than {MAX_DEPTH} levels are nested", "Job files are shallow", ""
                    )
                _check_tag(event, "map" if kind is yaml.MappingStartEvent else "seq")
                box = Box({} if kind is yaml.MappingStartEvent else [], event.start_mark, open=True)
                self._anchor(event, box)
                stack.append((box, []))
                continue
            elif kind is yaml.AliasEvent:
                box = self._alias(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                box, parts = stack.pop()
                self._close(box, parts)
            elif kind is yaml.DocumentStartEvent and root is not None:
                raise refusal(
                    event,
                    "yaml-documents",
                    "A second document begins",
                    "A job file holds one document",
                    "Split the file at `---`.",
                )
            else:
                continue
            if stack:
                if box.merge and (isinstance(stack[-1][0].value, list) or len(stack[-1][1]) % 2):
                    raise _merges_nothing(box)
                stack[-1][1].append(box)
            elif box.merge:
                raise _merges_nothing(box)
            else:
                root = box
        return root

    def _scalar(self, event: Any) -> Box:
        value, tag = event.value, event.tag
        if tag is None or tag == "!":
            tag = _implicit(value) if event.implicit[0] or tag else _STR
        if tag in (_STR, _MERGE):
            made = value
        else:
            make = _SCALARS.get(tag)
            if make is None:
                raise refusal(
                    event,
                    "yaml-tag",
                    f"`{tag}` is a tag of one program",
                    "A job file holds plain values only",
                    "Remove the tag.",
                )
            try:
                made = make(_NODE(tag, value, event.start_mark, event.end_mark))
            except (ValueError, OverflowError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
                kind = tag.removeprefix(_TAG)
                raise refusal(
                    event,
                    "yaml-value",
                    f"`{value[:40]}` is not a valid {kind}",
                    f"YAML reads it as a {kind}",
                    "Put it in quotes if text is meant.",
                ) from error
        box = Box(made, event.start_mark, _NOTHING, merge=tag == _MERGE)
        if event.anchor:
            self._anchor(event, box)
        return box

    def _anchor(self, event: Any, box: Box) -> None:
        if event.anchor in self.anchors:
            raise refusal(
                event,
                "yaml-alias",
                f"`&{event.anchor}` stands twice",
                "An anchor is defined once",
                "Give one of the two another name.",
            )
        if event.anchor:
            self.anchors[event.anchor] = box

    def _alias(self, event: Any) -> Box:
        box = self.anchors.get(event.anchor)
        if box is None:
            raise refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` refers to nothing above it",
                "An alias follows its anchor",
                f"Write `&{event.anchor}` where it is defined.",
            )
        if box.open:
            raise refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` stands inside what it refers to",
                "A job file is finite",
                "Write the part out.",
            )
        return Box(box.value, event.start_mark, box.inner, box.weight)

    def _close(self, box: Box, parts: list[Box]) -> None:
        box.open = False
        for part in parts:
            box.weight += part.weight
        if box.weight > MAX_VALUES:
            raise refusal_at(
                box.mark,
                "yaml-aliases",
                f"Written out, this holds more than {MAX_VALUES:,} values",
                "Aliases must not multiply a file",
                "Write the parts out, or fewer of them.",
            )
        if isinstance(box.value, list):
            for index, part in enumerate(parts):
                box.value.append(part.value)
                box.inner[index] = (part.mark, part)
            return
        merges = []
        for key, part in zip(parts[::2], parts[1::2], strict=True):
            if key.merge:
                merges.append(part)
            else:
                self._pair(box, key, part)
        for part in merges:
            self._merge(box, part)

    def _pair(self, box: Box, key: Box, part: Box) -> None:
        name = key.value
        if isinstance(name, (dict, list)):
            raise refusal_at(key.mark, "yaml-key", "A key is itself a mapping or a list", "Keys are plain words", "")
        if name in box.value:
            first = box.inner[name][0]
            self.findings.append(
                Finding(
                    "yaml-duplicate-key",
                    str(name),
                    f"`{name}` is given here and in line {first.line + 1}",
                    "A key stands once; azure-ai-ml takes the last one, and so is it done here",
                    "Remove one of the two.",
                    Level.WARNING,
                ).at(self.file, key.mark.line + 1, key.mark.column + 1)
            )
        box.value[name] = part.value
        box.inner[name] = (key.mark, part)

    def _merge(self, box: Box, part: Box) -> None:
        sources = [part] if isinstance(part.value, dict) else [inner for _, inner in part.inner.values()]
        if not all(isinstance(source.value, dict) for source in sources) or not isinstance(part.value, (dict, list)):
            raise refusal_at(
                part.mark,
                "yaml-merge",
                "`<<` is followed by something else than mappings",
                "`<<` merges mappings into this one",
                "Write `<<: *anchor`.",
            )
        for source in sources:
            for name, value in source.value.items():
                if name not in box.value:
                    box.value[name] = value
                    box.inner[name] = source.inner[name]


def _events(loader: Any) -> Iterator[Any]:
    # Asking first whether there is one would cost as much again.
    take = loader.get_event
    while type(event := take()) is not yaml.StreamEndEvent:
        yield event


def _implicit(value: str) -> str:
    for tag, pattern in _RESOLVERS.get(value[:1], ()):
        if pattern.match(value):
            return str(tag)
    return _STR


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{_TAG}{kind}"):
        raise refusal(
            event,
            "yaml-tag",
            f"`{event.tag}` is a tag of one program",
            "A job file holds plain values only",
            "Remove the tag.",
        )


def _merges_nothing(box: Box) -> RefusalError:
    rule, remedy = "`<<` is a key that merges mappings", 'Put it in quotes: "<<".'
    return refusal_at(box.mark, "yaml-merge", "`<<` stands as a value", rule, remedy)
