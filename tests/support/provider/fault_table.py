"""``make faults``: the fault matrix as a table; fails on a bad cell."""

from __future__ import annotations

import sys

from tests.support.provider.fault_matrix import FAULTS, OPERATIONS, run


def main() -> int:
    names = [fault.name for fault in FAULTS]
    out = sys.stdout
    out.write(f"| operation | {' | '.join(names)} |\n| --- |{' --- |' * len(names)}\n")
    bad: list[str] = []
    requests = 0
    for operation in OPERATIONS:
        cells = [run(operation, fault) for fault in FAULTS]
        requests += sum(cell.requests for cell in cells)
        out.write(f"| {operation.name} | {' | '.join(map(str, cells))} |\n")
        out.flush()
        for fault, cell in zip(FAULTS, cells, strict=True):
            bad += [f"{operation.name}, {fault.name}: {words}" for words in cell.faults]
    out.write(f"\n{requests} faults in {len(OPERATIONS)} operations; {len(bad)} bad\n")
    out.writelines(f"{line}\n" for line in bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
