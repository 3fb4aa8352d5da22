"""Values of an Azure ML job file are read with the coercions of the real loader; faults become findings.

Readers take a `Cursor` and return the value as the job model wants it, or `Bad` after they have reported what is wrong;
nothing is raised, so that one file shows all its faults at once. What only follows from another error of the file is
not reported again. Words of the CLI's preview are still found in public files: what they became changes the remedy of
a finding, not whether a key is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.base.findings import Finding, Level, stated
from amlstack.base.models import where as dotted
from amlstack.base.text import did_you_mean, whole_seconds
from jobs.values import EXPRESSION, Place, Source

if TYPE_CHECKING:
    from amlstack.base.yamltext import Text


Reader = Callable[["Cursor"], Any]
Readers = Mapping[str, Reader]

Keys = tuple[Any, ...]


class _Bad:
    """The value that a reader returns after it has reported a fault."""

    def __repr__(self) -> str:
        return "Bad"


Bad: Final = _Bad()


@dataclass(slots=True, eq=False)  # frozen ones take thrice as long to make, and a job file has some thirty values
class Cursor:
    """One value of a file; nothing writes into it.

    Attributes:
        value: The value as YAML has it.
        path: Keys and indices that lead to it.
        findings: Where faults are gathered, with the path of each; shared by all cursors of a file.
        base: Folder of the file, where its relative paths start.
    """

    value: Any
    path: Keys
    findings: list[tuple[Keys, Finding]]
    base: Path

    def at(self, key: Any) -> Cursor:
        """The value under a key or index."""
        return Cursor(self.value[key], (*self.path, key), self.findings, self.base)

    def holding(self, value: Any) -> Cursor:
        """Another value in the same place."""
        return Cursor(value, self.path, self.findings, self.base)

    def bad(
        self, code: str, seen: str, rule: str, remedy: str = "", *, level: Level = Level.ERROR, key: Any = None
    ) -> Any:
        """Report a fault of this value, or of one of its keys."""
        path = self.path if key is None else (*self.path, key)
        self.findings.append((path, Finding(code, dotted(path), seen, rule, remedy, level)))
        return Bad

    def stated(self, words: str, level: Level = Level.ERROR, at: Any = None, /, **values: Any) -> Any:
        """Report a fault of this value, or of one of its keys, in the words of `amlstack/base/findings.json`."""
        path = self.path if at is None else (*self.path, at)
        self.findings.append((path, stated(words, dotted(path), level, **values)))
        return Bad

    def lost(self, key: str, seen: str, rule: str, remedy: str) -> None:
        """Warn of a key that Azure ML is not sent."""
        self.bad("lost-in-rendering", seen, rule, remedy, level=Level.WARNING, key=key)

    def wrong(self, wanted: str, remedy: str = "") -> Any:
        """Report that the value is of another kind."""
        return self.bad("value-kind", self.must(f"be {wanted}"), "", remedy)

    def must(self, rule: str) -> str:
        """The rule and the value in the file: `` `nodes` must be an integer, got `two` ``."""
        named = next((index for index in reversed(range(len(self.path))) if isinstance(self.path[index], str)), 0)
        return f"`{dotted(self.path[named:])}` must {rule}, got {shown(self.value)}"


def source_of(
    content: Text,
    base: Path,
    path_of: Callable[[str], tuple[str, ...]],
    unreadable: frozenset[tuple[str, ...]] = frozenset(),
) -> Source:
    """The file that a declaration was read from, with the places in it.

    Args:
        content: The file.
        base: Folder that the declaration's relative paths start from.
        path_of: From a path in the declaration to the keys in the file.
        unreadable: Keys in the file whose values could not be read.
    """

    def place(where: str) -> Place:
        path = path_of(where)
        return ".".join(path), *(content.spot(path) or (None, None))

    return Source(content.file, base, place, unreadable)


def shown(value: Any) -> str:
    """A value as a message shows it: short, and a collection by its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    shown = str(value) if not isinstance(value, str) or len(value) < 60 else f"{value[:57]}…"
    return f"`{shown}`"


_DIGITS = r"\s*[+-]?\d{1,18}\s*"


def text(cursor: Cursor) -> Any:
    """A string; numbers and words that YAML reads otherwise must be quoted."""
    value = cursor.value
    if isinstance(value, str):
        return value
    remedy = f'Put it in quotes: "{value}".' if isinstance(value, (bool, int, float)) else ""
    return cursor.wrong("text", remedy)


def size_of_memory(cursor: Cursor) -> Any:
    """A size with its unit, as Docker writes it."""
    value = cursor.value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return cursor.wrong("text with a unit", f'Write "{value}g" for {value} GiB; a bare "{value}" is bytes.')
    return text(cursor)


def version(cursor: Cursor) -> Any:
    """A version: text, or a number taken as text."""
    value = cursor.value
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    return cursor.wrong("a version, such as `1` or `1.0.2`")


