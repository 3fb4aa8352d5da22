"""Errors of this project that azure-ai-ml is expected to raise too."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amlstack.base.findings import Finding

FAILS_IN_THE_RUN = frozenset(
    {"binding-unknown", "binding-of-the-shell", "output-undefined", "script-missing", "script-outside-code"}
    | {"script-left-out", "script-syntax"}
    | {f"script-argument-{kind}" for kind in ("unknown", "missing", "value", "extra")}
    | {f"launcher-{kind}" for kind in ("nodes", "alone", "address", "rank", "hosts", "options", "count", "in-command")}
    | {"processes-beyond-gpus"}
)
"""Mistakes that azure-ai-ml sends, and that no run survives."""
_WITH_BLANKS = re.compile(r"\{\{\s|\s\}\}")


def refusals(findings: Iterable[Finding]) -> list[str]:
    """The errors that refuse a file for both."""
    return [str(each) for each in findings if each.level == "error" and not _sent(each)]


def _sent(error: Finding) -> bool:
    # A binding with blanks is not looked for.
    return error.code in FAILS_IN_THE_RUN or (error.code == "input-undefined" and bool(_WITH_BLANKS.search(error.seen)))
