"""``make faults``: the fault matrix; fails on a bad cell, or one that faults.md beside this module shows otherwise."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.provider.fault_matrix import FAULTS, OPERATIONS, run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Table = dict[str, dict[str, str]]
"""Row → column → cell; a row is named by the cells before the first fault."""

OPERATION, RESOURCE = ("operation",), ("resource", "operation")
"""The first columns of the two tables of the page."""


def read(lines: Iterable[str], first: tuple[str, ...]) -> Table:
    """The Markdown table that begins with these columns."""
    found: Table = {}
    columns: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not columns:
            columns = cells if tuple(cells[: len(first)]) == first else []
        elif not cells:
            break
        elif set(cells[0]) != {"-"}:
            found[" ".join(cells[: len(first)])] = dict(zip(columns[len(first) :], cells[len(first) :], strict=True))
    return found


def documented(first: tuple[str, ...]) -> Table:
    """A table of faults.md beside this module."""
    return read((PROJECT / "tests/support/provider/faults.md").read_text("utf-8").splitlines(), first)


def differences(printed: Table, page: Table) -> Iterator[str]:
    """The results that differ from the page, in the columns that were played; and rows that one of them lacks."""
    for row in sorted({*printed, *page}):
        if row not in page or row not in printed:
            yield f"{row}: only {'the page' if row in page else 'what was played'} has this row"
            continue
        for column, cell in printed[row].items():
            if page[row].get(column) != cell:
                yield f"{row}, {column}: `{cell}`, and the page says `{page[row].get(column)}`"


def main() -> int:
    names = [fault.name for fault in FAULTS]
    out = sys.stdout
    lines = [f"| operation | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    out.writelines(f"{line}\n" for line in lines)
    bad: list[str] = []
    requests = 0
    for operation in OPERATIONS:
        cells = [run(operation, fault) for fault in FAULTS]
        requests += sum(cell.requests for cell in cells)
        lines.append(f"| {operation.name} | {' | '.join(map(str, cells))} |")
        out.write(f"{lines[-1]}\n")
        out.flush()
        for fault, cell in zip(FAULTS, cells, strict=True):
            bad += [f"{operation.name}, {fault.name}: {words}" for words in cell.faults]
    other = list(differences(read(lines, OPERATION), documented(OPERATION)))
    out.write(f"\n{requests} faults in {len(OPERATIONS)} operations; {len(bad)} bad, {len(other)} not as documented\n")
    out.writelines(f"{line}\n" for line in (*bad, *other))
    return 1 if bad or other else 0


if __name__ == "__main__":
    sys.exit(main())
