"""Findings on their way to a person: lines of the engine, and the end of the program where one of them refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pulumi

from amlstack.base import text
from amlstack.base.findings import Level, in_file_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Sized

    from amlstack.base.findings import Finding


def show(findings: Iterable[Finding]) -> None:
    """Each finding as a line of the engine."""
    log = {Level.ERROR: pulumi.log.error, Level.WARNING: pulumi.log.warn, Level.INFO: pulumi.log.info}
    for finding in in_file_order(findings):
        log[finding.level](text.output(str(finding)))


def end(wrong: Sized) -> NoReturn:
    """End the program before anything is registered; what is wrong has been shown.

    Raises:
        pulumi.RunError: Always.
    """
    things = "1 thing is" if len(wrong) == 1 else f"{len(wrong)} things are"
    raise pulumi.RunError(f"{things} wrong with this stack; nothing was changed.")


def refuse(wrong: list[Finding]) -> NoReturn:
    """Show what is wrong, and end the program.

    Raises:
        pulumi.RunError: Always.
    """
    show(wrong)
    end(wrong)
