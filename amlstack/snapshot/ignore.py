"""Files that an ignore file leaves out, decided exactly as azure-ai-ml decides it.

``.amlignore`` wins over ``.gitignore``; only the one in the root folder counts; git's wildmatch patterns in the reading
of the pathspec library. Two consequences differ from git itself: a later ``!pattern`` re-includes a file even under an
ignored folder, and a folder reached through a link is judged by where it really lies.
"""

from __future__ import annotations

import functools
import itertools
import re
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from amlstack.base.files import read_regular
from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NAMES: Final = (".amlignore", ".gitignore")
"""In the order in which they are looked for; the first that exists is the only one read."""

_BELOW: Final = "(?:/.*)?"
_GLOB: Final = re.compile(
    r"""  \\(?P<escaped>.)
        | (?P<stray>\\)
        | (?P<star>\*)
        | (?P<any>\?)
        | \[ (?P<negated>!?+) (?P<set>\]?+ [^\]]*+) \]   # possessive: a set that never closes is a literal bracket
        | (?P<literal>.)
    """,
    re.VERBOSE | re.DOTALL,
)


class PatternError(ValueError):
    """A line of an ignore file that is no pattern."""


class IgnoreRule(NamedTuple):
    """One pattern: whether it excludes or re-includes, and what it matches.

    Attributes:
        excludes: False for ``!pattern``.
        regex: Matched against paths relative to the ignore file's folder, with ``/``.
        whole_folders: A match of ``folder/`` means a match of everything below, whatever its name.
    """

    excludes: bool
    regex: re.Pattern[str]
    whole_folders: bool


def parse(line: str) -> IgnoreRule | None:
    """The rule that a line stands for; ``None`` for a blank line, a comment or a single slash.

    Raises:
        PatternError: The line is no pattern (nothing after ``!``, a trailing backslash, an impossible range).
    """
    text = line.strip()
    if not text or text.startswith("#") or text == "/":
        return None
    excludes = not text.startswith("!")
    body = text if excludes else text[1:]
    try:
        with warnings.catch_warnings():
            # A set like [a--b] may change its meaning in some future Python; azure-ai-ml takes today's.
            warnings.simplefilter("ignore", FutureWarning)
            return IgnoreRule(excludes, re.compile(_expression(body)), whole_folders="[" not in body)
    except (PatternError, re.error) as error:
        raise PatternError(f"{text!r} is no pattern: {error}") from error


def _expression(body: str) -> str:
    raw = body.split("/")
    segments = [part for index, part in enumerate(raw) if not (index and part == "**" == raw[index - 1])]
    if segments == ["**", ""]:
        return "^.+/.*$"  # everything but the files of the root
    if not segments[0]:
        del segments[0]  # a leading slash only anchors
    elif (len(segments) == 1 or segments[1:] == [""]) and segments[0] != "**":
        segments.insert(0, "**")  # a bare name is looked for at any depth
    if not segments:
        raise PatternError("nothing is left to match")
    if len(segments) > 1 and not segments[-1]:
        segments[-1] = "**"  # a trailing slash means what lies below a folder
    return "^" + _joined(segments) + "$"


def _joined(segments: list[str]) -> str:
    last = len(segments) - 1
    parts: list[str] = []
    slash = ""
    for index, segment in enumerate(segments):
        if segment == "**":
            if index == 0:
                parts.append(".+" if last == 0 else "(?:.+/)?")
            elif index == last:
                parts.append("/.*")
            else:
                parts.append("(?:/.+)?")
                slash = "/"
            continue
        parts += [slash, "[^/]+" if segment == "*" else _glob(segment), _BELOW if index == last else ""]
        slash = "/"
    return "".join(parts)


def _glob(segment: str) -> str:
    def one(match: re.Match[str]) -> str:
        match match.lastgroup:
            case "escaped":
                return re.escape(match["escaped"])
            case "stray":
                raise PatternError("a backslash at the end escapes nothing")
            case "star":
                return "[^/]*"
            case "any":
                return "[^/]"
            case "set":
                return _set(match["set"], negated=bool(match["negated"]))
            case _:
                return re.escape(match["literal"])

    return _GLOB.sub(one, segment)


def _set(members: str, *, negated: bool) -> str:
    if negated:
        head = "^"
    elif members.startswith("^"):
        head, members = "\\^", members[1:]
    else:
        head = ""
    return "[" + head + members.replace("\\", "\\\\") + "]"


@dataclass(frozen=True)
class Ignore:
    """The rules of one folder.

    Attributes:
        path: The ignore file that counts; ``None`` when there is none.
        base: The folder that its patterns are relative to: where the ignore file really lies, links resolved.
        rules: In file order; the last match decides.
        findings: What is wrong with the ignore file.
    """

    path: Path | None
    base: Path
    rules: tuple[IgnoreRule, ...] = ()
    findings: tuple[Finding, ...] = field(default=())

    @classmethod
    def read(cls, root: Path) -> Ignore:
        """Reads the ignore file in ``root``, if there is one."""
        path = next((root / name for name in NAMES if (root / name).exists()), None)
        if path is None:
            return cls(None, root)
        base = path.resolve().parent
        try:
            text = read_regular(path).decode("utf-8-sig").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError) as error:
            seen = f"{path.name} cannot be read ({getattr(error, 'strerror', None) or 'it is no UTF-8 text'})"
            finding = Finding(
                "ignore-file-unreadable", "", seen, "The ignore file decides what is uploaded", file=str(path)
            )
            return cls(path, base, (), (finding,))
        rules: list[IgnoreRule] = []
        findings: list[Finding] = []
        for number, line in enumerate(text.split("\n"), start=1):
            try:
                rule = parse(line)
            except PatternError as error:
                findings.append(
                    Finding(
                        "ignore-pattern-invalid",
                        "",
                        str(error),
                        "Each line is a gitignore pattern",
                        "Write # before the line to make it a comment, or \\ before a character to take it literally",
                        file=str(path),
                        line=number,
                    )
                )
                continue
            if rule is not None:
                rules.append(rule)
        return cls(path, base, tuple(rules), tuple(findings))

    def excludes(self, relative: str) -> bool:
        """True where the file at ``relative`` (to `base`, with ``/``) is left out."""
        for matches, excludes in self._decisions:
            if matches(relative):
                return excludes
        return False

    def excludes_all_below(self, relative: str) -> bool:
        """True where nothing in the folder ``relative`` can be taken; False also means "ask for each file"."""
        if not all(rule.excludes for rule in self.rules):
            return False
        return any(rule.whole_folders and rule.regex.match(f"{relative}/") for rule in self.rules)

    @functools.cached_property
    def _decisions(self) -> tuple[tuple[Callable[[str], object], bool], ...]:
        """The rules from the last to the first, neighbours that decide the same as one pattern."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # as in `parse`
            return tuple(
                (re.compile("|".join(f"(?:{rule.regex.pattern})" for rule in group)).match, excludes)
                for excludes, group in itertools.groupby(reversed(self.rules), key=lambda rule: rule.excludes)
            )
