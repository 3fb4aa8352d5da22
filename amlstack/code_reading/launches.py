"""The launchers that a command starts, itself or in shell scripts of its code, and their options.

Variables are filled in where their values are known. What stands in a branch or a function may never run, and is left
out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.shell import script_of, split_words
from amlstack.code_reading.starters import MAY_START, STARTERS, given_options, launch_of, trainer_options, walked

LIGHTNING = "Lightning"
"""The name of a launch by the Trainer's arguments, which starts its ranks from the script itself."""
VARIABLE = "MASTER_ADDR"
"""Stands for a launch where a command gives all processes this variable, without starting a launcher."""
UNKNOWN = "$?"
"""In the place of a value that only the run knows."""
OF_AZURE = re.compile(
    r"(?:AZ|OMPI_|MASTER_|PMI)\w*|(?:LOCAL_|NODE_)?RANK|WORLD_SIZE|CUDA_VISIBLE_DEVICES|HOME|HOSTNAME"
)
"""Variables that a process may find set, whatever the job says."""

_SEPARATORS = ";&|()<>\n"
_BEFORE = frozenset(
    ("exec", "env", "nohup", "time", "timeout", "numactl", "sudo", "nice", "stdbuf", "conda", "uv", "poetry", "command",
     "eval", "taskset", "nsys", "ncu")
)  # fmt: skip
"""Programs that become the one that their words name."""
_OPENS = {"if": "if", "case": "if", "for": "loop", "while": "loop", "until": "loop", "select": "loop"}
_CLOSES = frozenset(("fi", "esac", "done"))
_GOES_ON = frozenset(("then", "else", "elif", "do", "!"))
_DECLARES = frozenset(("export", "declare", "local", "readonly", "typeset"))
_SUBSTITUTED = re.compile(r"\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|\$\{\{.*?\}\}", re.DOTALL)
_NAME = r"[A-Za-z_]\w*|[0-9@*#]"
_VARIABLE = re.compile(rf"\$(?:\{{({_NAME})(?:\[[@*]\])?(?::?([-=])([^{{}}]*))?\}}|({_NAME}))")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_HEREDOC = re.compile(r"(?<!<)<<(?!<)-?\s*[\"']?(\w+)")
_TORCHRUN = ("nnodes", "nproc-per-node", "node-rank", "master-addr", "rdzv-backend", "rdzv-endpoint")
_FILES = 8
_MOST = 1 << 16
"""Characters of a script that are read."""
_QUOTED = 120
"""Lines that one pair of quotes holds at most: more are no shell's words, and looking at each takes long."""


class Launch(NamedTuple):
    """One launcher that certainly starts.

    Attributes:
        name: Its row of `STARTERS`, `LIGHTNING`, or `VARIABLE`.
        options: Its options without dashes, with `-` for `_`; a flag's value is empty, an unknown one's holds `$`.
        started: The words of what it starts.
        complete: False where more options stand in a variable that is not known.
        unset: Variables that are taken out of its environment.
        some_gpus: True where a variable says which GPUs of the node it sees.
        script: The script of the code in which it stands; empty for the command itself.
        line: Its line there; 0 for the command itself.
    """

    name: str
    options: Mapping[str, str]
    started: tuple[str, ...] = ()
    complete: bool = True
    unset: frozenset[str] = frozenset()
    some_gpus: bool = False
    script: str = ""
    line: int = 0


def launches_in(command: str, variables: Mapping[str, object], folder: str | None) -> Iterator[Launch]:
    """Yield the launchers that a command starts, in order.

    Args:
        command: The command; its bindings are unknown values unless they were filled in before.
        variables: The job's own.
        folder: Its code on this machine; None where there is none.
    """
    if MAY_START.search(command) is not None:
        known = {name: None if isinstance(value, dict) else str(value) for name, value in variables.items()}
        yield from _Reader(known, {*known}, folder, [_FILES]).read(command, "")


