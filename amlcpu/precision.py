"""Half precision that the job's own code asks for, where no half-precision weights are there to meet it."""

from __future__ import annotations

import functools
from typing import Any

from amlcpu import callers

_single = [False]


def use_single() -> None:
    """From now on the job's own code gets single precision for fp16: a library's fp16 was switched off."""
    _single[0] = True


def change(torch: Any) -> None:
    """Changes `half` of tensors and modules, and asks for single precision where this torch has no fp16 on the CPU."""
    try:
        one = torch.ones(1, 1, dtype=torch.float16)
        torch.nn.functional.conv1d(one[None] @ one, one[None])
    except RuntimeError:
        use_single()
    for owner in (torch.Tensor, torch.nn.Module):
        owner.half = _half(owner.half)


def is_single(depth: int) -> bool:
    """True where the job's own code gets single precision where it asks for fp16.

    Args:
        depth: Frames between this function and the code that asks; 0 for the caller's caller.
    """
    return _single[0] and callers.asked_by_job(depth + 2)


def _half(half: Any) -> Any:
    @functools.wraps(half)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_single(0):
            return self.float()
        return half(self, *args, **kwargs)

    return call
