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
from itertools import dropwhile
from pathlib import Path
from typing import TYPE_CHECKING

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

    from jobs.model.job import Job

_REDIRECTION = re.compile(r"(?<=\s)[\d&]?(?:>>?|<)(?:&\d|\s*[^\s;&|]+)")
_OPTIONAL = re.compile(r"\$\[\[(.*?)\]\]", re.DOTALL)
_GOES_ON = re.compile(r"[;\n|]|(?<!&)&(?!&)")
"""Between commands of which the next one runs, whatever became of the one before."""
_ABOVE = re.compile(r"(?:\S*/)?(?:python[\d.]*|bash|sh) (?:-\S+ )*(?P<script>\S+\.(?:py|sh))\b")
_NEWER = re.compile(
    r"f-string|\btype\s+\w+\s*(\[|=)|\b(def|class)\s+\w+\[|\bexcept\s+\w+\s*,|\bt[\"']|\bmatch\b|\blazy\b"
)
"""Lines that a later Python than this one may read."""


def scripts_of(job: Job, base: Path) -> Iterator[Finding]:
    """Findings on the scripts that a command starts.

    Args:
        job: The job.
        base: Folder that its code is relative to.
    """
    if job.code is None or not job.code.local or re.search(r"`|\$\(|=\(", job.command):
        return
    folder = os.path.join(base, job.code.path)  # noqa: PTH118 - for each of many jobs
    parts = _OPTIONAL.sub(r" \1 ", job.command)
    done = steps(_REDIRECTION.sub(" ", parts))
    ends, changed = _GOES_ON.search(parts.replace("\\\n", "").strip()) is None, False
    for words in done:
        named = list(dropwhile(ASSIGNMENT.fullmatch, words))
        if not named or named[0] in {"cd", "pushd", "popd"}:
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
        yield from () if changed else _ignored(folder, name)
        changed = True
        read = _read(path) if name.endswith(".py") else None
        if isinstance(read, Finding):
            yield read
        elif read is not None:
            certain = (ends or words is done[-1]) and read.sure and parts == job.command and "||" not in parts
            rest = rest[: next((at for at, word in enumerate(rest) if word.startswith("#")), len(rest))]
            yield from (_argument(fault, read, name, certain=certain) for fault in faults(read, rest))


def _started(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """The script that a simple command starts, by its path or as a module, and the words that it gets."""
    if (script := script_of(words)) is not None:
        return script, words[words.index(script) + 1 :]
    modules = (
        at for at, word in enumerate(words) if at and words[at - 1] in {"-m", "--module"} and word not in MODULES
    )
    at = next(modules, 0)
    return (f"{words[at].replace('.', '/')}.py", words[at + 1 :]) if at else (None, ())


def _outside(words: Sequence[str]) -> Iterator[Finding]:
    """A script above the code folder."""
    found = _ABOVE.match(" ".join(words))
    if found is not None and posixpath.normpath(found["script"]).startswith("../"):
        seen = f"The command starts `{found['script']}`, which lies outside of the code folder"
        rule = "Only the code folder is uploaded, and a command runs in its copy"
        remedy = "Name a folder as `code` that holds it; `additional_includes` takes further folders along."
        yield Finding("script-outside-code", "command", seen, rule, remedy)


def _ignored(folder: str, name: str) -> Iterator[Finding]:
    """A script that the code folder's ignore file leaves out."""
    if not any(is_file(os.path.join(folder, each)) for each in NAMES):  # noqa: PTH118 - for each of many jobs
        return
    ignore = Ignore.read(Path(folder).resolve())
    if ignore.path is not None and ignore.excludes(name):
        seen = f"The command starts `{name}`, which `{ignore.path.name}` leaves out of the upload"
        rule = "A command runs in a copy of the code folder, without what the ignore file lists"
        remedy = f"Write `!{name}` at the end of `{ignore.path.name}`."
        yield Finding("script-left-out", "command", seen, rule, remedy)


def _read(path: str) -> Interface | Finding | None:
    text = text_of(path)
    partly = text is None or len(text) >= MOST_CHARACTERS or "\ufffd" in text
    return None if partly or text is None else _parsed(text.removeprefix("\ufeff"), os.path.normpath(path))


@lru_cache(maxsize=64)  # jobs share scripts
def _parsed(text: str, path: str) -> Interface | Finding | None:
    """The arguments of a script as far as they are known, or its syntax error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return interface_of(ast.parse(text), text)
    except (RecursionError, MemoryError):  # nested deeper than the parser follows
        return None
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None) or 1, max(1, getattr(error, "offset", None) or 1)
        said = getattr(error, "msg", str(error))
        newer = _NEWER.search("\n".join((said, *text.splitlines()[max(0, line - 2) : line])))
        rule = "A later Python than this one may read it" if newer else "Each process of the job ends at its start"
        remedy = "Run `python -m py_compile` on it in the job's environment." if newer else ""
        found = Finding("script-syntax", "", f"The script is no Python: {said}", rule, remedy)
        return found.changed(level=Level.WARNING if newer else Level.ERROR, file=path, line=line, column=column)


_SAID = {
    "unknown": ("gives `{script}` the argument `{word}`", "does not know it"),
    "missing": ("gives `{script}` no `{word}`", "requires it{at}"),
    "value": ("gives `{script}` `{word}` without a value", "wants one{at}"),
    "extra": ("gives `{script}` `{word}`", "has no place for the last word"),
}


def _argument(fault: Fault, interface: Interface, script: str, *, certain: bool) -> Finding:
    at = f" ({script}:{fault.line})" if fault.line else ""
    seen, rule = (each.format(script=script, word=fault.word, at=at) for each in _SAID[fault.kind])
    known = [names[-1] for names in interface.groups if "--help" not in names]
    listed = ", ".join(f"`{name}`" for name in known[:8]) + (", …" if len(known) > 8 else "")
    remedy = f"Write `{fault.word} VALUE`." if fault.word.startswith("--") else "Add it."
    if fault.kind == "unknown":
        close = near(fault.word, interface.options, 1)
        remedy = f"Did you mean `{close[0]}`?" if close else f"It knows {listed or 'none'}."
    remedy = "Leave it out." if fault.kind == "extra" else remedy
    rule = f"The script's {interface.reads} {rule}, and ends the script"
    level = Level.ERROR if certain else Level.WARNING
    return Finding(f"script-argument-{fault.kind}", "command", f"The command {seen}", rule, remedy, level)
