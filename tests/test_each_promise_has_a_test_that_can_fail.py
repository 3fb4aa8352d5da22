"""The table of `make mutants` is true: each promise stands in its page, each change in its file, each test is there."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT
from tests.support import mutants
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.mutants import Mutant

MUTANTS = mutants.table()
ROOMS = (
    "amlstack/provider/lifecycle/submission.py",
    "amlstack/provider/lifecycle/",
    "amlstack/provider/stacks/",
    "policies/evaluation/",
    "policies/gate.py",
    "amlstack/sandbox/store/",
    "amlstack/sandbox/kinds/",
)
"""Modules that have mutants: runs, their submission, the guard, the pack, the store and the server's answers."""
PAGES = ("docs/explanation/jobs.md", "docs/reference/edits.md", "docs/reference/policies.md")


@cache
def section(page: str, heading: str) -> str:
    """The text under a heading of a page, down to the next one, in one line."""
    found: list[str] = []
    inside = code = False
    for line in (PROJECT / page).read_text("utf-8").splitlines():
        code ^= line.startswith("```")
        if not code and (title := re.fullmatch(r"#+ (.+)", line)):
            inside = title[1] == heading
        elif inside:
            found.append(line)
    return " ".join(" ".join(found).split())


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((PROJECT / file).read_text("utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@for_each("mutant", MUTANTS)
def test_a_mutant_breaks_what_a_page_says_and_names_its_test(mutant: Mutant) -> None:
    assert " ".join(mutant.promise.split()) in section(mutant.doc, mutant.heading)
    broken = mutant.applied((PROJECT / mutant.file).read_text("utf-8"))
    compile(broken, mutant.file, "exec")
    file, _, name = mutant.test.partition("::")
    assert name.partition("[")[0] in functions(file), f"no test {mutant.test}"


def test_every_room_and_page_has_mutants_of_names_of_their_own() -> None:
    assert len({one.name for one in MUTANTS}) == len(MUTANTS) >= 40
    assert [room for room in ROOMS if not any(one.file.startswith(room) for one in MUTANTS)] == []
    assert [page for page in PAGES if not any(one.doc == page for one in MUTANTS)] == []


def test_every_edit_of_a_job_in_the_table_has_a_mutant() -> None:
    lines = (PROJECT / "docs/explanation/jobs.md").read_text("utf-8").splitlines()
    start = lines.index("| you change | what happens |") + 2
    rows = lines[start : lines.index("", start)]
    assert len(rows) > 10
    broken = [one.promise for one in MUTANTS if one.doc == "docs/explanation/jobs.md"]
    assert [row for row in rows if not any(promise in row for promise in broken)] == []


@pytest.mark.tools
def test_what_breaks_nothing_survives_and_what_breaks_the_code_proves_nothing(tmp_path: Path) -> None:
    (tmp_path / "doubled.py").write_text("def double(number):\n    return 2 * number\n")
    asserted = "from doubled import double\n\ndef test_it():\n    assert double(3) == 6\n"
    (tmp_path / "test_doubled.py").write_text(asserted)
    tree = mutants.MutantTree(tmp_path)
    one = replace(MUTANTS[0], file="doubled.py", old="2 * number", new="3 * number", test="test_doubled.py::test_it")
    assert tree.killed(one) == ""
    assert tree.killed(replace(one, new="number + number")) == f"survived {one.test}"
    assert "NameError" in tree.killed(replace(one, new="2 * numbers"))
    assert tree.killed(replace(one, test="test_doubled.py::test_another")).startswith("proved nothing by")
    with pytest.raises(ValueError, match="stands 0 times"):
        tree.killed(replace(one, old="nowhere"))


def test_a_test_that_fails_for_want_of_a_name_is_no_proof() -> None:
    proofs = ("AssertionError: assert 1 == 2", "Failed: DID NOT RAISE", "tests.x.Refused: run a is Running")
    nothing = ("NameError: name 'x'", "error: AssertionError", "tests.x.Refused: unexpected KeyError: 'x'")
    assert all(map(mutants._ASSERTED.match, proofs))
    assert not any(map(mutants._ASSERTED.match, nothing))
