"""What a rehearsal on one machine says nothing about, as far as a declaration and its code show it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.cli.rehearsal import scale as scales
from amlstack.code_reading.code_files import text_of
from amlstack.code_reading.shell import scripts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import jobs
    from amlstack.cli.rehearsal.scale import Extent

_REDUCED = re.compile(r"\b(?:bf16|fp16|fp8|bfloat16|float16|float8\w*|autocast|GradScaler)\b")


def of(plan: jobs.Planned, parts: Sequence[Extent], *, gpu: bool, shim: bool = True) -> Iterator[str]:
    """A sentence for each.

    Args:
        plan: The plan.
        parts: What is started of it.
        gpu: Whether this machine has a GPU.
        shim: Whether ordinary GPU calls are carried to the CPU.
    """
    scaled = tuple(scales.unproven(parts))
    yield from scaled
    sizes = [part.target.facts for part in plan.parts.values()]
    if not gpu and not scaled and any(size is None or size.gpus for size in sizes):
        yield scales.ON_GPUS
    if any(extent.started[0] * extent.started[1] > 1 for extent in parts):
        yield "the fabric: ranks talk over this machine's loopback, without InfiniBand"
    words = {word for part in plan.parts.values() for word in _reduced(part)}
    if words and not gpu:
        how = "fp16 and autocast are computed in single precision" if shim else "it is a CPU's, where it has one"
        yield f"reduced precision ({', '.join(sorted(words))}): {how}"


def _reduced(part: jobs.Plan) -> Iterator[str]:
    """Words for reduced precision in the command, its inputs and the scripts that it starts."""
    yield from _REDUCED.findall(part.enriched.command)
    yield from (word for value in part.enriched.inputs.values() for word in _REDUCED.findall(str(value)))
    code = part.job.code
    if code is None or not code.local:
        return
    for script in scripts(part.enriched.command):
        yield from _REDUCED.findall(text_of(part.base / code.path / script) or "")
