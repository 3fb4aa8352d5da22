"""What `amlstack check --against` prints, and its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from amlstack.base.findings import errors
from amlstack.cli import targets
from amlstack.cli.console import print_findings, print_json, say, tally
from amlstack.cli.jobfiles.formats import Format, beside_code
from amlstack.cli.stack.tenant import against

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def judge_stack(
    files: Sequence[Path],
    stack: str | None,
    asked: Sequence[str],
    exempt: Sequence[str],
    *,
    form: Format,
    read_group: bool,
) -> int:
    """Judge a stack, print the findings, and give the exit status.

    Args:
        files: Further files of policies.
        stack: The stack; None as for the other checks.
        asked: Words of initiatives, files and folders.
        exempt: Definitions of which the stack is exempt.
        form: In which form.
        read_group: Azure is asked for location and tags of a resource group that exists.

    Raises:
        typer.BadParameter: A file is a job file.
    """
    if others := [str(one) for one in files if one.suffix.lower() != ".json" and not one.is_dir()]:
        raise typer.BadParameter(f"{others[0]} is no policy: check job files in a run of their own.")
    where = targets.find(None, stack)
    judgement = against.judged(where, [*asked, *map(str, files)], exempt, read_group=read_group)
    closing = [*against.summary(judgement), f"stack {where.stack or '?'}: {tally(judgement.findings)}"]
    if form is Format.JSON:
        print_json(judgement.as_dict())
    elif form in beside_code.FORMS:
        fallback = str(where.root / f"Pulumi.{where.stack}.yaml")
        beside_code.show(form, judgement.findings, where.root, fallback, category="tenant-policies", closing=closing)
    else:
        print_findings(judgement.findings)
        say("\n".join(closing))
    return 1 if errors(judgement.findings) else 0
