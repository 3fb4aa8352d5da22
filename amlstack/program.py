"""The program that `pulumi up` runs, as a team's `__main__.py` names it."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Reads the stack's settings and declares its resources.

    Raises:
        pulumi.RunError: Something is wrong with the settings, the jobs or the catalogue.
    """
    # A team's repository may have folders named infra, jobs or policies: none of them takes the place of ours.
    searched, here = list(sys.path), Path.cwd()
    sys.path[:] = [each for each in searched if each and Path(each).resolve() != here]
    try:
        from infra import program  # noqa: PLC0415 - see above
    finally:
        sys.path[:] = searched
    program.main()
