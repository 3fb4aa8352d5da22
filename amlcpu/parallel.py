"""Modules, optimisers and loaders that want to know their GPU."""

from __future__ import annotations

import functools
from typing import Any

from amlcpu import devices


def change(torch: Any) -> None:
    """Changes what torch itself has for training on several GPUs."""
    ddp = torch.nn.parallel.DistributedDataParallel
    made = ddp.__init__

    @functools.wraps(made)
    def init(
        self: Any, module: Any, device_ids: Any = None, output_device: Any = None, *args: Any, **kwargs: Any
    ) -> None:
        if not any(parameter.is_cuda for parameter in module.parameters()):
            device_ids = output_device = None
        made(self, module, device_ids, output_device, *args, **kwargs)

    ddp.__init__ = init
    # Statistics over all ranks are CUDA's alone; each rank takes those of its own batch.
    torch.nn.SyncBatchNorm.forward = torch.nn.modules.batchnorm._BatchNorm.forward
    _optimisers(torch)
    _loaders(torch)


def change_fsdp(module: Any) -> None:
    """Shards lie on the CPU, whichever device was named."""
    fsdp = module.FullyShardedDataParallel
    made = fsdp.__init__
    import torch

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        kwargs["device_id"] = torch.device("cpu")
        made(self, *args, **kwargs)

    fsdp.__init__ = init


def _optimisers(torch: Any) -> None:
    """Fused and captured steps are CUDA's; the plain ones compute the same."""
    for name in ("Adam", "AdamW", "SGD", "Adagrad", "NAdam", "RAdam", "Adadelta", "Adamax", "RMSprop", "ASGD", "Rprop"):
        optimiser = getattr(torch.optim, name, None)
        if optimiser is not None:
            optimiser.__init__ = _without(optimiser.__init__, ("fused", "capturable"))


def _without(made: Any, names: tuple[str, ...]) -> Any:
    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        for name in names:
            if kwargs.get(name):
                del kwargs[name]
        made(self, *args, **kwargs)

    return init


def _loaders(torch: Any) -> None:
    loader = torch.utils.data.DataLoader
    made = loader.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("pin_memory_device"):
            kwargs["pin_memory_device"] = devices.on_cpu(torch, kwargs["pin_memory_device"])
            if kwargs["pin_memory_device"] == "cpu":
                kwargs["pin_memory_device"] = ""
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        made(self, *args, **kwargs)

    loader.__init__ = init
