"""The commands of a Dockerfile's RUN: what they install, by pip, by conda, or by others that are named."""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING

from amlstack.base.paths import is_file
from amlstack.code_reading.shell import split_words
from amlstack.sandbox.images.absent import Absent
from amlstack.sandbox.images.declared import conda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amlstack.sandbox.images.declared.image_stage import ImageStage

SEPARATORS = "&|;"
_SEPARATOR = re.compile(r"^(&&|\|\||;|\||&)$")
_PIP = re.compile(r"^(.*/)?pip[\d.]*$")
_PYTHON = re.compile(r"^(.*/)?python[\d.]*$")
_CONDA = re.compile(r"^(.*/)?(conda|mamba|micromamba)$")
_QUIET = frozenset(
    {
        *("rm", "echo", "mkdir", "cd", "ln", "chmod", "chown", "true", "set", "export", "find", "ldconfig", "hash"),
        *("cat", "ls", "mv", "cp", "touch", "printf", "test", "[", "which", "unset", "source", ".", "sed", "useradd"),
        *("groupadd", "locale-gen", "update-alternatives", "xargs", "exit", ":", "fi", "then", "else", "done", "pwd"),
    }
)
"""Commands that bring nothing to the image which a stand-in could lack."""
_CONDA_VALUES = frozenset({"-n", "--name", "-p", "--prefix", "-c", "--channel", "--solver", "-f", "--file"})


def commands(text: str) -> Iterator[list[str]]:
    """The commands of one RUN, in words; those that `&&`, `;` or a pipe separates are several."""
    if text.lstrip().startswith("["):
        try:
            yield [str(word) for word in json.loads(text)]
        except ValueError:
            pass
        else:
            return
    for line in text.splitlines():
        command: list[str] = []
        for word in split_words(line, SEPARATORS) or line.split():
            if _SEPARATOR.match(word):
                yield command
                command = []
            else:
                command.append(word)
        yield command


def run(stage: ImageStage, command: list[str]) -> None:
    """Add to a stage what one command installs, or its words where that is not known."""
    command = _bare(command)
    if not command:
        return
    program, rest = command[0], command[1:]
    if program in ("sh", "bash", "/bin/sh", "/bin/bash") and rest[:1] and rest[0].endswith("c") and len(rest) > 1:
        for inner in commands(rest[1]):
            run(stage, inner)
    elif _PYTHON.match(program) and rest[:2] == ["-m", "pip"]:
        _pip(stage, rest[2:])
    elif _PIP.match(program):
        _pip(stage, rest)
    elif program.endswith("uv") and rest[:1] == ["pip"]:
        _pip(stage, rest[1:])
    elif _CONDA.match(program):
        _conda(stage, rest)
    elif program not in _QUIET:
        _skip(stage, command)


def _bare(command: list[str]) -> list[str]:
    """A command without what stands before it: variables, ``sudo``, RUN's own options, words of the shell."""
    rest = list(command)
    while rest and (
        "=" in rest[0].partition("/")[0]
        or rest[0] in ("sudo", "time", "exec", "if", "while", "do", "!", "(", "{", "then")
    ):
        rest.pop(0)
    return rest


def _pip(stage: ImageStage, words: list[str]) -> None:
    while words and words[0].startswith("-"):
        words = words[1:]
    if words[:1] != ["install"]:
        return
    stage.found.packages.words([word for word in words[1:] if not word.startswith((">", "2>"))], stage.file)


def _conda(stage: ImageStage, words: list[str]) -> None:
    if words[:1] == ["run"]:
        inner = _after_options(words[1:])
        run(stage, inner)
        return
    if words[:1] == ["env"] and words[1:2] in (["create"], ["update"]):
        stage.found.own = stage.found.own or words[1] == "create"
        _conda_file(stage, words[2:])
        return
    if words[:1] not in (["install"], ["create"], ["update"]):
        return
    stage.found.own = stage.found.own or words[0] == "create"
    rest = iter(words[1:])
    for word in rest:
        if word in ("-f", "--file"):
            _conda_file(stage, ["-f", next(rest, "")])
        elif word in _CONDA_VALUES:
            next(rest, "")
        elif not word.startswith("-"):
            _conda_package(stage, word)


def _conda_package(stage: ImageStage, word: str) -> None:
    found = conda.package(word)
    if found is None:
        return
    name, rule = found
    if name == "python":
        stage.found.python = rule.removeprefix("==").removesuffix(".*")
    elif name not in ("conda", "pip"):
        conda.add(stage.found.packages, name, rule)


def _conda_file(stage: ImageStage, words: list[str]) -> None:
    name = ""
    for index, word in enumerate(words):
        if word in ("-f", "--file"):
            name = words[index + 1] if index + 1 < len(words) else ""
        elif word.startswith(("--file=", "-f=")):
            name = word.partition("=")[2]
    file = stage.file(name or "environment.yml")
    if file is None or not is_file(file):
        stage.found.packages.absent.append(Absent(f"conda's file {name}".strip(), "it is not in the build context"))
        return
    python, found = conda.read(file.read_text(encoding="utf-8-sig", errors="replace"), file.parent)
    stage.found.python = python or stage.found.python
    into = stage.found.packages
    into.requirements += found.requirements
    into.constraints += found.constraints
    into.options += found.options
    into.absent += found.absent
    into.notes += found.notes
    into.files += found.files
    into.raised |= found.raised


def _after_options(words: list[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option in _CONDA_VALUES and rest:
            rest.pop(0)
    return rest


def _skip(stage: ImageStage, command: list[str]) -> None:
    program = posixpath.basename(command[0])
    subject = next((word for word in command[1:] if not word.startswith("-")), "")
    if program in ("apt-get", "apt", "yum", "apk", "dnf", "microdnf"):
        packages = [word for word in command[1:] if not word.startswith("-") and word not in ("install", "add", "-y")]
        if subject not in ("install", "add"):
            return
        text = f"{program} {subject} {' '.join(packages)}"
    else:
        text = " ".join(command)
    line = text if len(text) <= 60 else f"{text[:57]}…"
    if line not in stage.found.skipped:
        stage.found.skipped.append(line)
