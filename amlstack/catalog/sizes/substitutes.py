"""The sizes that somebody may have meant, or may take instead of one that is gone, closed or without a fabric."""

from __future__ import annotations

import re
from functools import wraps
from math import log2
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from amlstack.base import near_misses
from amlstack.catalog import sizes
from amlstack.catalog.sizes import PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from amlstack.catalog.sizes import Size

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")

_LETTERS = re.compile("[a-z]")
_VERSION = re.compile(r"_v(\d+)$")


class _Answers:
    """Answers about one table: of a thousand files most ask the same question. Another table has others."""

    _MOST = 1000

    def __init__(self) -> None:
        self._table: Mapping[str, Size] | None = None
        self._known: dict[Any, Any] = {}

    def once(self, question: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
        """A question whose answer follows from what is given with it and the table."""

        @wraps(question)
        def asked(*given: _Given.args, **named: _Given.kwargs) -> _Answer:
            table = sizes.by_lower_name()
            if self._table is not table or len(self._known) > self._MOST:
                self._table, self._known = table, {}
            key = (question, given, tuple(named.items()))
            if key not in self._known:
                self._known[key] = question(*given, **named)
            answer: _Answer = self._known[key]
            return answer

        return asked


_ANSWERS = _Answers()


@_ANSWERS.once
def near(name: str, n: int = 3) -> tuple[str, ...]:
    """Names that somebody who wrote ``name`` may have meant, best first; empty when nothing is close."""
    known = {lower.removeprefix(PREFIX): lower for lower in sizes.by_lower_name()}
    wanted = name.lower().removeprefix(PREFIX)
    return tuple(sizes.by_lower_name()[known[match]].name for match in near_misses.near(wanted, known, n))


@_ANSWERS.once
def nearest_compliant(size: Size, on: date) -> Size | None:
    """The size that comes closest to this one among those alive on that day with SR-IOV InfiniBand.

    A GPU size is matched with GPU sizes of the same vendor, a CPU size with CPU sizes. Only sizes that Microsoft
    documents well enough to recommend (bandwidth and memory known) are considered.

    Args:
        size: What somebody wanted.
        on: The day on which the answer must be available.
    """
    candidates = [
        other
        for other in sizes.all_sizes()
        if other.fabric.usable
        and other.fabric.gbps_per_node is not None
        and other.memory_gib is not None
        and not other.retired_on(on)
        and other.gpu_vendor == size.gpu_vendor
    ]
    return min(candidates, key=lambda other: (_distance(size, other), other.name), default=None)


@_ANSWERS.once
def nearest_open(size: Size, on: date) -> Size | None:
    """The size that comes closest to this one among those that new subscriptions get, with GPUs and fabric like it."""
    candidates = [
        other
        for other in sizes.all_sizes()
        if other.lifecycle is not None
        and other.lifecycle.new_subscriptions is None
        and not other.retired_on(on)
        and (other.gpu_vendor, other.fabric.usable) == (size.gpu_vendor, size.fabric.usable)
    ]
    return min(candidates, key=lambda other: (_distance(size, other), *_unlike(size, other), other.name), default=None)


def _unlike(wanted: Size, other: Size) -> tuple[int, int]:
    """How many letters of the features in the two names differ, and then the newer version first."""
    ours, theirs = ("".join(sorted(_LETTERS.findall(each.name.lower().split("_")[1]))) for each in (wanted, other))
    version = _VERSION.search(other.name)
    return abs(len(ours) - len(theirs)) + (ours != theirs), -int(version[1]) if version else 0


def _distance(wanted: Size, other: Size) -> float:
    """How far apart two sizes are: doublings of count and memory, plus what a user would have to change or fear."""
    if wanted.gpus:
        apart = _doublings(wanted.gpus, other.gpus) + _doublings(wanted.gpu_memory_gib, other.gpu_memory_gib)
    else:
        apart = _doublings(wanted.vcpus, other.vcpus) + _doublings(wanted.memory_gib, other.memory_gib)
    apart += 1.0 * (wanted.gpu_model != other.gpu_model)
    apart += 1.0 * (other.retired is not None)
    apart += 0.5 * (other.azureml_supported is not True)
    apart += 4.0 * (wanted.architecture != other.architecture)
    return apart


def _doublings(a: float | None, b: float | None) -> float:
    return abs(log2(a / b)) if a and b else 1.0
