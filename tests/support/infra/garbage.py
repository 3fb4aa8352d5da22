"""Bad job files and settings, made at random: good ones damaged, and nonsense of the right words."""

from __future__ import annotations

import ast
import copy
import random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support import yaml_files
from tests.support.infra.bad_values import LITERALS, TEXTS, VALUES
from tests.support.infra.good_files import PYTHON, SETTINGS, YAMLS

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (*(("yaml", name) for name in YAMLS), ("python", "job"), ("python", "job"), ("settings", "stack"))


class Garbage(NamedTuple):
    """A bad file: whether it is a job file or settings, its name, its content."""

    kind: str
    name: str
    content: bytes


def make(seed: int) -> Garbage:
    """The bad file of a number, the same at each call."""
    chance = random.Random(seed)
    kind, name = chance.choice(KINDS)
    if kind == "python":
        return Garbage(kind, "job.py", _python(chance))
    text = SETTINGS if kind == "settings" else YAMLS[name]
    file = "Pulumi.team.yaml" if kind == "settings" else "job.yml"
    way = chance.random()
    if way < 0.6:
        content = yaml_files.dump(_damaged(yaml_files.load(text), chance, kind))
    elif way < 0.75:
        content = yaml_files.dump(_nonsense(chance, _words(yaml_files.load(text)), kind))
    else:
        content = text
    if way >= 0.75 or chance.random() < 0.1:
        content = _torn(content, chance)
    data = content.encode("utf-8", "surrogatepass")
    if chance.random() < 0.03 and data:
        place = chance.randrange(len(data))
        data = data[:place] + bytes([chance.randrange(256)]) + data[place + 1 :]
    return Garbage(kind, file, data)


def _damaged(data: Any, chance: random.Random, kind: str) -> Any:
    """One to four entries gone, renamed, of another value, or moved."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        places = [place for place in _places(data) if kind != "settings" or len(place) > 1]
        if not places:
            return data
        place = chance.choice(places)
        holder, key = _at(data, place[:-1]), place[-1]
        match chance.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[
                    chance.choice((f"{key}s", str(key)[:-1], str(key).upper(), "", None, 7, "$schema", "type", "jobs"))
                ] = holder.pop(key)
            case 2:
                holder[key] = [holder[key]]
            case 3:
                holder[key] = copy.deepcopy(_at(data, chance.choice(places)))
            case _:
                holder[key] = copy.deepcopy(chance.choice(VALUES))
    return data


def _nonsense(chance: random.Random, words: list[str], kind: str) -> Any:
    """A tree of known words and any values."""

    def tree(depth: int) -> Any:
        way = chance.random()
        if depth and way < 0.5:
            return {chance.choice(words): tree(depth - 1) for _ in range(chance.randrange(6))}
        if depth and way < 0.6:
            return [tree(depth - 1) for _ in range(chance.randrange(4))]
        return copy.deepcopy(chance.choice(VALUES))

    top = {chance.choice(words): tree(3) for _ in range(chance.randrange(1, 10))}
    top |= chance.choice(
        ({}, {"type": chance.choice(("command", "sweep", "pipeline", "component", "schedule", "spark"))})
    )
    return {"config": {f"amlstack:{key}": value for key, value in top.items()}} if kind == "settings" else top


def _torn(text: str, chance: random.Random) -> str:
    """The text with lines lost, doubled, indented otherwise, cut or with YAML's stranger forms in them."""
    lines = text.split("\n")
    for _ in range(chance.randrange(1, 5)):
        number = chance.randrange(len(lines))
        line = lines[number]
        head, colon, _ = line.partition(": ")
        lines[number] = chance.choice(
            (
                "", f"{line}\n{line}", f"  {line}", line.lstrip(), line[: len(line) // 2], f"- {line}", f"{line} ]",
                f"{head}{colon or ': '}{chance.choice(TEXTS)}", f"{head}{colon or ': '}{chance.choice(TEXTS)}",
                chance.choice(TEXTS), line.replace(":", ""), f"{line}\t", line.replace("'", '"'),
            )
        )  # fmt: skip
    return "\n".join(lines)


def _python(chance: random.Random) -> bytes:
    """The Python file with some of its values and names exchanged, or its lines torn."""
    if chance.random() < 0.2:
        return _torn(PYTHON, chance).encode("utf-8", "surrogatepass")
    tree = ast.parse(PYTHON)
    spots: list[Any] = [node for node in ast.walk(tree) if isinstance(node, (ast.keyword, ast.Constant))]
    for spot in chance.sample(spots, chance.choice((1, 1, 2, 3))):
        if isinstance(spot, ast.Constant):
            spot.value = chance.choice(VALUES[:60])
        elif chance.random() < 0.2:
            spot.arg = chance.choice((f"{spot.arg}s", "nodes", "type", "_x", "model_config"))
        else:
            spot.value = ast.parse(chance.choice(LITERALS), mode="eval").body
    body = "circle = []\ncircle.append(circle)\n" + ast.unparse(tree)
    last = chance.choice(("train", "sweep", "nightly", "train", "sweep", "nightly", *LITERALS))
    more = chance.choice(
        ("", "", "", f"jobs = {chance.choice(LITERALS)}\n", "del job\n", "import nowhere\n", "raise SystemExit\n")
    )
    return f"{body}\njob = {last}\n{more}".encode("utf-8", "surrogatepass")


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, ...]] = []
    for key, each in inner:
        found += [(*place, key), *_places(each, (*place, key))]
    return found


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def _words(value: Any) -> list[str]:
    return sorted({str(place[-1]).removeprefix("amlstack:") for place in _places(value)})


KINDLESS = (None, 10**400, "1e999", ["a"], {"a": 1})
"""One value of each kind, of which no place of a good file takes them all."""


def exchanged(kinds: int) -> Iterator[Garbage]:
    """Each good file with each of its values in turn exchanged for values of some other kinds; no chance in it.

    Args:
        kinds: How many of the five each value is exchanged for, others at the next value.
    """
    at = 0
    for (kind, name), text in ((("yaml", name), text) for name, text in YAMLS.items()):
        good = yaml_files.load(text)
        for place in _places(good):
            for value in (*KINDLESS, *KINDLESS)[at % len(KINDLESS) :][:kinds]:
                data = copy.deepcopy(good)
                _at(data, place[:-1])[place[-1]] = value
                yield Garbage(kind, f"{name}.yml", yaml_files.dump(data).encode())
            at += 1
