"""Libraries that refuse a job: they get what a CPU has, in single precision, and sample data as it is."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from typing import Any

from amlcpu import callers, devices

_named: set[str] = set()


def change_torchvision(module: Any) -> None:
    """A file of a data set that is there is taken, whatever its checksum; another one than the original is named."""
    check = module.check_integrity

    def check_integrity(fpath: Any, md5: str | None = None) -> bool:
        if check(fpath, md5):
            return True
        if not os.path.isfile(fpath):  # noqa: PTH113 - as torchvision gives it, text or path
            return False
        folder = os.path.dirname(os.fspath(fpath))  # noqa: PTH120
        if folder not in _named:
            _named.add(folder)
            sys.stderr.write(
                f"amlstack: {folder} does not hold the data set that torchvision knows; it is read as it is\n"
            )
        return True

    module.check_integrity = check_integrity


_HALF = ("fp16", "bf16", "fp8")
_PRECISIONS = ("16", "16-mixed", "16-true", "bf16", "bf16-mixed", "bf16-true", "transformer-engine",
               "transformer-engine-float16")  # fmt: skip


def change_accelerate(module: Any) -> None:
    """`Accelerator(mixed_precision=…)`, and what `accelerate launch` was given, is `no`."""
    made = module.Accelerator.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        words = list(args)
        if len(words) > 2 and str(words[2]) in _HALF:
            words[2] = "no"
        if str(kwargs.get("mixed_precision")) in _HALF:
            kwargs["mixed_precision"] = "no"
        if os.environ.get("ACCELERATE_MIXED_PRECISION") in _HALF:
            os.environ["ACCELERATE_MIXED_PRECISION"] = "no"
        made(self, *words, **kwargs)

    module.Accelerator.__init__ = init


def change_transformers(module: Any) -> None:
    """The Trainer's arguments ask for no half precision."""
    made = module.TrainingArguments.__post_init__

    @functools.wraps(made)
    def post_init(self: Any) -> None:
        for name in ("fp16", "bf16", "fp16_full_eval", "bf16_full_eval"):
            if getattr(self, name, False):
                object.__setattr__(self, name, False)
        if getattr(self, "tf32", None):
            object.__setattr__(self, "tf32", None)
        made(self)

    module.TrainingArguments.__post_init__ = post_init


def change_lightning(module: Any) -> None:
    """The Trainer's accelerator is the CPU, with as many processes as it was given devices."""
    connector = module._AcceleratorConnector if hasattr(module, "_AcceleratorConnector") else module._Connector
    made = connector.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("accelerator", "auto") in ("gpu", "cuda", "auto"):
            kwargs["accelerator"] = "cpu"
            kwargs["devices"] = _processes(kwargs.get("devices", "auto"))
        if str(kwargs.get("precision")) in _PRECISIONS:
            kwargs["precision"] = "32-true"
        made(self, *args, **kwargs)

    connector.__init__ = init


def change_deepspeed(module: Any) -> None:
    """`fp16` and `amp` in DeepSpeed's configuration are off, and so is `half()` of the code that feeds its model.

    bf16 has a CPU version of its own.
    """
    read = module.DeepSpeedConfig._initialize_params

    @functools.wraps(read)
    def initialize_params(self: Any, param_dict: Any) -> Any:
        for name in ("fp16", "amp"):
            if isinstance(param_dict.get(name), dict) and param_dict[name].get("enabled"):
                param_dict[name] = {**param_dict[name], "enabled": False}
                devices.use_single()
        if not _compiles():
            param_dict = _with_torch_adam(param_dict)
        return read(self, param_dict)

    module.DeepSpeedConfig._initialize_params = initialize_params


def change_deepspeed_comm(module: Any) -> None:
    """Ranks of a node sum over gloo where DeepSpeed's own sum over shared memory cannot be compiled."""
    built = module.build_shm_op
    module.build_shm_op = lambda: built() if _compiles() else None


def change_deepspeed_profiler(module: Any) -> None:
    """Its profiler counts a function that torch has from 2.0 on; before, one stands for it while it counts.

    A DeepSpeed that runs on a CPU may be later than the declared one, which did not ask for it.
    """
    functions, name = module.F, "scaled_dot_product_attention"
    if hasattr(functions, name):
        return
    begin, end = module._patch_functionals, module._reload_functionals

    def scaled_dot_product_attention(*_args: Any, **_kwargs: Any) -> Any:
        raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")

    def patch() -> None:
        setattr(functions, name, scaled_dot_product_attention)
        begin()

    def reload() -> None:
        end()
        delattr(functions, name)

    module._patch_functionals, module._reload_functionals = patch, reload


def _compiles() -> bool:
    """True where DeepSpeed's kernels for the CPU can be compiled: they need a compiler, and headers of torch 2."""
    import torch

    return int(torch.__version__.partition(".")[0]) >= 2 and shutil.which(os.environ.get("CXX", "c++")) is not None


def _with_torch_adam(configuration: Any) -> Any:
    """DeepSpeed's configuration with torch's Adam in place of a compiled one, with the compiled one's default."""
    optimiser = configuration.get("optimizer")
    if not isinstance(optimiser, dict) or str(optimiser.get("type")).lower() not in ("adam", "adamw"):
        return configuration
    parameters = {"weight_decay": 0.0, **optimiser.get("params", {}), "torch_adam": True}
    parameters.pop("set_grad_none", None)  # a matter of memory
    if parameters.get("bias_correction"):
        del parameters["bias_correction"]  # torch's always has it
    return {**configuration, "optimizer": {**optimiser, "params": parameters}}


def _processes(wanted: Any) -> Any:
    """The number of processes for as many devices."""
    if isinstance(wanted, (list, tuple)):
        return len(wanted)
    if wanted in ("auto", -1, "-1", None):
        return callers.gpus()
    if isinstance(wanted, str) and "," in wanted:
        return len([word for word in wanted.split(",") if word.strip()])
    return wanted
