"""Changes to a module right after it was imported, whenever that is."""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

TYPE_CHECKING = False  # typing alone would double the start of a small Python

CHANGES = {
    "torch": ("torch_changes", "change"),
    "torch.distributed.fsdp": ("parallel", "change_fsdp"),
    "torch.distributed.device_mesh": ("communication", "change_mesh"),
    "accelerate.accelerator": ("libraries", "change_accelerate"),
    "transformers.training_args": ("libraries", "change_transformers"),
    "lightning.pytorch.trainer.connectors.accelerator_connector": ("libraries", "change_lightning"),
    "pytorch_lightning.trainer.connectors.accelerator_connector": ("libraries", "change_lightning"),
    "lightning.fabric.connector": ("libraries", "change_lightning"),
    "lightning_fabric.connector": ("libraries", "change_lightning"),
    "deepspeed.runtime.config": ("libraries", "change_deepspeed"),
    "deepspeed.comm.torch": ("libraries", "change_deepspeed_comm"),
    "deepspeed.profiling.flops_profiler.profiler": ("libraries", "change_deepspeed_profiler"),
    "mpi4py.MPI": ("communication", "change_mpi"),
    "horovod.common.basics": ("communication", "change_horovod"),
    "tensorflow.python.distribute.collective_all_reduce_strategy": ("communication", "change_tensorflow"),
    "torchvision.datasets.utils": ("libraries", "change_torchvision"),
}
"""Module → where its change is, in this package: a module and a function that takes the imported module."""
DEFERRED = {"torch._dynamo": "", "mlflow": "deepspeed.autotuning.autotuner"}
"""Modules that are executed when something needs them, not when they are imported → by whom, where not by all.

Each process of DeepSpeed imports its tuner, which alone uses MLflow: that took two fifths of the start.
"""


class Finder:
    """First on `sys.meta_path`: lets the others find a module, and has its change follow its execution."""

    def __init__(self) -> None:
        self._looking: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """As the import system calls it."""
        deferred = name in DEFERRED and _begun(DEFERRED[name])
        if (name not in CHANGES and not deferred) or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = None
            for finder in sys.meta_path:
                if finder is not self and hasattr(finder, "find_spec"):
                    spec = finder.find_spec(name, path, target)
                    if spec is not None:
                        break
        finally:
            self._looking.discard(name)
        if spec is None or spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        executed: Any = spec.loader.exec_module
        if deferred:
            if spec.submodule_search_locations is None:
                return spec  # what `amlnode` puts before MLflow, which refuses it to the tuner, or imports it
            defer = importlib.import_module("amlcpu.compiler").defer
            spec.loader.exec_module = functools.partial(defer, executed)  # type: ignore[method-assign]
            return spec

        def exec_module(module: ModuleType) -> None:
            executed(module)
            change(name, module)

        # On the instance: whatever else asks the loader for sources or resources gets the loader itself.
        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _begun(name: str) -> bool:
    """True while a module is executed, and where none is named."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return not name or getattr(spec, "_initializing", False)


def change(name: str, module: ModuleType) -> None:
    """Changes an imported module; one that does not look as expected stays as it is, with a line that says so."""
    place, function = CHANGES[name]
    try:
        getattr(importlib.import_module(f"amlcpu.{place}"), function)(module)
    except (AttributeError, TypeError, ImportError) as error:
        sys.stderr.write(f"amlstack: GPU calls of {name} are not carried to the CPU: {error!r}\n")


def install() -> None:
    """Puts the finder first, once in a process."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def replace(owner: Any, name: str, new: Any, everywhere: str = "torch") -> None:
    """Puts another object in a module's place of that name, and wherever else below a package the old one is known.

    Nothing happens where there is no such name: older versions lack some.
    """
    old = getattr(owner, name, None)
    if old is None:
        return
    setattr(owner, name, new)
    for known, module in list(sys.modules.items()):
        if known.partition(".")[0] == everywhere and getattr(module, "__dict__", {}).get(name) is old:
            setattr(module, name, new)
