"""The rank and the world size that a process has when it has joined others, by whatever library it joined them."""

from __future__ import annotations

import contextlib
import functools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

WORLDS = "AMLSTACK_SANDBOX_WORLDS"
"""Variable with the folder in which each process leaves its rank and world size."""


def note(seen: Callable[[], tuple[int, int]]) -> None:
    """Leaves a file that says which rank of how many this process has become, where the job is asked for that."""
    if folder := os.environ.get(WORLDS):
        with contextlib.suppress(OSError):
            (Path(folder) / f"{time.time_ns()}-{os.getpid()}").write_text("{} {}\n".format(*seen()))


def _noted(owner: Any, name: str, seen: Callable[[Any], tuple[int, int]]) -> None:
    """Has a function or method leave what is seen after it: of the module, or of its own object."""
    made, is_method = getattr(owner, name), isinstance(owner, type)

    @functools.wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = made(*args, **kwargs)
        note(lambda: seen(args[0] if is_method else owner))
        return result

    setattr(owner, name, call)


def _of_mpi(module: Any) -> tuple[int, int]:
    return module.COMM_WORLD.Get_rank(), module.COMM_WORLD.Get_size()


def change_mpi(module: Any) -> None:
    """mpi4py joins when it is imported, or else when it is asked to."""
    if module.Is_initialized():
        note(lambda: _of_mpi(module))
    for name in ("Init", "Init_thread"):
        _noted(module, name, _of_mpi)


def change_horovod(module: Any) -> None:
    """Of any of its frameworks."""
    _noted(module.HorovodBasics, "init", lambda basics: (basics.rank(), basics.size()))


def change_tensorflow(module: Any) -> None:
    """MultiWorkerMirroredStrategy; without a cluster in TF_CONFIG it is one worker."""
    _noted(module.CollectiveAllReduceExtended, "__init__", lambda made: (made._id_in_cluster, made._num_workers))
