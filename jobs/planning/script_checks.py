"""Checks of the scripts that a command starts: nothing is run, and each is read as text.

Found are scripts that the upload does not have, text that is no Python, and arguments that a script would refuse.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from amlstack.base.findings import Finding, Level
from amlstack.base.paths import is_file
from amlstack.base.text import near
from amlstack.code_reading.arguments import Fault, Interface, faults
from amlstack.code_reading.code_files import MOST_CHARACTERS, text_of
from amlstack.code_reading.parsers import interface_of
from amlstack.code_reading.shell import ASSIGNMENT, script_of, steps
from amlstack.code_reading.starters import MODULES
from amlstack.snapshot.ignore import NAMES, Ignore
from jobs.planning.program_checks import CREATES_NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from jobs.model.job import Job

_REDIRECTION = re.compile(r"(?<=\s)[\d&]?(?:>>?|<)(?:&\d|\s*[^\s;&|]+)")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_GOES_ON = re.compile(r"[;\n|]|(?<!&)&(?!&)")
"""Between commands of which the next one runs, whatever became of the one before."""
_MOVES = frozenset(("cd", "pushd", "popd"))
_NEWER = re.compile(
    r"f-string|\btype\s+\w+\s*(\[|=)|\b(def|class)\s+\w+\[|\bexcept\s+\w+\s*,|\bt[\"']|\bmatch\b|\blazy\b"
)
"""Lines that a later Python than this one may read."""


def scripts_of(job: Job, base: Path) -> Iterator[Finding]:
    """Findings on the scripts that a command starts.

    Args:
        job: The job, whose code lies on this machine.
        base: Folder that its code is relative to.
    """
    if job.code is None or not job.code.local or "`" in job.command or "$(" in job.command:
        return
    folder = os.path.join(base, job.code.path)  # noqa: PTH118 - for each of many jobs
    parts = _OPTIONAL.sub(r" \1 ", job.command)
    done = steps(_REDIRECTION.sub(" ", parts))
    ends = _GOES_ON.search(parts.replace("\\\n", "").strip()) is None
    changed = False
    for words in done:
        named = [word for word in words if not ASSIGNMENT.fullmatch(word)]
        if not named or named[0] in _MOVES:
            return
        script, rest = _started(named)
        if script is None:
            yield from () if changed else _outside(named)
            changed |= named[0].rsplit("/", 1)[-1] not in CREATES_NOTHING
            continue
        name = posixpath.normpath(script)
        path = os.path.join(folder, name)  # noqa: PTH118 - as above
        if not is_file(path):
            continue
        if not changed and (ignored := _ignored(folder, name)) is not None:
            yield ignored
        changed = True
        read = _read(path) if name.endswith(".py") else None
        if read is None:
            continue
        if read.wrong is not None:
            yield read.wrong
        elif read.interface is not None:
            rest = rest[: next((at for at, word in enumerate(rest) if word.startswith("#")), len(rest))]
            certain = (ends or words is done[-1]) and read.interface.sure and parts == job.command
            for fault in faults(read.interface, rest):
                yield _argument(fault, read.interface, name, certain=certain and "||" not in parts)


def _started(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The script that a simple command starts, by its path or as a module, and the words that it gets."""
    if (script := script_of(words)) is not None:
        return script, words[words.index(script) + 1 :]
    for at, word in enumerate(words[:-1]):
        if word in {"-m", "--module"} and words[at + 1] not in MODULES:
            return f"{words[at + 1].replace('.', '/')}.py", words[at + 2 :]
    return None, ()


def _outside(words: Sequence[str]) -> Iterator[Finding]:
    """A script above the code folder."""
    if not re.fullmatch(r"(?:\S*/)?(?:python[\d.]*|bash|sh)", words[0]):
        return
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    if script.endswith((".py", ".sh")) and posixpath.normpath(script).startswith("../"):
        yield Finding(
            "script-outside-code",
            "command",
            f"The command starts `{script}`, which lies outside of the code folder",
            "Only the code folder is uploaded, and a command runs in its copy",
            "Name a folder as `code` that holds it, and write the script's path from there; in Python and YAML "
            "`additional_includes` takes further folders along.",
        )


