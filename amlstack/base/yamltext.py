"""Reading YAML that people wrote: the values PyYAML's safe loader gives, where each stands, and findings for the rest.

Built on the C parser's events rather than its composer: the composer recurses in C, so that a file of brackets would
end the process, and it drops duplicate keys. Nesting, size and alias expansion are bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from amlstack.base.files import open_regular
from amlstack.base.findings import Finding, Level, stated

_NODE: Any = yaml.ScalarNode
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()
TAG = "tag:yaml.org,2002:"
STR, MERGE = f"{TAG}str", f"{TAG}merge"
_MAKERS: dict[str, Any] = {
    STR: lambda node: node.value,
    f"{TAG}null": lambda _: None,
    f"{TAG}bool": _CONSTRUCTOR.construct_yaml_bool,
    f"{TAG}int": _CONSTRUCTOR.construct_yaml_int,
    f"{TAG}float": _CONSTRUCTOR.construct_yaml_float,
    f"{TAG}timestamp": _CONSTRUCTOR.construct_yaml_timestamp,
    f"{TAG}binary": _CONSTRUCTOR.construct_yaml_binary,
    f"{TAG}value": lambda node: node.value,
}
_WRONG = (ValueError, OverflowError, LookupError, TypeError, AttributeError, yaml.YAMLError)
"""The errors that PyYAML's constructors raise for a text that only looks like one of theirs."""

MOST_BITS = 1023
"""Of a whole number: a larger one is no float either, and has no decimal digits that Python prints."""


def is_known(tag: str) -> bool:
    """True where scalars of that tag are plain values."""
    return tag in _MAKERS


@lru_cache(maxsize=8192)  # numbers, too, are the same few
def scalar_value(tag: str, text: str) -> Any:
    """The value of a scalar.

    Raises:
        ValueError: It is none of that tag's.
    """
    try:
        value = _MAKERS[tag](_NODE(tag, text))
    except _WRONG as error:
        raise ValueError(text) from error
    if type(value) is int and value.bit_length() > MOST_BITS:
        raise ValueError(text)
    return value


@lru_cache(maxsize=8192)  # of keys and words all job files have the same few
def implicit(text: str) -> str:
    """The tag of a scalar that has neither a tag nor quotes."""
    for tag, pattern in _RESOLVERS.get(text[:1], ()):
        if pattern.match(text):
            return str(tag)
    return STR


class RefusalError(Exception):
    """An error that ends the reading, with its finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def refusal(at: Any, key: str, /, **values: Any) -> RefusalError:
    """The refusal of a parser event, placed where it begins, in the words of `findings.json`."""
    return refusal_at(at.start_mark, key, **values)


def refusal_at(mark: Any, key: str, /, **values: Any) -> RefusalError:
    """The same for a place in the text."""
    return RefusalError(stated(key, "", **values).changed(line=mark.line + 1, column=mark.column + 1))


def syntax(error: yaml.YAMLError, content: str) -> Finding:
    """The parser's own error as a finding; a tab that indents is called by its name."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split("\n")[0]
    lines = content.split("\n")
    written = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or (mark and "character '\\t'" in problem):
        return stated("yaml-tab", "").changed(line=line, column=column)
    if position := getattr(error, "position", None):  # the reader's own errors name an offset instead
        line = content.count("\n", 0, position) + 1
        problem = f"a character that YAML does not allow stands at offset {position}"
    return stated("yaml-syntax", "", problem=problem).changed(line=line, column=column)


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
                    raise refusal(event, "yaml-nesting", MAX_DEPTH=MAX_DEPTH)
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
                raise refusal(event, "yaml-documents")
        return roots[0] if roots else None

    def _scalar(self, event: Any) -> Box:
        value, tag = event.value, event.tag
        if tag is None or tag == "!":
            tag = implicit(value) if event.implicit[0] or tag else STR
        if tag in (STR, MERGE):
            made = value
        else:
            if not is_known(tag):
                raise refusal(event, "yaml-tag", tag=tag)
            try:
                made = scalar_value(tag, value)
            except ValueError as error:
                kind = tag.removeprefix(TAG)
                raise refusal(event, "yaml-value", value=value[:40], kind=kind) from error
        box = (made, event.start_mark, _NOTHING, 1, tag == MERGE)
        self._anchor(event, box)
        return box

    def _anchor(self, event: Any, box: Box | None) -> None:
        if event.anchor in self.anchors:
            raise refusal(event, "yaml-alias", event=event)
        if event.anchor:
            self.anchors[event.anchor] = box

    def _alias(self, event: Any) -> Box:
        if event.anchor not in self.anchors:
            raise refusal(event, "yaml-alias/alias", event=event)
        box = self.anchors[event.anchor]
        if box is None:
            raise refusal(event, "yaml-alias/inside", event=event)
        value, _, inner, weight, _ = box
        return value, event.start_mark, inner, weight, False

    def _closed(self, start: Any, parts: list[Box]) -> Box:
        weight = 1 + sum([part[3] for part in parts])
        if weight > self.most:
            raise refusal(start, "yaml-aliases", most=self.most)
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
                raise refusal_at(mark, "yaml-key")
            if name in values:
                self._twice(name, inner[name][0], mark)
            values[name] = part[0]
            inner[name] = (mark, part)
        for part in merges:
            _merge(values, inner, part)
        return values, start.start_mark, inner, weight, False

    def _twice(self, name: Any, first: Any, mark: Any) -> None:
        self.findings.append(
            stated("yaml-duplicate-key", str(name), Level.WARNING, name=name, line=first.line + 1).at(
                self.file, mark.line + 1, mark.column + 1
            )
        )


