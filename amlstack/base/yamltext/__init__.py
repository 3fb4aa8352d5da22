"""Reading YAML that people wrote: the values PyYAML's safe loader gives, where each stands, and findings for the rest.

Built on the C parser's events rather than its composer: the composer recurses in C, so that a file of brackets would
end the process, and it drops duplicate keys. Nesting, size and alias expansion are bounded.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.files import open_regular
from amlstack.base.findings import Finding
from amlstack.base.yamltext.builder import MAX_VALUES, Box, Builder, RefusalError, syntax

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
