"""Reading YAML that people wrote: the values PyYAML's safe loader gives, where each stands, and findings for the rest.

Built on the C parser's events rather than its composer: the composer recurses in C, so that a file of brackets would
end the process, and it drops duplicate keys. Nesting, size and alias expansion are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml
from yaml.constructor import SafeConstructor

from amlstack.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAX_BYTES = 1_000_000
MAX_SLOW = 100_000
MAX_DEPTH = 60
MAX_VALUES = 100_000
"""Bounds of one file: bytes, characters for the slow parser, levels of nesting, values once aliases are written out."""

_NODE: Any = yaml.ScalarNode
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_RESOLVERS = yaml.SafeLoader.yaml_implicit_resolvers
_CONSTRUCTOR = SafeConstructor()
_TAG = "tag:yaml.org,2002:"
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

Spot = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(slots=True)
class _Box:
    """A value being built: its place, the places of what is in it, and how many values it holds written out."""

    value: Any
    mark: Any
    inner: dict[Any, tuple[Any, _Box]] = field(default_factory=dict)
    weight: int = 1
    open: bool = False
    merge: bool = False


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
    _root: _Box | None

    def spot(self, path: Sequence[Any]) -> Spot | None:
        """Where the value at that path stands, or its nearest parent that is there; a mapping's value by its key."""
        box, mark = self._root, None
        if box is None:
            return None
        mark = box.mark
        for step in path:
            found = box.inner.get(step)
            if found is None:
                break
            mark, box = found
        return mark.line + 1, mark.column + 1


def read(path: Path) -> Text:
    """Read a file; a file that is missing, too large or not UTF-8 is a finding."""
    name = str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            return _refused(
                name,
                "file-too-large",
                f"The file has {path.stat().st_size:,} bytes",
                f"A job file has at most {MAX_BYTES:,}",
                "Keep data out of it and name a path instead.",
            )
        content = path.read_bytes()
    except OSError as error:
        return _refused(
            name,
            "file-unreadable",
            f"The file cannot be read: {error.strerror or error}",
            "A job file must exist and be readable",
            "",
        )
    return parse(content, name)


