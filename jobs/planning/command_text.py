"""What a command's own words show before it runs, and the files that they name.

A script that is not there, words that the shell expands, packages that are gone, where a checkpoint is.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from functools import lru_cache
from typing import TYPE_CHECKING

from amlstack.base.findings import Finding, Level
from amlstack.base.near_misses import did_you_mean
from amlstack.base.paths import is_dir, is_file
from policies.checks.job_command import SPEAKS, check_nebula_gone_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from jobs.model.job import Job
    from jobs.model.values import Code
    from jobs.planning.resolved import Plan

_BINDING = re.compile(r"\$\{\{.*?\}\}|\$?\[\[|\]\]", re.DOTALL)
_SHELL = re.compile(r"(?<!\$)\$\{\s*(?P<kind>inputs|outputs|search_space)\.(?P<name>[\w.-]+)\s*\}(?!\})")
_LOCAL_RANK = re.compile(r"--local[_-]rank(?:=|\s+)[\"']?\$\{?RANK\b")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"(?:\S*/)?python(?:3(?:\.\d+)?)?")
_SHELLS = frozenset({"bash", "sh", "source", "."})
_PLAIN = re.compile(r"python3?(?: -u)? (?P<script>[\w-][\w./-]*\.py)(?=\s|$)")
_STARTERS = frozenset({"torchrun", "accelerate", "deepspeed", "horovodrun", "mpirun", "mpiexec"})
_TAKES_A_VALUE = frozenset({"-W", "-X"})
_CREATES_NOTHING = frozenset({"pip", "pip3", "conda", "apt", "apt-get", "export", "echo", "ls", "nvidia-smi", "set",
                              "env", "pwd", "date", "which", "ulimit", "true", "sleep", "hostname", "cat"})  # fmt: skip
"""Programs after which the code folder holds the scripts that it held before."""
_MOST_NAMES = 2_000
_MOST_OF_A_FILE = 1024 * 1024
"""Characters of a file that are read."""
_FILES = 8
"""Files of one command that are read."""
_ENDINGS = (".py", ".json", ".sh")
_GRAMMAR = re.compile(r"[;&|()<>\n'\"\\]")
_BLANKS = re.compile(r"[ \t\r]+")
_SEVERAL = re.compile(r"&(?!&)|\bfor\b|\bwhile\b|\bxargs\b|\bparallel\b")


def check(job: Job, base: Path) -> Iterator[Finding]:
    """Findings on the words of a command.

    Args:
        job: The job.
        base: Folder that its code is relative to.
    """
    yield from _expanded_by_the_shell(job)
    if _LOCAL_RANK.search(job.command) and job.nodes not in (None, 1):
        yield Finding(
            "local-rank-from-rank",
            "command",
            "The command passes the global rank, `$RANK`, as the local rank",
            "A local rank counts the processes of one node; from the second node on the global rank is higher",
            "Write `$LOCAL_RANK`.",
            Level.ERROR if job.typed else Level.WARNING,
        )
    if job.code is not None and job.code.local:
        yield from _scripts(job.command, job.code, base)


def _expanded_by_the_shell(job: Job) -> Iterator[Finding]:
    if "${" not in job.command.replace("${{", ""):
        return
    for match in {found[0]: found for found in _SHELL.finditer(job.command)}.values():
        yield Finding(
            "binding-of-the-shell",
            "command",
            f"`{match[0]}` has one brace on each side, so that the shell expands it",
            "A binding has two braces on each side; the shell knows no such variable",
            f"Write `${{{{{match['kind']}.{match['name']}}}}}`.",
        )


def _scripts(command: str, code: Code, base: Path) -> Iterator[Finding]:
    """Scripts that the command starts and the code folder does not have.

    A script is looked for only as long as nothing ran that may have made it, fetched it or changed the folder.
    """
    plain = _PLAIN.match(command)
    if plain is not None and is_file(os.path.join(base, code.path, plain["script"])):  # noqa: PTH118 - as nearly all
        return
    folder = base / code.path
    beside = {include.rstrip("/").rsplit("/", 1)[-1].removesuffix(".zip") for include in code.includes}
    for step in steps(command):
        words = [word for word in step if not _ASSIGNMENT.fullmatch(word)]
        script = _script(words)
        if script is not None:
            first = script.removeprefix("./").split("/", 1)[0]
            if is_dir(folder) and first not in beside and not is_file(folder / script):
                yield _missing(script, folder, code.path)
            return
        if words and words[0].rsplit("/", 1)[-1] not in _CREATES_NOTHING:
            return


@lru_cache(maxsize=256)  # several checks of a job ask for those of its command
def steps(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each simple command, in order; none where the shell's grammar is not plain (unbalanced quotes)."""
    bound = _BINDING.sub("BOUND", command)
    if _GRAMMAR.search(bound) is None:  # as nearly all: reading those letter by letter takes a hundred times as long
        return (words,) if (words := tuple(word for word in _BLANKS.split(bound) if word)) else ()
    lexer = shlex.shlex(bound, posix=True, punctuation_chars=";&|()<>\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    found: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word.strip(";&|()<>\n"):
                found[-1].append(word)
            else:
                found.append([])
    except ValueError:
        return ()
    return tuple(tuple(each) for each in found if each)


def scripts(command: str) -> tuple[str, ...]:
    """The files of the code that a command starts, in order, as far as its words show them."""
    found = (_script([word for word in step if not _ASSIGNMENT.fullmatch(word)]) for step in steps(command))
    return tuple(dict.fromkeys(script for script in found if script is not None))


def plain_script(command: str) -> str | None:
    """The script that a command's last step runs with Python and nothing else; None where a launcher or a module runs.

    Shell grammar that may start more than one process (loops, background) is no plain command.
    """
    bound = _BINDING.sub("BOUND", command)
    if _GRAMMAR.search(bound) is None and (plain := _PLAIN.match(bound)) is not None:  # as most
        return plain["script"]
    if _SEVERAL.search(command.replace("&&", "")):
        return None
    *before, last = steps(command) or [[]]
    if any(word.rsplit("/", 1)[-1] in _STARTERS for step in (*before, last) for word in step):
        return None
    program, *rest = [word for word in last if not _ASSIGNMENT.fullmatch(word)] or [""]
    return _script([program, *rest]) if _PYTHON.fullmatch(program) and rest[:1] != ["-m"] else None


def _script(words: list[str]) -> str | None:
    """The file that a simple command starts, relative to the code; None where that is no file of the code."""
    program, *rest = words or [""]
    name = program.rsplit("/", 1)[-1]
    if _PYTHON.fullmatch(program) and rest[:1] == ["-m"] and rest[1:2] and rest[1].startswith("torch.distributed."):
        name, rest = "torchrun", rest[2:]
    if name in _STARTERS:
        found = next((word for word in rest if word.endswith(".py") and "=" not in word), None)
    elif _PYTHON.fullmatch(program):
        found = _first_argument(rest)
        found = found if found is not None and found.endswith(".py") else None
    elif name in _SHELLS and program == name:
        found = _first_argument(rest)
        found = found if found is not None and found.endswith(".sh") else None
    else:
        found = program if program.startswith("./") else None
    return None if found is None or found.startswith(("/", "~", "..")) or "$" in found or "BOUND" in found else found


def _first_argument(words: list[str]) -> str | None:
    """What follows the options of an interpreter; None where it runs a module or text."""
    waiting = iter(words)
    for word in waiting:
        if word in {"-m", "-c", "-"}:
            return None
        if word in _TAKES_A_VALUE:
            next(waiting, None)
        elif not word.startswith("-"):
            return word
    return None


def _missing(script: str, folder: Path, written: str) -> Finding:
    names = []
    for path in folder.rglob("*"):
        names.append(path.relative_to(folder).as_posix())
        if len(names) == _MOST_NAMES:
            break
    alike = [name for name in names if name.endswith((".py", ".sh"))]
    return Finding(
        "script-missing",
        "command",
        f"The command starts `{script}`, which is not in the code folder `{written}`",
        "A command runs in a copy of the code folder",
        did_you_mean(script.removeprefix("./"), alike, otherwise="Put it there, or name another `code` folder."),
        # A folder without any script may be filled by what builds the job.
        Level.ERROR if alike else Level.WARNING,
    )


def nebula(job: Job, command: str, base: Path) -> Iterator[Finding]:
    """Findings on scripts that import Nebula, and on DeepSpeed configurations that switch it on.

    Args:
        job: The job.
        command: Its command as each node runs it.
        base: Folder that its code is relative to.
    """
    for name, text in _texts(job, command, base):
        if "nebula" in text and (found := check_nebula_gone_file(text, name=name)) is not None:
            yield found


def knows_where_it_was(part: Plan) -> bool:
    """Whether a file that the command names speaks of a checkpoint."""
    texts = [text for _, text in _texts(part.job, part.enriched.command, part.base)]
    return any(SPEAKS.search(text) for text in texts)


def _texts(job: Job, command: str, base: Path) -> Iterator[tuple[str, str]]:
    """Name and content of the files of the code that the words of a command name."""
    if job.code is None or not job.code.local:
        return
    words = dict.fromkeys(word.rpartition("=")[2] for step in steps(command) for word in step)
    for name in [word for word in words if word.endswith(_ENDINGS)][:_FILES]:
        file = os.path.join(base, job.code.path, name)  # noqa: PTH118 - as above, for each of many jobs
        try:
            now = os.stat(file)  # noqa: PTH116
            if stat.S_ISREG(now.st_mode):
                yield name, _text(file, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        except (OSError, ValueError):
            continue


@lru_cache(maxsize=32)
def _text(file: str, *_: int) -> str:
    """The text of a file; further arguments tell its states apart, as many jobs run the same script.

    Raises:
        OSError: It cannot be read.
    """
    with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
        return opened.read(_MOST_OF_A_FILE)