def _merge(values: dict[Any, Any], inner: dict[Any, tuple[Any, Any]], part: Box) -> None:
    value, mark, inside, _, _ = part
    sources = [part] if isinstance(value, dict) else [source for _, source in inside.values()]
    if not all(isinstance(source[0], dict) for source in sources) or not isinstance(value, (dict, list)):
        raise refusal_at(mark, "yaml-merge/merge")
    for source in sources:
        for name, given in source[0].items():
            if name not in values:
                values[name] = given
                inner[name] = source[2][name]


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{TAG}{kind}"):
        raise refusal(event, "yaml-tag", tag=event.tag)


def _merges_nothing(box: Box) -> RefusalError:
    return refusal_at(box[1], "yaml-merge")


MAX_BYTES = 1_000_000
MAX_SLOW = 100_000
"""Bounds of one file: bytes, and characters for the slow parser."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Spot = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class Text:
    """A YAML file that was read.

    Attributes:
        data: Its value; None where it could not be read.
        findings: What is wrong with it as YAML.
        file: Name for messages.
    """

    data: Any
    findings: tuple[Finding, ...]
    file: str | None
    _root: Box | None

    def spot(self, path: Sequence[Any]) -> Spot | None:
        """The position of the value at that path, or of its nearest parent; a mapping's value by its key."""
        box = self._root
        if box is None:
            return None
        mark = box[1]
        for step in path:
            found = box[2].get(step)
            if found is None:
                break
            mark, box = found
        return mark.line + 1, mark.column + 1


def unfilled(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    """The texts with a value that `amlstack migrate` left open (``<fill:…>``), each with its path."""
    if isinstance(value, str) and "<fill:" in value:
        yield path, value
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from unfilled(inner, (*path, key))


def read(path: Path) -> Text:
    """Read a file; a file that is missing, too large or not UTF-8 is a finding."""
    name = str(path)
    try:
        with open_regular(name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                return _refused(
                    name,
                    "file-too-large",
                    f"The file has {size:,} bytes",
                    f"A job file has at most {MAX_BYTES:,}",
                    "Keep data out of it and name a path instead.",
                )
            content = file.read()
    except OSError as error:
        return _refused(
            name,
            "file-unreadable",
            f"The file cannot be read: {error.strerror or error}",
            "A job file must exist and be readable",
            "",
        )
    return parse(content, name)


def parse(content: bytes | str, file: str | None = None, *, room: int = 1) -> Text:
    """Read YAML text, as PyYAML's safe loader understands it.

    Args:
        content: The text; bytes are read as UTF-8, with or without a byte order mark.
        file: Name for messages.
        room: How many times the bounds of a job file it may have; settings list thousands of those.
    """
    if len(content) > MAX_BYTES * room:
        return _refused(
            file,
            "file-too-large",
            f"The text has {len(content):,} bytes",
            f"A job file has at most {MAX_BYTES * room:,}",
            "Keep data out of it and name a path instead.",
        )
    if isinstance(content, bytes):
        try:
            content = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = error.object.count(b"\n", 0, error.start) + 1
            return _refused(
                file,
                "file-encoding",
                f"Byte {error.start} is not UTF-8",
                "Job files are UTF-8 text",
                "Save the file as UTF-8.",
                line=line,
            )
    # The two parsers differ: about tabs the C one is laxer, about `{a:}` stricter than PyYAML's own, which azure-ai-ml
    # uses. Where they may differ, the slow one has the word.
    slow = len(content) < MAX_SLOW
    read_ = _built(content, file, yaml.SafeLoader if slow and "\t" in content else _LOADER, room)
    if slow and any(finding.code == "yaml-syntax" for finding in read_.findings):
        return _built(content, file, yaml.SafeLoader, room)
    return read_


def _built(content: str, file: str | None, loader_class: Any, room: int) -> Text:
    builder = Builder(file, MAX_VALUES * room)
    root: Box | None = None
    try:
        loader = loader_class(content)
        try:
            root = builder.build(loader)
        finally:
            loader.dispose()
    except RefusalError as refusal:
        return Text(None, (*builder.findings, refusal.finding.at(file)), file, None)
    except yaml.YAMLError as error:
        return Text(None, (*builder.findings, syntax(error, content).at(file)), file, None)
    return Text(root[0] if root else None, tuple(builder.findings), file, root)


def _refused(file: str | None, code: str, seen: str, rule: str, remedy: str, *, line: int | None = None) -> Text:
    return Text(None, (Finding(code, "", seen, rule, remedy, file=file, line=line),), file, None)