def _ignored(folder: str, name: str) -> Finding | None:
    files = [os.path.join(folder, each) for each in NAMES]  # noqa: PTH118 - for each of many jobs
    file = next(filter(is_file, files), None)
    if file is None:
        return None
    now = os.stat(file)  # noqa: PTH116 - as above
    if not _rules(folder, now.st_ino, now.st_size, now.st_mtime_ns).excludes(name):
        return None
    return Finding(
        "script-left-out",
        "command",
        f"The command starts `{name}`, which `{os.path.basename(file)}` leaves out of the upload",  # noqa: PTH119
        "A command runs in a copy of the code folder, without what the ignore file lists",
        f"Write `!{name}` at the end of `{os.path.basename(file)}`.",  # noqa: PTH119
    )


@lru_cache(maxsize=64)
def _rules(folder: str, *_: int) -> Ignore:
    """The rules of a folder's ignore file; further arguments tell its states apart."""
    from pathlib import Path  # noqa: PLC0415 - few folders have such a file

    return Ignore.read(Path(folder).resolve())


class _Script(NamedTuple):
    """A script as it was read: its syntax error, or its arguments as far as they are known."""

    wrong: Finding | None = None
    interface: Interface | None = None


def _read(path: str) -> _Script | None:
    text = text_of(path)
    if text is None or len(text) >= MOST_CHARACTERS or "\ufffd" in text:
        return None
    return _parsed(text, os.path.normpath(path))


@lru_cache(maxsize=64)  # jobs share scripts
def _parsed(text: str, path: str) -> _Script:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError) as error:
        return _Script(_no_python(error, text, path))
    try:
        return _Script(interface=interface_of(tree))
    except RecursionError:
        return _Script()


def _no_python(error: Exception, text: str, path: str) -> Finding | None:
    if isinstance(error, RecursionError):
        return None
    line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
    around = "\n".join(text.splitlines()[max(0, line - 2) : line])
    newer = _NEWER.search(f"{getattr(error, 'msg', error)}\n{around}")
    return Finding(
        "script-syntax",
        "",
        f"The script is no Python: {getattr(error, 'msg', error)}",
        "Each process of the job ends at its start" if not newer else "A later Python than this one may read it",
        "" if not newer else "Run `python -m py_compile` on it in the job's environment.",
        Level.WARNING if newer else Level.ERROR,
        file=path,
        line=line,
        column=max(1, column),
    )


_SAID = {
    "unknown": ("gives `{script}` the argument `{word}`", "The script's {reads} does not know it, and ends the script"),
    "missing": ("gives `{script}` no `{word}`", "The script's {reads} requires it{at}, and ends the script"),
    "value": ("gives `{script}` `{word}` without a value", "The script's {reads} wants one{at}, and ends the script"),
    "extra": ("gives `{script}` `{word}`", "The script's {reads} has no place for the last word, and ends the script"),
}


def _argument(fault: Fault, interface: Interface, script: str, *, certain: bool) -> Finding:
    at = f" ({script}:{fault.line})" if fault.line else ""
    said = (each.format(script=script, word=fault.word, reads=interface.reads, at=at) for each in _SAID[fault.kind])
    close = near(fault.word, interface.options, 1) if fault.kind == "unknown" else ()
    remedy = {
        "unknown": f"Did you mean `{close[0]}`?" if close else f"It knows {_listed(interface)}.",
        "missing": f"Add it: `{fault.word} VALUE`." if fault.word.startswith("-") else "Add it.",
        "value": f"Write `{fault.word} VALUE`.",
        "extra": "Leave it out.",
    }[fault.kind]
    level = Level.ERROR if certain else Level.WARNING
    seen, rule = said
    return Finding(f"script-argument-{fault.kind}", "command", f"The command {seen}", rule, remedy, level)


def _listed(interface: Interface) -> str:
    names = [names[-1] for names in interface.groups if "--help" not in names]
    return ", ".join(f"`{name}`" for name in names[:8]) + (", …" if len(names) > 8 else "") or "none"