def whole(cursor: Cursor) -> Any:
    """A whole number; text of digits is taken, and so is a float, cut to its whole part as the real loader does."""
    value = cursor.value
    if isinstance(value, bool):
        return cursor.wrong("an integer")
    if isinstance(value, int):
        return value
    if isinstance(value, float) and math.isfinite(value):
        if value != int(value):
            cursor.stated("number-cut", Level.WARNING, seen=cursor.must("be an integer"), value=int(value))
        return int(value)
    if isinstance(value, str) and re.fullmatch(_DIGITS, value):
        return int(value)
    return cursor.wrong("an integer")


def count(cursor: Cursor) -> Any:
    """A whole number from 1, or a pipeline expression."""
    if isinstance(cursor.value, str) and EXPRESSION.fullmatch(cursor.value):
        return cursor.value
    return at_least(1)(cursor)


def at_least(least: int) -> Reader:
    """A reader of a whole number with a lower bound."""

    def read(cursor: Cursor) -> Any:
        value = whole(cursor)
        if value is not Bad and value < least:
            return cursor.bad("value-range", cursor.must(f"be {least} or more"), "")
        return value

    return read


TRUE = frozenset({"t", "true", "1", "on", "y", "yes"})
FALSE = frozenset({"f", "false", "0", "off", "n", "no"})
LONGEST = 86_399_999_999_999
"""Seconds of the longest duration that the real loader can hold."""


def seconds(cursor: Cursor) -> Any:
    """A duration in seconds."""
    written = cursor.value
    if isinstance(written, str) and (meant := whole_seconds(written)) is not None:
        return cursor.wrong("a whole number of seconds", f"Write {meant}.")
    if not isinstance(written, int | float) and not (isinstance(written, str) and re.fullmatch(_DIGITS, written)):
        return cursor.wrong("a whole number of seconds")
    value = at_least(0)(cursor)
    if value is not Bad and value > LONGEST:
        return cursor.bad("value-range", cursor.must(f"be {LONGEST:,} seconds or less"), "")
    return value


def truth(cursor: Cursor) -> Any:
    """A truth value, in the words that the real loader takes."""
    value = cursor.value
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int)) and str(value).lower() in TRUE | FALSE:
        return str(value).lower() in TRUE
    return cursor.wrong("`true` or `false`")


def word(words: Mapping[str, str], normal: Callable[[str], str] = str.lower) -> Reader:
    """A reader of one of a few words, in the spellings that the real loader takes.

    Args:
        words: Spelling after ``normal`` to the word of the job model.
        normal: The change that the real loader makes to a spelling before it compares.
    """

    def read(cursor: Cursor) -> Any:
        value = cursor.value
        if isinstance(value, str) and (found := words.get(normal(value))) is not None:
            return found
        listed = ", ".join(f"`{name}`" for name in words)
        remedy = did_you_mean(value, words) if isinstance(value, str) else ""
        return cursor.bad(
            "value-unknown", cursor.must(f"be one of {listed}"), "", remedy if remedy.startswith("Did") else ""
        )

    return read


def same(*words: str) -> dict[str, str]:
    """Words that stand for themselves."""
    return {name: name for name in words}


def anything(cursor: Cursor) -> Any:
    """Any value, handed on as it is, but for numbers that JSON cannot say."""
    return cursor.value if _is_finite(cursor) else Bad


def mapping(cursor: Cursor) -> Any:
    """A mapping with any values."""
    if not isinstance(cursor.value, dict):
        return cursor.wrong("a mapping of names to values")
    return by_text(cursor) if _is_finite(cursor) else Bad


def _is_finite(cursor: Cursor) -> bool:
    """True where no number in a value is `.nan` or `.inf`; each that is one is reported."""
    value = cursor.value
    if isinstance(value, float) and not math.isfinite(value):
        cursor.wrong("a finite number, or text in quotes")
        return False
    inner = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    each = [_is_finite(cursor.at(key)) for key in inner]  # to the end: every one of them is reported
    return all(each)


def by_text(cursor: Cursor) -> dict[str, Any]:
    """The values of a mapping whose names are text; each other name is a fault."""
    for key in cursor.value:
        if not isinstance(key, str):
            refuse_name(cursor, key)
    return {key: value for key, value in cursor.value.items() if isinstance(key, str)}


def refuse_name(cursor: Cursor, key: Any) -> None:
    """Report a key that is no text."""
    rule, remedy = "Names are text", f'Put it in quotes: "{key}".'
    cursor.bad("name-kind", f"{shown(key)} is used as a name", rule, remedy, key=key)


@dataclass(frozen=True, slots=True)
class Nullable:
    """Reads the same, or nothing; a key may stand there without a value."""

    read: Reader

    def __call__(self, cursor: Cursor) -> Any:
        """The value, or None."""
        return None if cursor.value is None else self.read(cursor)


