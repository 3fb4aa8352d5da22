"""A build context's Dockerfile: the image that it starts from, and the packages that it installs.

Nothing is built. ``pip install`` and ``conda install`` become requirements; every other command is named, since what
it makes is not in the stand-in. Source: https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path

from amlstack.base.paths import is_dir, is_file
from amlstack.code_reading.shell import split_words
from amlstack.images.requirements import PipLines, add_conda_package, conda_package, read_conda
from amlstack.images.standins import Absent


@dataclass(slots=True)
class Dockerfile:
    """The result of reading a Dockerfile.

    Attributes:
        image: What its last stage starts from, with its arguments put in; ``""`` where it has no FROM.
        packages: What its pip and conda commands install.
        python: The Python that a conda command asks for, in pip's words; ``""`` for none.
        own: A conda environment of its own is made: the image's packages are not seen in it.
        variables: What ENV sets.
        skipped: Commands that were not carried out, each once, in a few words.
    """

    image: str = ""
    packages: PipLines = field(default_factory=PipLines)
    python: str = ""
    own: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ImageStage:
    """The stage that is read: its result, where it works, and where files of the context were copied to."""

    found: Dockerfile
    context: Path
    work: str = "/"
    copies: dict[str, Path] = field(default_factory=dict)

    def file(self, path: str) -> Path | None:
        """The file of the context that a path of the image means."""
        inside = posixpath.normpath(posixpath.join(self.work, path))
        for target in sorted(self.copies, key=len, reverse=True):
            source = self.copies[target]
            if inside == target:
                return source
            below = inside.removeprefix(target.rstrip("/") + "/")
            if below != inside and is_dir(source) and (source / below).exists():
                return source / below
        named = self.context / posixpath.basename(path)
        return named if is_file(named) else None


_INSTRUCTION = re.compile(r"^\s*(?P<word>[A-Za-z]+)\s+(?P<rest>.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::(?P<mark>[-+])(?P<other>[^}]*))?\}|(?P<plain>\w+))")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(?P<word>\w+)[\"']?")


def read_dockerfile(text: str, context: Path) -> Dockerfile:
    """Return what a Dockerfile installs, as far as it can be known from its text.

    Args:
        text: Its content.
        context: The folder that its COPY starts from.
    """
    arguments: dict[str, str] = {}
    stages: dict[str, ImageStage] = {}
    stage = ImageStage(Dockerfile(), context)
    for word, rest in _instructions(text):
        known = {**arguments, **stage.found.variables}
        match word:
            case "FROM":
                image, name = _from(_expanded(rest, known))
                before = stages.get(image.lower())
                stage = ImageStage(Dockerfile(image=image), context) if before is None else deepcopy(before)
                if name:
                    stages[name.lower()] = stage
                stages[str(len(stages))] = stage
            case "ARG":
                name, _, default = rest.partition("=")
                arguments.setdefault(name.strip(), _expanded(default.strip().strip("\"'"), known))
            case "ENV":
                stage.found.variables.update(_assignments(_expanded(rest, known)))
            case "WORKDIR":
                stage.work = posixpath.normpath(posixpath.join(stage.work, _expanded(rest, known).strip()))
            case "COPY" | "ADD":
                _copied(stage, _expanded(rest, known), stages)
            case "RUN":
                for command in _commands(_expanded(rest, known)):
                    _run(stage, command)
            case _:
                pass
    return stage.found


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = iter(text.splitlines())
    for raw in lines:
        if not raw.strip() or raw.lstrip().startswith("#"):
            continue
        whole = raw
        while whole.rstrip().endswith("\\"):
            following = next(lines, None)
            if following is None:
                break
            if following.lstrip().startswith("#") or not following.strip():
                continue
            whole = whole.rstrip()[:-1] + " " + following
        found = _INSTRUCTION.match(whole.rstrip("\\"))
        if found is None:
            continue
        rest = found["rest"].strip()
        if found["word"].upper() in ("RUN", "COPY") and (here := _HEREDOC.search(rest)) is not None:
            body = []
            for line in lines:
                if line.strip() == here["word"]:
                    break
                body.append(line)
            rest = "\n".join(body) if found["word"].upper() == "RUN" else rest
        yield found["word"].upper(), rest


def _from(rest: str) -> tuple[str, str]:
    words = [word for word in rest.split() if not word.startswith("--")]
    name = words[2] if len(words) > 2 and words[1].lower() == "as" else ""
    return (words[0] if words else ""), name


def _expanded(text: str, known: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name = found["braced"] or found["plain"]
        if found["mark"] == "-":
            return known.get(name) or found["other"]
        if found["mark"] == "+":
            return found["other"] if known.get(name) else ""
        return known.get(name, found[0])

    return _VARIABLE.sub(value, text)


def _assignments(rest: str) -> Iterator[tuple[str, str]]:
    if "=" not in rest.split(maxsplit=1)[0]:
        name, _, value = rest.partition(" ")
        yield name, value.strip()
        return
    for word in split_words(rest, _SEPARATORS) or rest.split():
        name, equals, value = word.partition("=")
        if equals:
            yield name, value


_OF_A_STAGE = re.compile(r"--from=(?P<stage>\S+)\s+(?:--\S+\s+)*(?P<source>\S+)")
_INSTALLED = re.compile(r"(?:conda|mamba|env\b|envs\b|site-packages|dist-packages|/usr/local/?$|/\.local\b)")
"""Folders of an image that hold a Python with its packages."""


def _copied(stage: ImageStage, rest: str, stages: dict[str, ImageStage]) -> None:
    if "--from=" in rest:
        taken = _OF_A_STAGE.search(rest)
        before = stages.get(taken["stage"].lower()) if taken else None
        if taken and before is not None and _INSTALLED.search(taken["source"]):
            stage.found.packages.add(before.found.packages)
            stage.found.python = before.found.python or stage.found.python
            stage.found.own = stage.found.own or before.found.own
        return
    words = json.loads(rest) if rest.lstrip().startswith("[") else split_words(rest, _SEPARATORS) or rest.split()
    words = [str(word) for word in words if not str(word).startswith("--")]
    if len(words) < 2:
        return
    *sources, target = words
    inside = posixpath.normpath(posixpath.join(stage.work, target))
    for name in sources:
        source = stage.context / name.lstrip("/")
        into = target.endswith(("/", ".")) or len(sources) > 1
        whole = name in (".", "./") or is_dir(source)
        stage.copies[inside if whole or not into else posixpath.join(inside, posixpath.basename(name))] = source


_SEPARATORS = "&|;"
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


def _commands(text: str) -> Iterator[list[str]]:
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
        for word in split_words(line, _SEPARATORS) or line.split():
            if _SEPARATOR.match(word):
                yield command
                command = []
            else:
                command.append(word)
        yield command


def _run(stage: ImageStage, command: list[str]) -> None:
    """Add to a stage what one command installs, or its words where that is not known."""
    command = _bare(command)
    if not command:
        return
    program, rest = command[0], command[1:]
    if program in ("sh", "bash", "/bin/sh", "/bin/bash") and rest[:1] and rest[0].endswith("c") and len(rest) > 1:
        for inner in _commands(rest[1]):
            _run(stage, inner)
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
        _run(stage, inner)
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
    found = conda_package(word)
    if found is None:
        return
    name, rule = found
    if name == "python":
        stage.found.python = rule.removeprefix("==").removesuffix(".*")
    elif name not in ("conda", "pip"):
        add_conda_package(stage.found.packages, name, rule)


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
    text = file.read_text(encoding="utf-8-sig", errors="replace")
    stage.found.python = read_conda(text, file.parent, stage.found.packages) or stage.found.python


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
