"""A covering selection of the fault matrix; ``make faults`` runs all of it."""

from __future__ import annotations

import pytest

from tests.support.provider.fault_matrix import FAULTS, OPERATIONS, Fault, Operation, requests_of, run

BY_NAME = {fault.name: fault for fault in FAULTS}
SILENT = [
    *(f"{kind} {verb}" for kind in ("Snapshot", "Environment", "Component") for verb in ("update", "delete")),
    "Data delete",
]
"""Operations on what is kept for other stacks."""
ASKING = [one.name for one in OPERATIONS if one.name not in SILENT]
# What changes something is what may be doubled or lost: a submission meets every fault here, every other operation one
# or two.
PAIRS = [
    *(("Job create", fault.name) for fault in FAULTS),
    *(
        (name, FAULTS[(2 * index + offset) % len(FAULTS)].name)
        for index, name in enumerate(ASKING)
        for offset in ((0, 3) if name.startswith("Job") else (0,))
    ),
]


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        pytest.param(next(one for one in OPERATIONS if one.name == name), BY_NAME[fault], id=f"{name}, {fault}")
        for name, fault in dict.fromkeys(PAIRS)
    ],
)
def test_an_operation_under_a_fault_ends_in_words_and_a_re_run_converges(operation: Operation, fault: Fault) -> None:
    assert run(operation, fault, reads=operation.name.endswith("read")).faults == []


@pytest.mark.parametrize("name", SILENT)
def test_an_operation_on_what_is_kept_asks_for_nothing(name: str) -> None:
    assert requests_of(next(one for one in OPERATIONS if one.name == name))[0] == []
