"""Steps of a pipeline that a rehearsal does not run, as their outputs are given: ``--input STEP.OUTPUT=PATH``.

The first step of many pipelines fetches data that this machine cannot reach; those after it are what is rehearsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from amlstack.cli.rehearsal.declared_inputs import DeclaredInput

OPTION = "--input"


def of(
    inputs: Sequence[DeclaredInput], chosen: Mapping[str, Path], job: Path
) -> tuple[frozenset[str], tuple[Finding, ...]]:
    """Steps with an output that is given, and what else other steps read of them and is missing.

    Args:
        inputs: All inputs of the pipeline and its steps.
        chosen: Paths of ``--input`` by label.
        job: The job file.
    """
    own = {each.label for each in inputs}
    read: dict[str, dict[str, str]] = {}
    for each in inputs:
        if each.written and each.label not in chosen:
            read.setdefault(each.written.rpartition(".")[0], {}).setdefault(each.written, each.label)
    found: list[Finding] = []
    given = {step for step, outputs in read.items() if any(each in chosen and each not in own for each in outputs)}
    for step in sorted(given):
        for output, reader in read[step].items():
            if output not in chosen:
                seen, rule = f"`{output}` is not given", f"The step `{step}` is not run, and `{reader}` reads it"
                remedy = f"Give `{OPTION} {output}=PATH` too."
                found.append(Finding("input-option", f"{OPTION} {output}", seen, rule, remedy, file=str(job)))
    return frozenset(given), tuple(found)
