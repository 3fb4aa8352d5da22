"""The files of a folder that an upload takes, and findings about them.

Ignore files are decided exactly as azure-ai-ml decides them: ``.amlignore`` wins over ``.gitignore``; only the one in
the root folder counts; git's wildmatch patterns in the reading of the pathspec library. Two consequences differ from
git itself: a later ``!pattern`` re-includes a file even under an ignored folder, and a folder reached through a link is
judged by where it really lies.
"""

from __future__ import annotations

import functools
import itertools
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from amlstack.base import text
from amlstack.base.files import read_regular
from amlstack.base.findings import Finding, Level, stated

if TYPE_CHECKING:
    from io import FileIO

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
                    stated("ignore-pattern-invalid", "", seen=str(error)).changed(file=str(path), line=number)
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


LARGE_FILE: Final = 100 * 1000**2
"""Bytes. From 100 MB on azure-ai-ml, too, warns of a file that it uploads."""
LARGE_FOLDER: Final = 300 * 1000**2
"""Bytes. The first SDK refused larger snapshots; nothing but code and its small data comes near it."""
_MOST: Final = 5
"""Files that are named."""
_RULE: Final = "Code is uploaded, and copied to every node before its ranks start"
_REMEDY: Final = "List it in .amlignore; data is an input of the job"


def findings(files: Sequence[File]) -> Iterator[Finding]:
    """Warnings on large files, the largest first, and on many that are large together."""
    large = sorted((file for file in files if file.size >= LARGE_FILE), key=lambda file: -file.size)
    for file in large[:_MOST]:
        seen = f"{file.relative} is a file of {shown(file.size)}"
        yield Finding("large-file-in-code", "", seen, _RULE, _REMEDY, Level.WARNING, file=file.relative)
    total = sum(file.size for file in files)
    rest = total - sum(file.size for file in large[:_MOST])
    if rest >= LARGE_FOLDER:
        seen = f"The code folder sends {len(files):,} files of {shown(total)} together"
        remedy = "List in .amlignore what no run needs; data is an input of the job"
        yield Finding("large-code-folder", "", seen, _RULE, remedy, Level.WARNING, file=".")


def shown(size: int) -> str:
    """A size in bytes as people write it: ``3.1 kB``, ``400 MB``."""
    value, unit = float(size), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "bytes" else f"{size} byte{'' if size == 1 else 's'}"


