"""``make interruptions``, first part: the provider under Ctrl-C in each of its requests; a bad or late end fails."""

from __future__ import annotations

import sys

from tests.support.provider.fault_matrix import OPERATIONS
from tests.support.provider.interruptions import interrupted, too_slow


def main() -> int:
    out = sys.stdout
    out.write("| operation | requests | slowest end, seconds |\n| --- | --- | --- |\n")
    bad: list[str] = []
    seconds: list[float] = []
    for operation in OPERATIONS:
        one = interrupted(operation)
        slowest = f"{max(one.seconds):.2f}" if one.seconds else "asks nothing"
        out.write(f"| {operation.name} | {len(one.seconds)} | {slowest} |\n")
        out.flush()
        bad += one.wrong
        bad += [f"{operation.name}: {words}" for each in one.seconds for words in too_slow(each)]
        seconds += one.seconds
    out.write(f"\n{len(seconds)} interruptions; slowest {max(seconds):.2f} s; {len(bad)} bad\n\n")
    out.writelines(f"{line}\n" for line in bad)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