def unsent(cursor: Cursor) -> Any:
    """A value that the real loader takes in any form, as it does not send it: text of a plain value, else None."""
    value = cursor.value
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None


def named(read: Reader, *, numbers: bool = False) -> Reader:
    """A reader of a mapping of names to values of one kind.

    Args:
        read: Reads each value.
        numbers: True where a name may be written as a number, which becomes text.
    """

    def read_all(cursor: Cursor) -> Any:
        if not isinstance(cursor.value, dict):
            return cursor.wrong("a mapping of names to values")
        result = {}
        for key in cursor.value:
            if not isinstance(key, str) and not numbers:
                refuse_name(cursor, key)
                continue
            value = read(cursor.at(key))
            if value is not Bad:
                result[str(key)] = value
        return result

    return read_all


def each_read(cursor: Cursor, read: Reader) -> tuple[Any, ...]:
    """The values of a list, without those that are broken."""
    return tuple(value for index in range(len(cursor.value)) if (value := read(cursor.at(index))) is not Bad)


def listed(read: Reader) -> Reader:
    """A reader of a list of values of one kind."""
    return lambda cursor: each_read(cursor, read) if isinstance(cursor.value, list) else cursor.wrong("a list")


def warn_unknown(
    cursor: Cursor, extra: Iterable[Any], known: Iterable[str], what: str, rule: str, *, level: Level = Level.WARNING
) -> None:
    """Report keys that are not known and are kept all the same."""
    for key in extra:
        remedy = did_you_mean(str(key), known)
        cursor.bad(
            "key-unknown",
            f"`{key}` is not a known key of {what}",
            rule,
            remedy if remedy.startswith("Did") else "Remove it, unless Azure ML knows it.",
            level=level,
            key=key,
        )


def has_keys(
    cursor: Cursor,
    fields: Collection[str],
    names: Iterable[str],
    seen: str = "There is no `{}`",
    rule: str = "`{}` belongs here",
    *,
    remedy: str = "",
) -> bool:
    """True where the keys that a block must have were read; each that is not written is reported.

    Args:
        cursor: The block.
        fields: The keys that were read.
        names: The keys that it must have.
        seen: Of the finding; braces stand for the key.
        rule: Likewise.
        remedy: Likewise, without braces.
    """
    for name in names:
        if isinstance(cursor.value, dict) and name not in cursor.value:
            cursor.bad("key-missing", seen.format(name), rule.format(name), remedy)
    return set(names) <= set(fields)


def keys(cursor: Cursor, table: Readers, *, ignored: Collection[str] = (), what: str) -> Iterator[tuple[str, Any]]:
    """Read a mapping by a table of its keys: each key once, unknown ones reported with near misses.

    Args:
        cursor: The mapping.
        table: Key to the reader of its value.
        ignored: Keys that only the service writes; the real loader skips them, we say so.
        what: What the mapping is, for messages.
    """
    if not isinstance(cursor.value, dict):
        cursor.wrong(f"{what}, a mapping") if cursor.path else cursor.bad(
            "not-a-mapping", f"The file must be {what}, a mapping of keys, got {shown(cursor.value)}", ""
        )
        return
    for key in cursor.value:
        if (read := table.get(key)) is not None or key in ignored:
            if cursor.value[key] is None and read not in (anything, unsent) and not isinstance(read, Nullable):
                cursor.stated("value-missing", Level.ERROR, key, key=key)
                continue
            if read is not None:
                value = read(cursor.at(key))
                if value is not Bad:
                    yield key, value
            elif key != "$schema":
                cursor.stated("key-read-only", Level.INFO, key, key=key)
        else:
            remedy = did_you_mean(str(key), table)
            seen = f"`{key}` is not a known key of {what}"
            rule = "Every key is one that Azure ML knows"
            cursor.bad("key-unknown", seen, rule, remedy if remedy.startswith("Did") else "", key=key)


ANY = "*"


class Former(NamedTuple):
    """One former spelling.

    Attributes:
        path: The last keys that lead to it; ``*`` is any name.
        code: Of the finding that it gives today.
        remedy: What to write instead.
        seen: What the finding has to say for this to apply: a key may be there in its new form, with another fault.
    """

    path: tuple[str, ...]
    code: str
    remedy: str
    seen: str = ""