class _Reader:
    """Follows a command as a shell does, with the variables that are known and those that its children get."""

    def __init__(
        self, known: dict[str, str | None], exported: set[str], folder: str | None, left: list[int], place: str = ""
    ) -> None:
        self.known, self.exported = known, exported
        self.folder, self.place = folder, place
        self.left = left
        self.unset: set[str] = set()

    def read(self, text: str, script: str) -> Iterator[Launch]:
        """The launchers of a text, which is a command or a script."""
        blocks: list[str] = []
        array: list[str] | None = None
        name, after = "", ""
        before: tuple[str, ...] = ()
        for line, logical in _logical_lines(_without_substitutions(text)):
            words: list[str] = []
            for word in (*(split_words(logical, _SEPARATORS) or ()), "\n"):
                if array is not None and ")" not in word:
                    array += self._filled(word)
                elif word.strip(_SEPARATORS):
                    words.append(word)
                elif array is not None:
                    self.known[name], array, words = " ".join(array), None, []
                elif word == "(" and words and words[-1].endswith("="):
                    name, array = words[-1].rstrip("+="), []
                else:
                    if words[:1] == ["for"]:
                        self.known |= dict.fromkeys(words[1:2])
                    kept = _opened([*words], blocks, function=after.startswith("()"))
                    maybe = "if" in blocks or after == "||" or (after == "&&" and _is_test(before))
                    if kept:
                        yield from self._step(kept, script, line if script else 0, maybe=maybe)
                    before, after = (tuple(words), word) if words or word != "\n" else (before, after)
                    words = []

    def _step(self, words: list[str], script: str, line: int, *, maybe: bool) -> Iterator[Launch]:
        """One simple command."""
        if words[0] in _DECLARES:
            names = [word for word in words[1:] if not word.startswith("-")]
            self.exported |= {name.partition("=")[0] for name in names} if words[0] == "export" else set()
            words = [word for word in names if "=" in word]
        own = 0
        while own < len(words) and _ASSIGNED.fullmatch(words[own]):
            own += 1
        if own == len(words):
            for word in words:
                name, _, value = word.partition("=")
                found = " ".join(self._filled(value))
                if name.endswith("+"):
                    name = name.rstrip("+")
                    found = f"{self.known.get(name) or UNKNOWN}{found}"
                self.known[name] = None if maybe or "$" in found else found
                if name == VARIABLE and not maybe:
                    yield Launch(VARIABLE, {"value": found}, script=script, line=line)
            return
        given = [part for word in words[own:] for part in self._filled(word)]
        program = given[0].rsplit("/", 1)[-1] if given else ""
        if program in {"unset", "shift", "read"}:
            gone = given[1:] if program != "shift" else [each for each in self.known if each.isdigit()]
            self.known |= dict.fromkeys(gone)
            self.unset |= {*gone} if program == "unset" and not maybe else set()
            return
        if maybe or not given:
            return
        if program == "cd" and "$" not in given[-1]:
            self.place = os.path.normpath(os.path.join(self.place, given[-1]))  # noqa: PTH118 - a word of a command
        child = {name: value for name, value in self.known.items() if name in self.exported}
        for word in words[:own]:
            child[word.partition("=")[0]] = " ".join(self._filled(word.partition("=")[2]))
        unset = {given[at + 1] for at, word in enumerate(given[:-1]) if word == "-u"} if program == "env" else set()
        for each in self._started(given, child):
            place = (each.script, each.line) if each.script else (script, line)
            some = each.some_gpus or "CUDA_VISIBLE_DEVICES" in child
            yield each._replace(unset=each.unset | self.unset | unset, some_gpus=some, script=place[0], line=place[1])

    def _started(self, given: list[str], child: dict[str, str | None]) -> Iterator[Launch]:
        if given[0].rsplit("/", 1)[-1] in _BEFORE:
            given = given[next((at for at, word in enumerate(given) if _starts(word)), 0) :]
        program, *rest = given[0].rsplit("/", 1)[-1], *given[1:]
        name, begin = launch_of(program, rest) if program in STARTERS or program.startswith("python") else ("", 0)
        if name in STARTERS and name != "amlnode":
            yield _launch(name, rest[begin:], child)
        elif program.startswith("python") and (trainer := trainer_options(rest)):
            yield Launch(LIGHTNING, trainer, tuple(rest))
        elif program in {"bash", "sh"} and (text := _text_of_shell(rest)):
            yield from _Reader(child, {*child}, self.folder, self.left, self.place).read(text, "")
        elif (found := script_of(given)) and found.endswith(".sh") and self.folder is not None and self.left[0]:
            self.left[0] -= 1
            path = os.path.normpath(os.path.join(self.place, found))  # noqa: PTH118 - a word of a command
            text = (text_of(os.path.join(self.folder, path)) or "")[:_MOST]  # noqa: PTH118 - as above
            if program in {"source", "."}:
                yield from self.read(text, path)
            elif MAY_START.search(text):
                own = given[given.index(found) + 1 :]
                child |= {str(at + 1): word for at, word in enumerate(own)}
                child |= {"@": " ".join(own), "*": " ".join(own), "#": str(len(own))}
                yield from _Reader(child, {*child}, self.folder, self.left, self.place).read(text, path)

    def _filled(self, word: str) -> list[str]:
        """A word with its variables filled in, split where the shell splits their values."""
        if "$" not in word:
            return [word]
        return self._values(word, 0).split()

    def _values(self, word: str, depth: int) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1] or found[4]
            known = self.known.get(name)
            if known is not None and (known or not found[2]):
                return known
            if not found[2] or name in self.known or OF_AZURE.fullmatch(name) or depth > _FILES:
                return found[0]
            return self._values(found[3], depth + 1)

        return _VARIABLE.sub(value, word)


