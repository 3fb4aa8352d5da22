"""What is read without the parser means the same as with it: values, their types, their order and their places."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.base import yamltext
from amlstack.base.paths import PROJECT
from amlstack.base.yamltext import plain

if TYPE_CHECKING:
    from amlstack.base.yamltext.builder import Box

JOB = """\
# a job
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: >-
  python train.py
  --lr ${{inputs.lr}}
inputs:  # of the command
  lr: 0.01
  text: 'it is # text'
  on: [1]
environment: azureml:own@latest

resources:
    instance_count: 2
    args:
    - a:b
    - 3  # three
tags:
limits: {timeout: 1}
"""
PLAIN = JOB.replace("  on: [1]\n", "").replace("{timeout: 1}", "")
LINES = (
    *(
        "a:",
        "b: 1",
        "c: x y",
        "- x",
        "- 1.5",
        "|",
        "d: |",
        "e: >-",
        "f: >",
        "g: |-",
        "text",
        "  more",
        "# c",
        "",
        "   ",
    ),
    *('h: "q"', "i: 'z' # c", "j: v # c", "a: 2", "true: x", 'k: "a b" ', "l: on", '- "q"  # c', "- a: b", "m: a:b"),
    *(
        "n: a#b",
        "o: x: y",
        "p: |  # c",
        "q: > #c",
        "r: |+",
        "s: 07",
        "t: 1_0",
        "yes:",
        "u: 2001-01-01",
        "v: =",
        "<<: x",
    ),
    *(
        "w: /p",
        "x: ${{a.b}}",
        "z: $AZ",
        "- $x",
        "- é",
        "aa: é ü",
        "long-x.y/z: 3:4",
        "v:   x   ",
        "---",
        "u: 2001-99-01",
    ),
)
PIECES = (
    *" :#-'\"|>\n\t{}[]&*!%@`?,=<~.0eo\\",
    ": ",
    " #",
    "\n  ",
    "\n- ",
    "null",
    "1:30",
    "...",
    "é",
    "\u2028",
    "\x85",
)


def places(box: Box | None) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Where each value is written, by path."""
    found: dict[tuple[Any, ...], tuple[int, int]] = {}
    ahead: list[tuple[tuple[Any, ...], Any]] = [((), box)] if box else []
    while ahead:
        path, each = ahead.pop()
        for step, (mark, inner) in each[2].items():
            found[*path, step] = mark if isinstance(mark, tuple) else (mark.line, mark.column)
            ahead.append(((*path, step), inner))
    return found


def is_same(text: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the text is plain; where it is, the parser must read the same."""
    root = plain.root_of(text)
    if root is None:
        return False
    with monkeypatch.context() as patch:
        patch.setattr(plain, "root_of", lambda *_: None)
        parsed = yamltext.parse(text)
    assert not parsed.findings, text
    assert repr(root[0]) == repr(parsed.data), text  # types and the order of keys as well
    assert places(root) == places(parsed._root), text
    assert yamltext.parse(text).spot(()) == parsed.spot(()), text
    return True


def test_plain_yaml_is_read_without_the_parser_when_all_lines_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments, lists, quotes, texts over several lines and empty values are plain."""
    assert is_same(PLAIN, monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        *(
            JOB,
            "",
            "# only a comment\n",
            "- a\n",
            "a: 1\na: 2\n",
            "a: &x 1\n",
            "a: !!str 1\n",
            "a: b\n c: d\n",
            "a: b: c\n",
        ),
        *(
            'a: "\\n"\n',
            "a: 'it''s'\n",
            "a: b\n  c\n",
            "a:\n  b: 1\n c: 2\n",
            "true: 1\n",
            "a: 2001-99-01\n",
            "a: |+\n  x\n",
        ),
        *(
            "a: |\n  x\n\n  y\n",
            "a: >\n  x\n    y\n",
            "a: |\n  x",
            "a: |#\n  x\n",
            "a:\tb\n",
            "a: b\r\n",
            "\ufeffa: b\n",
            "a: \x07\n",
        ),
        *("---\na: 1\n", "a: 'b'#c\n", "a: 1\n" * 20_000),
    ],
)
def test_plain_yaml_is_left_to_the_parser_when_a_line_is_not_plain(text: str) -> None:
    """Whatever is not certain, wrong or large."""
    assert plain.root_of(text) is None


def test_plain_yaml_means_the_same_when_lines_are_put_together_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of every kind in any order and depth."""
    rng, read = random.Random(8), 0
    for _ in range(6_000):
        lines = (" " * rng.choice((0, 0, 0, 2, 2, 4, 1, 3)) + rng.choice(LINES) for _ in range(rng.randrange(1, 9)))
        read += is_same("\n".join(lines) + rng.choice(("", "\n", "\n\n", "\n  \n")), monkeypatch)
    assert read > 300


def test_plain_yaml_means_the_same_when_pieces_of_a_job_are_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece more, a few characters less, a line elsewhere or deeper."""
    rng, read = random.Random(9), 0
    for _ in range(1_500):
        text = PLAIN
        for _ in range(rng.randrange(1, 4)):
            at, lines = rng.randrange(len(text) + 1), text.split("\n")
            one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[one] = " " * rng.randrange(5) + lines[other].lstrip()
            text = rng.choice(
                (text[:at] + rng.choice(PIECES) + text[at:], text[:at] + text[at + 3 :], "\n".join(lines))
            )
        read += is_same(text, monkeypatch)
    assert read > 100


def test_plain_yaml_means_the_same_in_the_files_of_this_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples, settings and pipelines; whatever of them is plain."""
    files = [
        *PROJECT.glob("Pulumi*.yaml"),
        *(PROJECT / "examples").rglob("*.yml"),
        *(PROJECT / "deploy").rglob("*.yml"),
    ]
    read = [is_same(file.read_text("utf-8"), monkeypatch) for file in files]
    assert sum(read) > 2, files
