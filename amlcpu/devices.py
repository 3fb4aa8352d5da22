"""Devices and half precision in the arguments of torch's functions: those of CUDA become what a CPU has."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from amlcpu import callers

_single = [False]


def use_single() -> None:
    """From now on the job's own code gets single precision for fp16: a library's fp16 was switched off."""
    _single[0] = True


def change_precision(torch: Any) -> None:
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


_KINDS = ("FloatTensor", "DoubleTensor", "HalfTensor", "BFloat16Tensor", "ByteTensor", "CharTensor", "ShortTensor",
          "IntTensor", "LongTensor", "BoolTensor")  # fmt: skip
_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_STORAGES = ("UntypedStorage", "TypedStorage", "_UntypedStorage", "_TypedStorage", "_StorageBase")
_FACTORIES = (
    *("arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_strided", "eye", "full"),
    *("hamming_window", "hann_window", "kaiser_window", "linspace", "logspace", "ones", "rand", "randint", "randn"),
    *("randperm", "range", "scalar_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "tensor", "tril_indices"),
    *("triu_indices", "zeros"),
)
"""Functions with an argument `device`, for torch before 2.0, which does not list them itself."""


def on_cpu(torch: Any, device: Any) -> Any:
    """A device, its name or its number, with the CPU in place of CUDA; anything else as it is."""
    if isinstance(device, str):
        return "cpu" if device == "cuda" or device.startswith("cuda:") else device
    if isinstance(device, int) and not isinstance(device, bool):
        return "cpu"
    if isinstance(device, torch.device) and device.type == "cuda":
        return torch.device("cpu")
    return device


def change(torch: Any) -> None:
    """Changes factories, conversions of tensors and modules, generators, loading, and devices as contexts."""
    carried = functools.partial(on_cpu, torch)
    _factories(torch, carried)
    _tensors(torch, carried)
    _memory(torch)
    _modules(torch, carried)
    _loading(torch, carried)
    _contexts(torch, carried)
    change_precision(torch)


def with_device(torch: Any, function: Callable[..., Any], carried: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function whose arguments ``device`` and ``dtype`` are carried, and which pins no memory."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if "device" in kwargs:
            kwargs["device"] = carried(kwargs["device"])
        if kwargs.get("dtype") is torch.float16 and is_single(0):
            kwargs["dtype"] = torch.float32
        if kwargs.get("pin_memory"):
            del kwargs["pin_memory"]
        return function(*args, **kwargs)

    return call


def _factories(torch: Any, carried: Callable[[Any], Any]) -> None:
    # Lists are made now, of the functions as they are: torch compares with them what it calls in the end.
    scripted = torch.jit._builtins
    listed = _device_module()
    names = {function.__name__ for function in listed._device_constructors()} if listed is not None else {*_FACTORIES}
    for name in sorted(names | set(_LIKE)):
        function = getattr(torch, name, None)
        if function is None:
            continue
        new = with_device(torch, function, carried)
        operation = scripted._find_builtin(function)
        if operation:
            scripted._register_builtin(new, operation)
        setattr(torch, name, new)


def _tensors(torch: Any, carried: Callable[[Any], Any]) -> None:
    tensor = torch.Tensor
    to, kind = tensor.to, tensor.type

    @functools.wraps(to)
    def tensor_to(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _moved(torch, carried, args, kwargs)
        if len(args) == 1 and args[0] is None and not kwargs:
            return self
        return to(self, *args, **kwargs)

    @functools.wraps(tensor.cuda)
    def tensor_cuda(self: Any, *_args: Any, memory_format: Any = torch.preserve_format, **_kwargs: Any) -> Any:
        return to(self, "cpu", memory_format=memory_format)

    @functools.wraps(kind)
    def tensor_type(self: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(dtype, str):
            dtype = dtype.replace("torch.cuda.", "torch.")
        if dtype in (torch.float16, torch.HalfTensor, "torch.HalfTensor") and is_single(0):
            dtype = torch.float32
        return kind(self, *(() if dtype is None else (dtype,)), *args, **kwargs)

    tensor.to, tensor.cuda, tensor.type = tensor_to, tensor_cuda, tensor_type
    for name in ("new_tensor", "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"):
        if hasattr(tensor, name):
            setattr(tensor, name, with_device(torch, getattr(tensor, name), carried))


def _moved(torch: Any, carried: Callable[[Any], Any], args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Arguments of `to`: its device first, or named; fp16 wherever it stands."""
    if args:
        args = (carried(args[0]), *args[1:])
    if "device" in kwargs:
        kwargs["device"] = carried(kwargs["device"])
    half = torch.float16
    if any(each is half for each in (*args[:2], kwargs.get("dtype"))) and is_single(1):
        args = tuple([torch.float32 if each is half else each for each in args])
        kwargs = {name: torch.float32 if each is half else each for name, each in kwargs.items()}
    return args, kwargs


def _memory(torch: Any) -> None:
    """Pinned memory, streams' marks, and the types and storages of CUDA."""
    tensor = torch.Tensor
    tensor.pin_memory = lambda self, *_args, **_kwargs: self
    tensor.is_pinned = lambda _self, *_args, **_kwargs: False
    tensor.record_stream = lambda _self, _stream: None
    for name in _KINDS:
        if hasattr(torch, name):
            setattr(torch.cuda, name, getattr(torch, name))
    default = torch.set_default_tensor_type

    @functools.wraps(default)
    def set_default_tensor_type(wanted: Any) -> None:
        default(wanted.replace("torch.cuda.", "torch.") if isinstance(wanted, str) else wanted)

    torch.set_default_tensor_type = set_default_tensor_type
    for owner, name in itertools.product((torch, torch.storage), _STORAGES):
        storage = getattr(owner, name, None)
        if storage is not None:
            storage.cuda = lambda self, *_args, **_kwargs: self


def _modules(torch: Any, carried: Callable[[Any], Any]) -> None:
    module = torch.nn.Module
    to = module.to

    @functools.wraps(to)
    def module_to(self: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _moved(torch, carried, args, kwargs)
        return to(self, *args, **kwargs)

    module.to = module_to
    if hasattr(module, "to_empty"):
        module.to_empty = with_device(torch, module.to_empty, carried)


def _loading(torch: Any, carried: Callable[[Any], Any]) -> None:
    """Files that name CUDA as the place of their tensors are read to the CPU."""
    load, script = torch.load, torch.jit.load

    @functools.wraps(load)
    def torch_load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if map_location is None or isinstance(map_location, dict):
            map_location = "cpu"
        return load(f, carried(map_location), *args, **kwargs)

    @functools.wraps(script)
    def jit_load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        return script(f, "cpu" if map_location is None else carried(map_location), *args, **kwargs)

    torch.load, torch.jit.load = torch_load, jit_load
    torch.serialization.load = torch_load


def _contexts(torch: Any, carried: Callable[[Any], Any]) -> None:
    real = torch.Generator

    class Kind(type):
        """`isinstance` and calls go to the real class, which cannot be derived from."""

        def __call__(cls, device: Any = "cpu") -> Any:
            return real(carried(device))

        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real)

    torch.Generator = Kind("Generator", (), {"__module__": "torch", "__doc__": real.__doc__})
    listed = _device_module()
    if listed is None:
        return
    context = listed.DeviceContext.__init__

    def context_init(self: Any, device: Any) -> None:
        context(self, carried(device))

    listed.DeviceContext.__init__ = context_init


def _device_module() -> Any:
    """`torch.utils._device`, where devices are contexts: from torch 2.0 on; None before."""
    try:
        from torch.utils import _device
    except ImportError:
        return None
    return _device