_DATA = "Write `type: uri_folder` (or `uri_file`) and `path: …`; a data asset is `path: azureml:NAME:VERSION`."
TABLE = (
    Former(("code",), "value-kind", "Write the folder itself: `code: src`, without `local_path`.", "a mapping"),
    Former(
        ("compute",),
        "value-kind",
        "Write `compute: azureml:NAME`, and the number of nodes as `resources: {instance_count: …}`.",
        "a mapping",
    ),
    *(
        Former(("inputs", ANY, key), "key-unknown", _DATA)
        for key in ("data", "dataset", "file", "folder", "local_path")
    ),
    Former(("environment", "docker"), "key-unknown", "Write `image` directly under `environment`."),
    Former(("build", "local_path"), "key-unknown", "It is called `path` now."),
    Former(("services", ANY, "job_service_type"), "key-unknown", "It is called `type` now."),
    Former(("distribution", "type"), "value-unknown", "In a job it is called `pytorch`.", "`torch.distributed`"),
    Former(("jobs", ANY, "type"), "value-unknown", "A step with a component is of type `command`.", "`component`"),
    Former(
        ("schedule",),
        "key-unknown",
        "A schedule is a file of its own, with `trigger` and with this file as `create_job`.",
    ),
    *(
        Former((key,), "key-unknown", f"It stands in a block: `resources: {{{key}: …}}`.")
        for key in ("instance_count", "instance_type", "shm_size", "docker_args")
    ),
    Former(
        ("process_count_per_instance",),
        "key-unknown",
        "It stands in a block: `distribution: {type: pytorch, process_count_per_instance: …}`.",
    ),
)


def remedied(found: Iterable[tuple[tuple[Any, ...], Finding]]) -> Iterator[tuple[tuple[Any, ...], Finding]]:
    """The findings of a file, each that a former spelling gave with what is written today."""
    for path, finding in found:
        entry = next((entry for entry in TABLE if _is(entry, path, finding)), None)
        yield path, replace(finding, remedy=entry.remedy) if entry else finding


def _is(entry: Former, path: tuple[Any, ...], finding: Finding) -> bool:
    tail = path[-len(entry.path) :]
    return (
        finding.code == entry.code
        and entry.seen in finding.seen
        and len(tail) == len(entry.path)
        and all(want in (ANY, key) for want, key in zip(entry.path, tail, strict=True))
        # One word alone is a key of the file or of a step, never of a deeper block.
        and (len(entry.path) > 1 or len(path) == 1 or path[0] == "jobs")
    )


Placed = tuple[tuple[Any, ...], Finding]
"""A finding with the keys that lead to its place."""

_NAMES = re.compile(r"`([^`]+)`")


def first_causes(found: Iterable[Placed], outer: Collection[str]) -> list[Placed]:
    """The findings of a file without those that another one explains.

    What two readers of the same block have seen is one finding. A key of the job itself inside another block is there
    by its indentation, and so is what stands below it; a key without a value has lost it to the unknown keys that
    follow; a key that is misspelt or misplaced is not missing.

    Args:
        found: Findings in the order of the file.
        outer: Keys of the file itself.
    """
    kept: list[Placed] = []
    astray: set[tuple[Any, ...]] = set()  # blocks that have swallowed keys of the job itself
    for path, finding in remedied(found):
        block, key = path[:-1], path[-1] if path else None
        before = kept[-1] if kept else None
        if (path, finding) in kept:
            continue
        if finding.code != "key-unknown" or finding.remedy:
            kept.append((path, finding))
        elif block in astray:
            continue
        elif len(path) > 1 and key in outer:
            astray.add(block)
            kept.append((path, replace(finding, remedy=f"`{key}` belongs to the job itself: indent it less.")))
        elif before is not None and before[1].code == "value-missing" and before[0][:-1] == block:
            remedy = f"Indent `{key}` further if it belongs to `{before[0][-1]}`; else remove the key."
            kept[-1] = (before[0], replace(before[1], remedy=remedy))
            astray.add(block)
        else:
            kept.append((path, finding))
    return [each for each in kept if not _explained(each, kept)]


def _explained(each: Placed, found: Sequence[Placed]) -> bool:
    """True where a key that is missing stands there under another name, or in another block."""
    path, finding = each
    if finding.code != "key-missing":
        return False
    missing = set(_NAMES.findall(finding.seen))
    return any(
        other.code == "key-unknown"
        and (
            (where[:-1] == path and missing & set(_NAMES.findall(other.remedy)))
            or (path == () and len(where) > 1 and where[-1] in missing)
        )
        for where, other in found
    )


def unreadable(found: Iterable[Placed]) -> frozenset[tuple[str, ...]]:
    """Keys in the file of which the findings say already that they are not as meant.

    A key that is not known may have been meant as one that its remedy names, here or at the outermost level.
    """
    paths: set[tuple[str, ...]] = set()
    for path, finding in found:
        if finding.level is not Level.ERROR or not path:
            continue
        names = tuple(str(name) for name in path)
        paths.add(names)
        if finding.code == "key-unknown":
            meant = (names[-1], *_NAMES.findall(finding.remedy))
            paths |= {(*block, name) for block in (names[:-1], ()) for name in meant}
    return frozenset(paths)
