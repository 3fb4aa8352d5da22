"""Parser events to values, without recursion."""

from __future__ import annotations

from typing import Any

import yaml

from amlstack.base.findings import Finding, Level
from amlstack.base.yamltext import scalars
from amlstack.base.yamltext.faults import RefusalError, refusal, refusal_at
from amlstack.base.yamltext.scalars import MERGE, STR, TAG, implicit

MAX_DEPTH = 60
MAX_VALUES = 100_000
"""Bounds of one file: levels of nesting, and values once aliases are written out."""


Box = tuple[Any, Any, dict[Any, tuple[Any, Any]], int, bool]
"""A value; its mark; the mark and the box of what is in it, by key or index; how many values it holds written out;
whether it is the key that merges. A plain tuple, as a job file has fifty of them and a check a thousand files."""

_NOTHING: dict[Any, tuple[Any, Any]] = {}  # what is in a scalar; shared, as most values are scalars


class Builder:
    """Turns parser events into values, without recursion."""

    def __init__(self, file: str | None, most: int = MAX_VALUES) -> None:
        self.file, self.most = file, most
        self.findings: list[Finding] = []
        self.anchors: dict[str, Box | None] = {}  # None while what it stands for is open

    def build(self, loader: Any) -> Box | None:
        """The document's root; None for an empty one.

        Most events are scalars without tag and anchor, and most of those are text: they are done in the loop itself.

        Raises:
            RefusalError: At the first fault that leaves nothing to read on.
        """
        roots: list[Box] = []
        parts = roots  # what the innermost open collection has gathered so far
        stack: list[tuple[Any, list[Box]]] = []  # open collections by their first event, with the parts around each
        take = loader.get_event
        while (kind := type(event := take())) is not yaml.StreamEndEvent:
            if kind is yaml.ScalarEvent:
                value = event.value
                # Without a tag it is text by quotes, or because it looks like nothing else.
                if event.tag is None and event.anchor is None and (not event.implicit[0] or implicit(value) == STR):
                    parts.append((value, event.start_mark, _NOTHING, 1, False))
                    continue
                box = self._scalar(event)
                if box[4] and (not stack or type(stack[-1][0]) is yaml.SequenceStartEvent or len(parts) % 2):
                    raise _merges_nothing(box)
                parts.append(box)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(stack) >= MAX_DEPTH:
                    raise refusal(
                        event, "yaml-nesting", f"More than {MAX_DEPTH} levels are nested", "Job files are shallow", ""
                    )
                if event.tag is not None:
                    _check_tag(event, "map" if kind is yaml.MappingStartEvent else "seq")
                self._anchor(event, None)
                stack.append((event, parts))
                parts = []
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                start, around = stack.pop()
                box = self._closed(start, parts)
                if start.anchor:
                    self.anchors[start.anchor] = box
                around.append(box)
                parts = around
            elif kind is yaml.AliasEvent:
                parts.append(self._alias(event))
            elif kind is yaml.DocumentStartEvent and roots:
                raise refusal(
                    event,
                    "yaml-documents",
                    "A second document begins",
                    "A job file holds one document",
                    "Split the file at `---`.",
                )
        return roots[0] if roots else None

    def _scalar(self, event: Any) -> Box:
        value, tag = event.value, event.tag
        if tag is None or tag == "!":
            tag = implicit(value) if event.implicit[0] or tag else STR
        if tag in (STR, MERGE):
            made = value
        else:
            if not scalars.known(tag):
                raise refusal(
                    event,
                    "yaml-tag",
                    f"`{tag}` is a tag of one program",
                    "A job file holds plain values only",
                    "Remove the tag.",
                )
            try:
                made = scalars.made(tag, value)
            except ValueError as error:
                kind = tag.removeprefix(TAG)
                raise refusal(
                    event,
                    "yaml-value",
                    f"`{value[:40]}` is not a valid {kind}",
                    f"YAML reads it as a {kind}",
                    "Put it in quotes if text is meant.",
                ) from error
        box = (made, event.start_mark, _NOTHING, 1, tag == MERGE)
        self._anchor(event, box)
        return box

    def _anchor(self, event: Any, box: Box | None) -> None:
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
        if event.anchor not in self.anchors:
            raise refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` refers to nothing above it",
                "An alias follows its anchor",
                f"Write `&{event.anchor}` where it is defined.",
            )
        box = self.anchors[event.anchor]
        if box is None:
            raise refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` stands inside what it refers to",
                "A job file is finite",
                "Write the part out.",
            )
        value, _, inner, weight, _ = box
        return value, event.start_mark, inner, weight, False

    def _closed(self, start: Any, parts: list[Box]) -> Box:
        weight = 1 + sum([part[3] for part in parts])
        if weight > self.most:
            raise refusal(
                start,
                "yaml-aliases",
                f"Written out, this holds more than {self.most:,} values",
                "Aliases must not multiply a file",
                "Write the parts out, or fewer of them.",
            )
        if type(start) is yaml.SequenceStartEvent:
            inside = {index: (part[1], part) for index, part in enumerate(parts)}
            return [part[0] for part in parts], start.start_mark, inside, weight, False
        values: dict[Any, Any] = {}
        inner: dict[Any, tuple[Any, Any]] = {}
        merges = []
        each = iter(parts)
        for (name, mark, _, _, merge), part in zip(each, each, strict=True):
            if merge:
                merges.append(part)
                continue
            if type(name) is not str and isinstance(name, (dict, list)):
                raise refusal_at(mark, "yaml-key", "A key is itself a mapping or a list", "Keys are plain words", "")
            if name in values:
                self._twice(name, inner[name][0], mark)
            values[name] = part[0]
            inner[name] = (mark, part)
        for part in merges:
            _merge(values, inner, part)
        return values, start.start_mark, inner, weight, False

    def _twice(self, name: Any, first: Any, mark: Any) -> None:
        self.findings.append(
            Finding(
                "yaml-duplicate-key",
                str(name),
                f"`{name}` is given here and in line {first.line + 1}",
                "A key stands once; azure-ai-ml takes the last one, and so is it done here",
                "Remove one of the two.",
                Level.WARNING,
            ).at(self.file, mark.line + 1, mark.column + 1)
        )


def _merge(values: dict[Any, Any], inner: dict[Any, tuple[Any, Any]], part: Box) -> None:
    value, mark, inside, _, _ = part
    sources = [part] if isinstance(value, dict) else [source for _, source in inside.values()]
    if not all(isinstance(source[0], dict) for source in sources) or not isinstance(value, (dict, list)):
        raise refusal_at(
            mark,
            "yaml-merge",
            "`<<` is followed by something else than mappings",
            "`<<` merges mappings into this one",
            "Write `<<: *anchor`.",
        )
    for source in sources:
        for name, given in source[0].items():
            if name not in values:
                values[name] = given
                inner[name] = source[2][name]


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{TAG}{kind}"):
        raise refusal(
            event,
            "yaml-tag",
            f"`{event.tag}` is a tag of one program",
            "A job file holds plain values only",
            "Remove the tag.",
        )


def _merges_nothing(box: Box) -> RefusalError:
    rule, remedy = "`<<` is a key that merges mappings", 'Put it in quotes: "<<".'
    return refusal_at(box[1], "yaml-merge", "`<<` stands as a value", rule, remedy)