def parse(content: bytes | str, file: str | None = None) -> Text:
    """Read YAML text, as PyYAML's safe loader understands it.

    Args:
        content: The text; bytes are read as UTF-8, with or without a byte order mark.
        file: Name for messages.
    """
    if len(content) > MAX_BYTES:
        return _refused(
            file,
            "file-too-large",
            f"The text has {len(content):,} bytes",
            f"A job file has at most {MAX_BYTES:,}",
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
    read_ = _built(content, file, yaml.SafeLoader if slow and "\t" in content else _LOADER)
    if slow and any(finding.code == "yaml-syntax" for finding in read_.findings):
        return _built(content, file, yaml.SafeLoader)
    return read_


def _built(content: str, file: str | None, loader_class: Any) -> Text:
    builder = _Builder(file)
    root: _Box | None = None
    try:
        loader = loader_class(content)
        try:
            root = builder.build(loader)
        finally:
            loader.dispose()
    except _RefusalError as refusal:
        return Text(None, (*builder.findings, refusal.finding.at(file)), file, None)
    except yaml.YAMLError as error:
        return Text(None, (*builder.findings, _syntax(error, content).at(file)), file, None)
    return Text(root.value if root else None, tuple(builder.findings), file, root)


class _RefusalError(Exception):
    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


class _Builder:
    """Turns parser events into values, without recursion."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.findings: list[Finding] = []
        self.anchors: dict[str, _Box] = {}

    def build(self, loader: Any) -> _Box | None:
        root: _Box | None = None
        stack: list[tuple[_Box, list[_Box]]] = []  # open collections, with the parts gathered so far
        for event in _events(loader):
            kind = type(event)
            if kind is yaml.ScalarEvent:
                box = self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                if len(stack) >= MAX_DEPTH:
                    raise _refusal(
                        event, "yaml-nesting", f"More than {MAX_DEPTH} levels are nested", "Job files are shallow", ""
                    )
                _check_tag(event, "map" if kind is yaml.MappingStartEvent else "seq")
                box = _Box({} if kind is yaml.MappingStartEvent else [], event.start_mark, open=True)
                self._anchor(event, box)
                stack.append((box, []))
                continue
            elif kind is yaml.AliasEvent:
                box = self._alias(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                box, parts = stack.pop()
                self._close(box, parts)
            elif kind is yaml.DocumentStartEvent and root is not None:
                raise _refusal(
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

    def _scalar(self, event: Any) -> _Box:
        value, tag = event.value, event.tag
        if tag is None or tag == "!":
            tag = _implicit(value) if tag == "!" or event.implicit[0] else f"{_TAG}str"
        if tag in (f"{_TAG}str", f"{_TAG}merge"):
            made = value
        else:
            make = _SCALARS.get(tag)
            if make is None:
                raise _refusal(
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
                raise _refusal(
                    event,
                    "yaml-value",
                    f"`{value[:40]}` is not a valid {kind}",
                    f"YAML reads it as a {kind}",
                    "Put it in quotes if text is meant.",
                ) from error
        box = _Box(made, event.start_mark, merge=tag == f"{_TAG}merge")
        self._anchor(event, box)
        return box

    def _anchor(self, event: Any, box: _Box) -> None:
        if event.anchor in self.anchors:
            raise _refusal(
                event,
                "yaml-alias",
                f"`&{event.anchor}` stands twice",
                "An anchor is defined once",
                "Give one of the two another name.",
            )
        if event.anchor:
            self.anchors[event.anchor] = box

    def _alias(self, event: Any) -> _Box:
        box = self.anchors.get(event.anchor)
        if box is None:
            raise _refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` refers to nothing above it",
                "An alias follows its anchor",
                f"Write `&{event.anchor}` where it is defined.",
            )
        if box.open:
            raise _refusal(
                event,
                "yaml-alias",
                f"`*{event.anchor}` stands inside what it refers to",
                "A job file is finite",
                "Write the part out.",
            )
        return _Box(box.value, event.start_mark, box.inner, box.weight)

    def _close(self, box: _Box, parts: list[_Box]) -> None:
        box.open = False
        for part in parts:
            box.weight += part.weight
        if box.weight > MAX_VALUES:
            raise _refusal_at(
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

    def _pair(self, box: _Box, key: _Box, part: _Box) -> None:
        name = key.value
        if isinstance(name, (dict, list)):
            raise _refusal_at(key.mark, "yaml-key", "A key is itself a mapping or a list", "Keys are plain words", "")
        if name in box.value:
            same = box.value[name] == part.value
            first = box.inner[name][0]
            self.findings.append(
                Finding(
                    "yaml-duplicate-key",
                    str(name),
                    f"`{name}` stands here and in line {first.line + 1}",
                    "A key stands once; readers differ in which one they take",
                    "Remove one of the two.",
                    Level.WARNING if same else Level.ERROR,
                ).at(self.file, key.mark.line + 1, key.mark.column + 1)
            )
        box.value[name] = part.value
        box.inner[name] = (key.mark, part)

    def _merge(self, box: _Box, part: _Box) -> None:
        sources = [part] if isinstance(part.value, dict) else [inner for _, inner in part.inner.values()]
        if not all(isinstance(source.value, dict) for source in sources) or not isinstance(part.value, (dict, list)):
            raise _refusal_at(
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
    while loader.check_event():
        yield loader.get_event()


def _implicit(value: str) -> str:
    for tag, pattern in _RESOLVERS.get(value[:1], ()):
        if pattern.match(value):
            return str(tag)
    return f"{_TAG}str"


def _check_tag(event: Any, kind: str) -> None:
    if event.tag not in (None, "!", f"{_TAG}{kind}"):
        raise _refusal(
            event,
            "yaml-tag",
            f"`{event.tag}` is a tag of one program",
            "A job file holds plain values only",
            "Remove the tag.",
        )


def _merges_nothing(box: _Box) -> _RefusalError:
    rule, remedy = "`<<` is a key that merges mappings", 'Put it in quotes: "<<".'
    return _refusal_at(box.mark, "yaml-merge", "`<<` stands as a value", rule, remedy)


def _refusal(event: Any, code: str, seen: str, rule: str, remedy: str) -> _RefusalError:
    return _refusal_at(event.start_mark, code, seen, rule, remedy)


def _refusal_at(mark: Any, code: str, seen: str, rule: str, remedy: str) -> _RefusalError:
    return _RefusalError(Finding(code, "", seen, rule, remedy, line=mark.line + 1, column=mark.column + 1))


def _refused(file: str | None, code: str, seen: str, rule: str, remedy: str, *, line: int | None = None) -> Text:
    return Text(None, (Finding(code, "", seen, rule, remedy, file=file, line=line),), file, None)


def _syntax(error: yaml.YAMLError, content: str) -> Finding:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error).split("\n")[0]
    lines = content.split("\n")
    written = lines[mark.line] if mark and mark.line < len(lines) else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or (mark and "character '\\t'" in problem):
        return Finding(
            "yaml-tab",
            "",
            "The line is indented with a tab",
            "YAML is indented with spaces",
            "Replace the tab by spaces.",
            line=line,
            column=column,
        )
    if position := getattr(error, "position", None):  # the reader's own errors name an offset instead
        line = content.count("\n", 0, position) + 1
        problem = f"a character that YAML does not allow stands at offset {position}"
    return Finding(
        "yaml-syntax",
        "",
        f"This is not YAML: {problem}",
        "A job file is one YAML mapping",
        "Mind indentation, quotes and colons around this place.",
        line=line,
        column=column,
    )
