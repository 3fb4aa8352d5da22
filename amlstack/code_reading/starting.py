"""``python -I -S starting.py NODESxRANKS DECLARED_NODES PROGRAM WORDS…`` becomes PROGRAM, its counts scaled down.

It names each change on standard error, and needs nothing but the standard library. A job's own scripts may call a
launcher with counts out of variables: the words are looked at where they are final, in the process that they start.
"""

import os
import sys


def main(scale: str, declared: str, program: str, rest: list[str]) -> None:
    """Becomes the program."""
    # By their path: this process knows no packages, and starts with every Python of a rank.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - no pathlib: twice as fast
    starters = __import__("starters")
    nodes, ranks = (int(part) for part in scale.split("x"))
    name = os.path.basename(program)  # noqa: PTH119 - as above
    launcher, at = starters.launch_of(name, rest)
    beside = starters.added(launcher, starters.given_options(rest[at:]), (nodes, ranks), os.environ, text_of)
    result, changes = starters.scaled(name, rest, starters.Counts(nodes, ranks, int(declared)))
    result[at:at] = beside.options
    for change in (*changes, *beside.changes):
        sys.stderr.write(f"amlstack: rehearsed as {scale}: {name} {change}\n")
    sys.stderr.flush()
    os.execve(program, [program, *result], {**os.environ, **beside.variables})  # noqa: S606 - words are handed on as they are


def text_of(path: str) -> str:
    """The text of a file; empty where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as above
            return file.read()
    except (OSError, ValueError):
        return ""


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
