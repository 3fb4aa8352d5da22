"""Mistakes in a job file: each of a few kinds of damage, at every place of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import yaml

from tests.support import yaml_files

if TYPE_CHECKING:
    from collections.abc import Iterator

WRONG: tuple[Any, ...] = (None, True, 3, 2.5, "x", "", "2", [], ["a"], {}, {"a": 1})
"""Values of other kinds than the one that stands there."""


class Mutation(NamedTuple):
    """A damaged file: what was done where, and its bytes or the value that they hold."""

    name: str
    written: Any

    @property
    def content(self) -> bytes:
        return self.written if isinstance(self.written, bytes) else _dump(self.written)


def mutations(text: str) -> Iterator[Mutation]:
    """Every mutation of a file's text."""
    yield from of_data(text)
    yield from of_lines(text)
    yield from of_bytes(text)


def of_data(text: str) -> Iterator[Mutation]:
    """Keys deleted, misspelt and in other letters; values of other kinds and in other letters."""
    data = yaml_files.load(text)
    for path in _paths(data):
        where = ".".join(map(str, path))
        key, value = path[-1], _at(data, path)
        yield Mutation(f"delete {where}", _changed(data, path, None, drop=True))
        for wrong in WRONG:
            if wrong != value or type(wrong) is not type(value):
                yield Mutation(f"{where} = {wrong!r}", _changed(data, path, {key: wrong}))
        if isinstance(value, str) and value.swapcase() != value:
            for other in (value.swapcase(), value.title()):
                yield Mutation(f"{where} = {other[:30]!r}", _changed(data, path, {key: other}))
        if isinstance(key, str):
            for name in dict.fromkeys((key[:-1] or "x", key + "s", key.upper(), key.title(), key.replace("_", "-"))):
                if name != key:
                    yield Mutation(f"{where} -> {name}", _changed(data, path, {name: value}))


def of_lines(text: str) -> Iterator[Mutation]:
    """Lines indented wrongly, with tabs, twice, cut, without their colon or with quotes that never end."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = line[: len(line) - len(line.lstrip())]
        rest = line.lstrip()
        for name, other in {
            "one more space": f" {line}",
            "two more spaces": f"  {line}",
            "one space less": line.removeprefix(" "),
            "indented by a tab": f"\t{rest}",
            "a tab after the indent": f"{indent}\t{rest}",
            "a tab at the end": f"{line}\t",
            "a tab after the colon": line.replace(": ", ":\t", 1),
            "an indent of no-break spaces": f"{chr(0xA0) * len(indent) or chr(0xA0)}{rest}",
            "twice": f"{line}\n{line}",
            "twice, the second otherwise": f"{line}\n{line}x",
            "no colon": line.replace(":", "", 1),
            "no space after the colon": line.replace(": ", ":", 1),
            "a quote that never ends": f'{line} "',
            "cut": line[: len(line) // 2],
            "a control character": f"{line}\x07",
            "a list": f"{indent}- {rest}",
            "an unknown alias": f"{line} *nowhere",
        }.items():
            if other != line:
                changed = [*lines[:number], other, *lines[number + 1 :]]
                yield Mutation(f"line {number + 1}: {name}", "\n".join(changed).encode())


def of_bytes(text: str) -> Iterator[Mutation]:
    """Other encodings and line ends."""
    yield Mutation("byte order mark", b"\xef\xbb\xbf" + text.encode())
    yield Mutation("two byte order marks", b"\xef\xbb\xbf" * 2 + text.encode())
    yield Mutation("CRLF", text.replace("\n", "\r\n").encode())
    yield Mutation("CR", text.replace("\n", "\r").encode())
    yield Mutation("latin-1 comment", (text + "\n# caf\u00e9\n").encode("latin-1", "replace"))
    yield Mutation("latin-1 value", (text + "\ndescription: caf\u00e9\n").encode("latin-1", "replace"))
    yield Mutation("UTF-8 value", (text + "\ndescription: caf\u00e9 \u2028 \U0001f600\n").encode())
    yield Mutation("UTF-16", text.encode("utf-16"))
    yield Mutation("NUL", text.encode() + b"\x00")
    yield Mutation("NEL", text.encode() + "\u0085".encode())
    yield Mutation("no end of line", text.rstrip("\n").encode())
    yield Mutation("document start", b"---\n" + text.encode())
    yield Mutation("document end", text.encode() + b"\n...\n")
    yield Mutation("second document", text.encode() + b"\n---\na: 1\n")
    yield Mutation("YAML directive", b"%YAML 1.1\n---\n" + text.encode())
    yield Mutation("YAML 1.2 directive", b"%YAML 1.2\n---\n" + text.encode())
    yield Mutation("empty", b"")
    yield Mutation("only comments", b"# nothing\n")
    yield Mutation("half", text.encode()[: len(text) // 2])


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield (*path, key)
        yield from _paths(each, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def _changed(value: Any, path: tuple[Any, ...], entry: Any, *, drop: bool = False) -> Any:
    """A copy in which the entry at ``path`` is replaced by ``entry`` (a mapping of one key), or is gone."""
    first, *rest = path
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    result: list[tuple[Any, Any]] = []
    for key, each in items:
        if key != first:
            result.append((key, each))
        elif rest:
            result.append((key, _changed(each, tuple(rest), entry, drop=drop)))
        elif not drop:
            result += entry.items()
    return dict(result) if isinstance(value, dict) else [each for _, each in result]


def _dump(value: Any) -> bytes:
    return bytes(yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True, encoding="utf-8"))


def paths(value: Any) -> list[tuple[Any, ...]]:
    """Every place in a file's content."""
    return list(_paths(value))


def replaced(data: Any, path: tuple[Any, ...], value: Any) -> bytes:
    """The content with another value at a place, as YAML."""
    return _dump(_changed(data, path, {path[-1]: value}))
