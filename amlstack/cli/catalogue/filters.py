"""The filters of ``amlstack sizes`` that name something, and what is meant by a name that nothing has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import Finding
from amlstack.base.near_misses import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from amlstack.catalog.sizes import Size


def models(written: str | None, sizes: Sequence[Size]) -> Collection[str] | None:
    """The GPU models that a name means: the model, else all that begin with it; None where none was asked for."""
    if written is None:
        return None
    known = _models(sizes)
    wanted = written.lower()
    return [each for each in known if each.lower() == wanted] or [
        each for each in known if each.lower().startswith(wanted)
    ]


def of_family(size: Size, written: str | None) -> bool:
    """Whether a size is of a series or quota family that contains what was written; all are where nothing was."""
    return written is None or written.lower() in f"{size.series} {size.family or ''}".lower()


def unmet(gpu: str | None, family: str | None, sizes: Sequence[Size]) -> Iterator[Finding]:
    """A finding for a GPU that no size has, and for a series that there is none of."""
    if gpu is not None and not models(gpu, sizes):
        known = _models(sizes)
        yield Finding(
            "gpu-unknown",
            "--gpu",
            f"No size of the catalogue has `{gpu}` GPUs",
            "A GPU is named as Azure's sizes name it",
            did_you_mean(gpu, known, otherwise=f"There are {', '.join(f'`{each}`' for each in known)}."),
        )
    if family is not None and not any(of_family(size, family) for size in sizes):
        series = list(dict.fromkeys(size.series for size in sizes))
        yield Finding(
            "series-unknown",
            "--family",
            f"No series or quota family contains `{family}`",
            "A series is named as Microsoft's pages on sizes name it",
            did_you_mean(family, series, otherwise="`amlstack sizes --json` has the series of each size."),
        )


def _models(sizes: Sequence[Size]) -> list[str]:
    return list(dict.fromkeys(size.gpu_model for size in sizes if size.gpu_model))
