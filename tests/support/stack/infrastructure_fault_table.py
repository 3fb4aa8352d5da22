"""``make faults``, second part: the resources of a stack under every fault as a table; fails as the first part does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from amlstack.base.paths import PROJECT
from tests.support.harness import STAND_IN, Stack
from tests.support.provider.fault_table import RESOURCE, differences, documented, read
from tests.support.running import running_sandbox
from tests.support.sandbox import injected_faults
from tests.support.stack.infrastructure_faults import OPERATIONS, FaultCell, Ground, everything, played

FAULTS = tuple(sys.argv[1:]) or injected_faults.ALL
"""The faults that are played: all, or those that the command line names."""


def main() -> int:
    """Plays the faults one after the other, each with a line when it is done, and prints the table at the end."""
    if unknown := [fault for fault in FAULTS if fault not in injected_faults.ALL]:
        sys.stderr.write(f"there is no fault `{unknown[0]}`; there are {', '.join(injected_faults.ALL)}\n")
        return 2
    found = subprocess.run(
        [sys.executable, str(PROJECT / "tools" / "engine"), "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    folders = tuple(Path(folder) for folder in json.loads(found.stdout)["path"])
    cells: dict[tuple[str, str], dict[str, FaultCell]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="amlstack-faults-") as name,
        running_sandbox(Path(name) / "home") as sandbox,
    ):
        folder = Path(name) / "jobs"
        folder.mkdir()
        stack = Stack.of_project(Path(name) / "stack", folders, env=sandbox.environ, path=(STAND_IN,))
        try:
            more = everything(sandbox.home, folder)
            ground = Ground.made(stack, sandbox.home, folder, more=more)
            for fault in FAULTS:
                for operation, kinds in played(ground, (fault,)).items():
                    for kind, cell in kinds.items():
                        cells.setdefault((kind, operation), {})[fault] = cell
                sys.stderr.write(f"{fault}: done\n")
        finally:
            stack.close()
        fired = len(injected_faults.injected(sandbox.home))
    lines = table(cells)
    sys.stdout.write("\n".join(lines) + "\n")
    other = list(differences(read(lines, RESOURCE), documented(RESOURCE)))
    bad = [
        f"{kind} {operation}, {fault}: {words}"
        for (kind, operation), row in cells.items()
        for fault, cell in row.items()
        for words in cell.wrong
    ]
    sys.stdout.write(f"\n{fired} faults at {len({kind for kind, _ in cells})} kinds of resources; {len(bad)} bad, ")
    sys.stdout.write(f"{len(other)} not as documented\n")
    sys.stdout.writelines(f"{line}\n" for line in (*bad, *other))
    return 1 if bad or other or not fired else 0


def table(cells: dict[tuple[str, str], dict[str, FaultCell]]) -> list[str]:
    """The lines of the table: a row for each operation of each kind of resource."""
    lines = [f"| resource | operation | {' | '.join(FAULTS)} |", f"| --- | --- |{' --- |' * len(FAULTS)}"]
    for kind, operation in sorted(cells, key=lambda each: (each[0], list(OPERATIONS).index(each[1]))):
        row = cells[kind, operation]
        words = " | ".join(str(row[fault]) if fault in row else "–" for fault in FAULTS)
        lines.append(f"| {kind} | {operation} | {words} |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
