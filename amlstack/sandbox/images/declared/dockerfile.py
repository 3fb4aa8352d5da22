"""A build context's Dockerfile: the image that it starts from, and the packages that it installs.

Nothing is built. ``pip install`` and ``conda install`` become requirements; every other command is named, since what
it makes is not in the stand-in. Source: https://docs.docker.com/reference/dockerfile/
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import TYPE_CHECKING

from amlstack.base.paths import is_dir
from amlstack.code_reading.shell import split_words
from amlstack.sandbox.images.declared.image_stage import Dockerfile, ImageStage
from amlstack.sandbox.images.declared.pip_lines import PipLines
from amlstack.sandbox.images.declared.run_commands import SEPARATORS, commands, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_INSTRUCTION = re.compile(r"^\s*(?P<word>[A-Za-z]+)\s+(?P<rest>.*)$", re.DOTALL)
_VARIABLE = re.compile(r"\$(?:\{(?P<braced>\w+)(?::(?P<mark>[-+])(?P<other>[^}]*))?\}|(?P<plain>\w+))")
_HEREDOC = re.compile(r"<<-?\s*[\"']?(?P<word>\w+)[\"']?")


def read(text: str, context: Path) -> Dockerfile:
    """What a Dockerfile installs, as far as it can be known from its text.

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
                stage = ImageStage(Dockerfile(image=image), context) if before is None else _copy(before)
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
                _copied(stage, _expanded(rest, known))
            case "RUN":
                for command in commands(_expanded(rest, known)):
                    run(stage, command)
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


def _copy(stage: ImageStage) -> ImageStage:
    """A stage that goes on from another one of the same file."""
    old = stage.found
    packages = PipLines(
        [*old.packages.requirements],
        [*old.packages.constraints],
        [*old.packages.options],
        [*old.packages.absent],
        [*old.packages.notes],
        [*old.packages.files],
        dict(old.packages.raised),
    )
    found = Dockerfile(old.image, packages, old.python, old.own, dict(old.variables), [*old.skipped])
    return ImageStage(found, stage.context, stage.work, dict(stage.copies))


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
    for word in split_words(rest, SEPARATORS) or rest.split():
        name, equals, value = word.partition("=")
        if equals:
            yield name, value


def _copied(stage: ImageStage, rest: str) -> None:
    if "--from=" in rest:
        return
    words = json.loads(rest) if rest.lstrip().startswith("[") else split_words(rest, SEPARATORS) or rest.split()
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