def _launch(name: str, words: list[str], known: Mapping[str, str | None]) -> Launch:
    options, end = given_options(words), walked(words)[1]
    for option in _TORCHRUN if name == "torchrun" else ():
        for short in [each for each in options if len(each) > 3 and option.startswith(each)]:
            options[option] = options.pop(short)
        if (value := known.get("PET_" + option.upper().replace("-", "_"))) is not None:
            options.setdefault(option, value)
    return Launch(name, options, tuple(words[end:]), complete="$" not in "".join(words[end : end + 1]))


def _text_of_shell(words: list[str]) -> str:
    """The command in ``bash -c 'command'``, whose option may hold others (``-lc``); empty for none."""
    at = next((at for at, word in enumerate(words) if not word.startswith("-")), 0)
    return words[at] if at and re.fullmatch(r"-\w*c", words[at - 1]) else ""


def _starts(word: str) -> bool:
    name = word.rsplit("/", 1)[-1]
    return name in STARTERS or name in {"python", "python3", "bash", "sh"}


def _is_test(words: tuple[str, ...]) -> bool:
    return bool(words) and (words[-1] in {"]", "]]"} or words[0] in {"[", "[[", "test", "grep", "command", "which"})


def _opened(words: list[str], blocks: list[str], *, function: bool) -> list[str]:
    """The words of a step without the shell's own; notes the blocks that they open and close."""
    while words:
        first = words[0]
        if first in _OPENS:
            blocks.append(_OPENS[first])
            if first in {"for", "case", "select"}:
                return []
        elif first in _CLOSES or first == "}":
            if blocks:
                blocks.pop()
        elif first == "{":
            blocks.append("if" if function else "{")
        elif first == "function":
            blocks.append("if")
            return []
        elif first not in _GOES_ON:
            return words
        words = words[1:]
    return words


def _without_substitutions(text: str) -> str:
    """A text with an unknown value in the place of each command's output, of arithmetic and of a binding."""
    while (shorter := _SUBSTITUTED.sub(lambda found: UNKNOWN + "\\\n" * found[0].count("\n"), text)) != text:
        text = shorter
    return text


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines as the shell sees them, with the number of the first: continued, quoted over several, without comments."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        first, line = at, lines[at]
        at += 1
        if line.lstrip().startswith("#"):
            continue
        while True:
            if line.endswith("\\") and at < len(lines):
                line, at = f"{line[:-1]} {lines[at]}", at + 1
            elif "#" in line and (cut := re.search(r"\s#", line)) and split_words(line[: cut.start()]) is not None:
                line = line[: cut.start()]
            elif ("'" in line or '"' in line) and at < min(len(lines), first + _QUOTED) and split_words(line) is None:
                line, at = f"{line}\n{lines[at]}", at + 1
            else:
                break
        if (here := _HEREDOC.search(line)) is not None:
            while at < len(lines) and lines[at].strip() != here[1]:
                at += 1
            at += 1
        yield first + 1, line