_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class FileState(NamedTuple):
    """The facts that ``stat`` gives of a file's content, without reading it; a write changes at least ``changed``.

    Attributes:
        size: In bytes.
        modified: ``st_mtime_ns``; a program may set it.
        changed: ``st_ctime_ns``; the kernel alone sets it.
        inode: Which file it is on its device.
        device: Of the file system.
    """

    size: int
    modified: int
    changed: int
    inode: int
    device: int

    @classmethod
    def from_stat(cls, status: os.stat_result) -> FileState:
        """From the result of one ``stat``."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev)


class File(NamedTuple):
    """One file of a snapshot.

    Attributes:
        place: Where its content lies; links resolved.
        relative: Its name in the snapshot, with ``/``; the link's name where it is one.
        state: As the walk saw it.
    """

    place: str
    relative: str
    state: FileState

    @property
    def path(self) -> Path:
        """The path of its content."""
        return Path(self.place)

    def open(self) -> FileIO:
        """Its content, to be read in large blocks."""
        return open(self.place, "rb", buffering=0)  # noqa: PTH123 - a Path takes as long to make as the file to open

    @property
    def size(self) -> int:
        """In bytes."""
        return self.state.size


class _LeavesError(Exception):
    """Something that would be taken lies outside of the folder, behind a linked folder."""


@dataclass(slots=True)
class Walk:
    """One walk through a folder; `folder` begins it.

    Attributes:
        root: The folder, links resolved.
        ignore: Its rules.
        files: Those that are taken, in no order.
        findings: What is wrong.
        most: Files after which it ends; None for no bound.
        what: What the folder holds, in messages: ``code`` or ``data``.
    """

    root: Path
    ignore: Ignore
    files: list[File] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    most: int | None = None
    what: str = "code"

    @property
    def is_full(self) -> bool:
        """True where it ended before the folder did, or just at its end."""
        return self.most is not None and len(self.files) >= self.most

    def wrong(self, key: str, file: str, /, **values: Any) -> None:
        """Adds a finding in the words of `findings.json`."""
        self.findings.append(stated(key, "", **values).changed(file=file))

    def folder(self, actual: str, prefix: str, real: Path, above: frozenset[Path], *, excluded: bool) -> None:
        """Takes what lies in one folder.

        Args:
            actual: The folder as walked, through links.
            prefix: Its name in the snapshot with a trailing ``/``; empty for the root.
            real: The folder with links resolved: what ignore patterns see.
            above: All folders that it lies in, resolved; finds circles.
            excluded: The patterns take nothing directly below; only a link can lead out of that.
        """
        base = os.path.relpath(real, self.ignore.base)
        start = "" if base == "." else f"{base}/"
        try:
            entries = sorted(os.scandir(actual), key=lambda entry: entry.name)
        except OSError as error:
            if not excluded and not self.ignore.excludes(f"{start}x"):
                self.unreadable(prefix.rstrip("/") or ".", error)
            return
        inside, place, excludes = real.is_relative_to(self.root), f"{real}/".replace("//", "/"), self.ignore.excludes
        for entry in entries:
            if self.is_full:
                return
            try:
                is_folder = entry.is_dir()
            except OSError:
                is_folder = False  # a circle of links: judged as a broken link below
            if is_folder:
                self.subfolder(entry, prefix, real, above, excluded=excluded)
            elif not excluded and not excludes(start + entry.name):
                if not inside:
                    raise _LeavesError
                self.file(entry, prefix + entry.name, place + entry.name)

    def subfolder(
        self, entry: os.DirEntry[str], prefix: str, real: Path, above: frozenset[Path], *, excluded: bool
    ) -> None:
        """Takes what lies in a folder within a folder, unless it leads in a circle or out of the root."""
        relative = prefix + entry.name
        linked = entry.is_symlink()
        target = Path(os.path.realpath(entry.path)) if linked else real / entry.name
        if linked or not excluded:
            excluded = self.ignore.excludes_all_below(os.path.relpath(target, self.ignore.base))
        if target in above:
            if not excluded:
                self.wrong("link-circle", relative, relative=relative)
            return
        if entry.name == ".git" and not prefix and not excluded and not linked:
            self.git()
        try:
            self.folder(entry.path, f"{relative}/", target, above | {target}, excluded=excluded)
        except _LeavesError:
            if not (linked and real.is_relative_to(self.root)):
                raise
            self.leaves(relative, target)

    def file(self, entry: os.DirEntry[str], relative: str, place: str) -> None:
        """Takes one file, or says why not; ``place`` is where it lies."""
        try:
            linked = entry.is_symlink()
            if linked:
                place = os.path.realpath(place)
                if not Path(place).is_relative_to(self.root):
                    self.leaves(relative, Path(place))
                    return
            relative.encode()
            status = Path(place).stat() if linked else entry.stat()
        except UnicodeEncodeError:
            shown = relative.encode(errors="backslashreplace").decode()
            self.wrong("file-name-no-text", shown, shown=shown)
            return
        except OSError as error:
            if entry.is_symlink():
                self.wrong("link-broken", relative, relative=relative)
            else:
                self.unreadable(relative, error)
            return
        if _CONTROL.search(relative):
            shown = text.line(relative)
            self.wrong("file-name-control", shown, shown=shown)
            return
        if not stat.S_ISREG(status.st_mode):
            self.wrong("file-special", relative, relative=relative)
            return
        self.files.append(File(place, relative, FileState.from_stat(status)))

    def leaves(self, relative: str, target: Path) -> None:
        """A link that leads out of the folder."""
        self.wrong("link-leaves-folder", relative, relative=relative, target=target, what=self.what)

    def unreadable(self, relative: str, error: OSError) -> None:
        """A file or folder that nobody may read, or that has just gone."""
        self.wrong("file-unreadable/unreadable", relative, relative=relative, strerror=error.strerror or error)

    def git(self) -> None:
        """A repository's history that no ignore file leaves out."""
        seen = f"the folder .git would be uploaded with the {self.what}"
        rule = "The history of a repository is large, changes the hash with every commit and may hold secrets"
        remedy = f"Add .git/ to {self.ignore.path.name if self.ignore.path else '.amlignore'}"
        code = f"git-folder-in-{self.what}"
        self.findings.append(Finding(code, "", seen, rule, remedy, Level.WARNING, file=".git"))
