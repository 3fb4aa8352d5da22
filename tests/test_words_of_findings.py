"""The words of findings in `amlstack/base/findings.json`: each is used, and is given the values that it names."""

from __future__ import annotations

import ast
import re
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING

from amlstack.base.findings import Level, stated, texts
from amlstack.base.paths import PROJECT
from tests.support.source_trees import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MAKERS = {"stated", "stated_at", "refusal", "refusal_at", "wrong"}
MAKES = re.compile(rf"\b(?:{'|'.join(MAKERS)})\(")


@cache
def calls() -> list[tuple[str, set[str | None]]]:
    """The key of each call that makes a finding of words, and the values that it gives."""
    return list(_calls())


def _calls() -> Iterator[tuple[str, set[str | None]]]:
    for file in (path for top in ("amlstack", "infra", "jobs", "policies") for path in (PROJECT / top).rglob("*.py")):
        if not MAKES.search(file.read_text("utf-8")):  # most of the time goes into looking at every node
            continue
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in MAKERS:
                for key in (each.value for each in node.args if isinstance(each, ast.Constant)):
                    if key in texts():
                        yield str(key), {word.arg for word in node.keywords}


def named(key: str) -> set[str]:
    fields = (name for text in texts()[key] for _, name, _, _ in Formatter().parse(text) if name)
    return {name.partition(".")[0] for name in fields}


def test_words_are_given_the_values_that_they_name() -> None:
    assert len(calls()) > 100
    assert [(key, values) for key, values in calls() if values != named(key)] == []


def test_all_words_are_used() -> None:
    assert texts().keys() - {key for key, _ in calls()} == set()


def test_a_finding_has_the_code_before_the_slash() -> None:
    found = stated("binding-unknown/bindings", "command", Level.WARNING, match="${{a.b}}", close="inputs", name="b")
    assert found.code == "binding-unknown"
    assert found.level is Level.WARNING
