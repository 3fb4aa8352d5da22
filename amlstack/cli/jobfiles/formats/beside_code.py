"""Prints findings in the forms that are shown beside the code: GitHub's annotations, SARIF."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.cli.console import print_json, say
from amlstack.cli.jobfiles.formats import Format, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amlstack.base.findings import Finding

FORMS = (Format.GITHUB, Format.SARIF)


def show(
    form: Format, findings: Iterable[Finding], folder: Path, fallback: str, *, category: str, closing: Sequence[str]
) -> None:
    """Print findings.

    Args:
        form: One of `FORMS`.
        findings: In any order.
        folder: The stack's; files of its settings are named from it on.
        fallback: The file that SARIF shows a finding without one at.
        category: What was judged.
        closing: Lines of text after the annotations.
    """
    root, found = places.root(), places.located(findings, folder)
    if form is Format.SARIF:
        from amlstack.cli.jobfiles.formats import sarif

        print_json(sarif.log(found, root, fallback, category=category))
        return
    from amlstack.cli.jobfiles.formats import github

    say("\n".join([*github.lines(found, root), *map(github.plain, closing)]), commands=True)
