"""A covering selection of the fault matrix; ``make faults`` runs all of it."""

from __future__ import annotations

import pytest

from tests.support.provider.fault_matrix import FAULTS, OPERATIONS, Fault, Operation, requests_of, run
from tests.support.provider.fault_table import OPERATION, differences, documented, read
from tests.support.rows import for_each

PAGE = documented(OPERATION)
BY_NAME = {fault.name: fault for fault in FAULTS}
SILENT = [
    *(f"{kind} {verb}" for kind in ("Snapshot", "Environment", "Component") for verb in ("update", "delete")),
    "Data delete",
]
"""Operations on what is kept for other stacks."""
ASKING = [one.name for one in OPERATIONS if one.name not in SILENT]
# What changes something is what may be doubled or lost: a submission meets every fault here, every other operation one.
PAIRS = [
    *(("Job create", fault.name) for fault in FAULTS),
    *((name, FAULTS[2 * index % len(FAULTS)].name) for index, name in enumerate(ASKING)),
]


@pytest.mark.tools
@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        pytest.param(next(one for one in OPERATIONS if one.name == name), BY_NAME[fault], id=f"{name}, {fault}")
        for name, fault in dict.fromkeys(PAIRS)
    ],
)
def test_an_operation_under_a_fault_ends_in_words_and_a_re_run_converges(operation: Operation, fault: Fault) -> None:
    whole = operation.name.endswith("read") or operation.name == "Job create"
    cell = run(operation, fault, reads=whole)
    assert cell.faults == []
    shown = set(PAGE[operation.name][fault.name].split(" / "))
    assert cell.at_once == shown - {"asks nothing"} if whole else cell.at_once <= shown


@for_each("name", SILENT)
def test_an_operation_on_what_is_kept_asks_for_nothing(name: str) -> None:
    assert requests_of(next(one for one in OPERATIONS if one.name == name))[0] == []


def test_the_page_has_every_operation_under_every_fault() -> None:
    assert list(PAGE) == [one.name for one in OPERATIONS]
    assert {tuple(row) for row in PAGE.values()} == {tuple(BY_NAME)}


def test_a_table_that_the_page_shows_otherwise_is_told_from_it_cell_by_cell() -> None:
    lines = [
        "before",
        "| operation | 429 | cut |",
        "| --- | --- | --- |",
        "| a | done | error |",
        "| b | done | – |",
        "",
    ]
    page = read(lines, OPERATION)
    assert list(differences(page, page)) == []
    assert list(differences({"a": {"cut": "error"}, "b": {}}, page)) == []  # a part of the faults
    assert list(differences({**page, "a": {"429": "done / error"}}, page)) == [
        "a, 429: `done / error`, and the page says `done`"
    ]
    assert list(differences({"a": page["a"], "c": {}}, page)) == [
        "b: only the page has this row", "c: only what was played has this row"
    ]  # fmt: skip
