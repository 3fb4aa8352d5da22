"""What a GPU model can run: its compute capability, and the CUDA releases that build code for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from datetime import date


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU model.

    Attributes:
        model: As sizes name it, e.g. ``H100``.
        vendor: ``NVIDIA`` or ``AMD``.
        compute_capability: E.g. ``9.0``; None where CUDA does not apply.
        cuda_from: First CUDA release whose programs run on it; None where CUDA does not apply. Code for a compute
            capability runs on later ones of the same major number.
        cuda_until: Last one that does; None while none has dropped it.
        source: Where it was read, as keys of ``data/sources.json``.
        checked: Month of that, as its first day.
        note: What a reader should know besides; may be empty.
    """

    model: str
    vendor: str
    compute_capability: str | None
    cuda_from: str | None
    cuda_until: str | None
    source: tuple[str, ...]
    checked: date
    note: str

    def builds_for(self, cuda: str) -> bool | None:
        """Whether that CUDA release (``12.6``) builds code that runs on this GPU; None where CUDA does not apply."""
        if self.cuda_from is None:
            return None
        asked = version(cuda)
        return version(self.cuda_from) <= asked and (self.cuda_until is None or asked <= version(self.cuda_until))


def get(model: str) -> Gpu | None:
    """The GPU of that name as sizes write it."""
    return _by_model().get(model)


def all_gpus() -> tuple[Gpu, ...]:
    """Every GPU model of the catalogue."""
    return tuple(_by_model().values())


def version(text: str) -> tuple[int, int]:
    """Major and minor of a version such as ``12.6`` or ``12.6.1``; a missing minor is 0."""
    major, _, rest = text.partition(".")
    return int(major), int(rest.partition(".")[0] or 0)


@cache
def _by_model() -> dict[str, Gpu]:
    return {
        row["model"]: Gpu(**{**row, "source": tuple(row["source"]), "checked": day(row["checked"])})
        for row in load("gpus")
    }
