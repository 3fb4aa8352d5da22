"""Words of shell commands: the simple commands of a line, and the scripts and programs that they start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from amlstack.code_reading.starters import MODULES, PROGRAMS, STARTERS, launch_of

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_BINDING = re.compile(r"\$\{\{.*?\}\}|\$?\[\[|\]\]", re.DOTALL)
_PYTHON = re.compile(r"(?:\S*/)?python(?:3(?:\.\d+)?)?")
_MODULE = r"[A-Za-z_]\w*(?:\.\w+)*"
_SHELLS = frozenset({"bash", "sh", "source", "."})
_PLAIN = re.compile(r"python3?(?: -u)? (?P<script>[\w-][\w./-]*\.py)(?=\s|$)")
_TAKES_A_VALUE = frozenset({"-W", "-X"})
_GRAMMAR = re.compile(r"[;&|()<>\n'\"\\]")
_BLANKS = re.compile(r"[ \t\r]+")
_SEVERAL = r"&(?!&)|\bfor\b|\bwhile\b|\bxargs\b|\bparallel\b"
_PIECE = re.compile(r"""\\.|'[^']*'?|"(?:\\.|[^"\\])*"?|&&|.""", re.DOTALL)
_PROCESS = re.compile(
    rf"{_PYTHON.pattern}(?:\s+-u(?=\s))?\s+(?P<rest>(?:-m\s+\S|[^\s-]).*)|(?P<script>\S+\.py(?:\s.*)?)", re.DOTALL
)
"""One Python process: its interpreter, or the script itself."""


class Split(NamedTuple):
    """A command taken apart: what runs before, and the script or ``-m module`` with its arguments."""

    before: str
    program: str


@lru_cache(maxsize=256)  # several checks of a job ask for those of its command
def steps(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of each simple command, in order; none where the shell's grammar is not plain (unbalanced quotes)."""
    bound = _BINDING.sub("BOUND", command.replace("\\\n", ""))
    if _GRAMMAR.search(bound) is None:  # as nearly all: reading those letter by letter takes a hundred times as long
        return (words,) if (words := tuple(word for word in _BLANKS.split(bound) if word)) else ()
    found: list[list[str]] = [[]]
    for word in split_words(bound, ";&|()<>\n") or ():
        if not word or word.strip(";&|()<>\n"):
            found[-1].append(word)
        else:
            found.append([])
    return tuple(tuple(each) for each in found if each)


def split_words(text: str, separators: str = "") -> list[str] | None:
    """A text in words as a shell splits it, runs of separators as words of their own; None for unbalanced quotes."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=separators)
    lexer.whitespace = "".join(blank for blank in " \t\r\n" if blank not in separators)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        return list(lexer)
    except ValueError:
        return None


@lru_cache(maxsize=256)
def scripts(command: str) -> tuple[str, ...]:
    """The files of the code that a command starts, in order, as far as its words show them."""
    found = (script_of(step) or _module_of(step) for step in steps(command))
    return tuple(dict.fromkeys(script for script in found if script is not None))


def plain_script(command: str) -> str | None:
    """The script that a command's last step runs with Python and nothing else; None where a starter or a module runs.

    Shell grammar that may start more than one process (loops, background) is no plain command.
    """
    bound = _BINDING.sub("BOUND", command)
    if _GRAMMAR.search(bound) is None and (plain := _PLAIN.match(bound)) is not None:  # as most
        return plain["script"]
    if re.search(_SEVERAL, command.replace("&&", "")):
        return None
    *before, last = steps(command) or [()]
    if any(_is_starter(word) for step in (*before, last) for word in step):
        return None
    program, *rest = [word for word in last if not ASSIGNMENT.fullmatch(word)] or [""]
    return script_of([program, *rest]) if _PYTHON.fullmatch(program) and not launch_of("python", rest)[0] else None


def script_of(step: Sequence[str]) -> str | None:
    """The file that a simple command starts, relative to the code; None where that is no file of the code."""
    program, *rest = [word for word in step if not ASSIGNMENT.fullmatch(word)] or [""]
    name = program.rsplit("/", 1)[-1]
    if _is_starter(program) or (_PYTHON.fullmatch(program) and launch_of("python", rest)[0]):
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


def _module_of(step: Sequence[str]) -> str | None:
    """The file of the module that a simple command starts with `-m`, where the code has it; None for a launcher."""
    program, *rest = [word for word in step if not ASSIGNMENT.fullmatch(word)] or [""]
    named = (
        name for flag, name in pairwise(rest) if flag == "-m" and name not in MODULES and re.fullmatch(_MODULE, name)
    )
    found = next(named, None) if _is_starter(program) or _PYTHON.fullmatch(program) else None
    return None if found is None else f"{found.replace('.', '/')}.py"


def plain_file(command: str) -> str | None:
    """The script of a command that begins as most do: `python train.py`."""
    found = _PLAIN.match(command)
    return None if found is None else found["script"]


def last_step(command: str) -> int:
    """The index at which a command's last step begins, after ``&&``, ``;`` or a line end, quotes respected."""
    begin, end = 0, len(command.rstrip().rstrip(";&"))
    for piece in _PIECE.finditer(command, 0, end):
        if piece[0] in {"&&", ";", "\n"} and command[piece.end() : end].strip():
            begin = piece.end()
    return begin + len(command[begin:]) - len(command[begin:].lstrip())


def split(command: str) -> Split | None:
    """Take the last step of a command apart; None when that is not one python process.

    ``pip install -r r.txt && python -u train.py --lr 1`` is ``("pip install -r r.txt && ", "train.py --lr 1")``;
    torchrun runs the interpreter itself, with ``-u``, so that other interpreter flags would be lost: None too.
    """
    start = last_step(command)
    found = _PROCESS.fullmatch(command[start:].rstrip())
    if found is None or starter(command):
        return None
    return Split(command[:start], (found["rest"] or found["script"]).strip())


def starter(command: str) -> str | None:
    """The program by which the command's last step starts ranks itself (torchrun, mpirun, …), if it does."""
    words = command[last_step(command) :].split(maxsplit=3)
    if words and _is_starter(words[0]):
        return words[0]
    by_module = len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1] == "-m" and words[2] in MODULES
    # Most verbs of amlnode, such as `preflight`, run in ranks that the job has started.
    return " ".join(words[:3]) if by_module and words[2] != "amlnode" else None


def default_port(step: Sequence[str]) -> int:
    """The port that a simple command's starter takes where none is given; 0 for none, and for one that is free."""
    program, *rest = [word for word in step if not ASSIGNMENT.fullmatch(word)] or [""]
    found = STARTERS.get(launch_of(program.rsplit("/", 1)[-1], rest)[0])
    return 0 if found is None else found.port


def _is_starter(program: str) -> bool:
    name = program.rsplit("/", 1)[-1]
    return name in PROGRAMS and not _PYTHON.fullmatch(name)


def _first_argument(words: list[str]) -> str | None:
    """The first argument after the options of an interpreter; None where it runs a module or text."""
    waiting = iter(words)
    for word in waiting:
        if word in {"-m", "-c", "-"}:
            return None
        if word in _TAKES_A_VALUE:
            next(waiting, None)
        elif not word.startswith("-"):
            return word
    return None
