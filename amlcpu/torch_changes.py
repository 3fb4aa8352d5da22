"""All changes to torch, and what `torch.cuda` answers: streams and events of a processor without concurrency too."""

from __future__ import annotations

import collections
import os
import time
import types
import warnings
from typing import Any

from amlcpu import callers, communication, devices, parallel
from amlcpu.hooks import replace


class CudaStream:
    """A stream on which all work is done when the call returns."""

    device_index = 0
    cuda_stream = 0
    priority = 0
    stream_id = 0

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Takes what CUDA's takes."""

    def record_event(self, event: CudaEvent | None = None) -> CudaEvent:
        """The event, recorded now."""
        event = event or CudaEvent()
        event.record(self)
        return event

    def query(self) -> bool:
        """True where all is done: always."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_event(self, _event: Any) -> None:
        """Nothing to wait for."""

    def wait_stream(self, _stream: Any) -> None:
        """Nothing to wait for."""

    def __enter__(self) -> CudaStream:  # noqa: PYI034 - typing of Python 3.8 has no Self
        return self

    def __exit__(self, *_error: object) -> None:
        return None


class CudaEvent:
    """A moment of this process's clock."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self._at: float | None = None

    def record(self, _stream: Any = None) -> None:
        """Takes the time."""
        self._at = time.perf_counter()

    def elapsed_time(self, end: CudaEvent) -> float:
        """Milliseconds from this event to another; both recorded."""
        if self._at is None or end._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end._at - self._at) * 1000

    def query(self) -> bool:
        """True where all before it is done: always."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, _stream: Any = None) -> None:
        """Nothing to wait for."""


class Nothing:
    """A context, or a decorator, that changes nothing: of devices, streams, ranges of a profile."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        """Takes what CUDA's takes."""

    def __enter__(self) -> Nothing:  # noqa: PYI034 - as above
        return self

    def __exit__(self, *_error: object) -> None:
        return None


NAME = "CPU (no GPU in this rehearsal)"
_QUIET = (
    "CUDA is not available",
    "User provided device_type of 'cuda'",
    "CUDA initialization",
    "'pin_memory' argument",
    "torch.cuda.amp.GradScaler is enabled",
)
_NOTHING = (
    *("init", "synchronize", "ipc_collect", "empty_cache", "set_per_process_memory_fraction", "set_sync_debug_mode"),
    *("set_stream", "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached"),
    *("reset_accumulated_memory_stats", "set_rng_state", "set_rng_state_all", "seed", "seed_all", "_sleep"),
)
_ZERO = (
    *("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_cached"),
    *("max_memory_cached", "utilization", "temperature", "power_draw", "clock_rate", "memory_usage"),
    *("device_memory_used", "get_sync_debug_mode"),
)


def change(torch: Any) -> None:
    """Changes torch right after its import; a module of the job that has its name stays as it is."""
    if not hasattr(torch, "cuda"):
        return
    for text in _QUIET:
        warnings.filterwarnings("ignore", message=f".*{text}")
    _devices_of_cuda(torch)
    _available(torch)
    _memory(torch)
    _streams(torch)
    devices.change(torch)
    if torch.distributed.is_available():
        communication.change(torch)
    parallel.change(torch)


def _available(torch: Any) -> None:
    """Libraries hear how it is; the job's own code hears yes where a no would end the run, and counts its ranks."""
    cuda = torch.cuda
    available, count, initialise = cuda.is_available, cuda.device_count, cuda._lazy_init

    def is_available() -> bool:
        return available() or callers.must_be_true()

    def device_count() -> int:
        return callers.gpus() if callers.asked_by_job() else count()

    def lazy_init() -> None:
        try:
            initialise()
        except (AssertionError, RuntimeError) as error:
            message = (
                f"{error}\n[amlstack] This machine has no GPU, and no such call is carried to the CPU in a rehearsal: "
                "the job's code is not at fault."
            )
            raise RuntimeError(message) from None

    replace(cuda, "is_available", is_available)
    replace(cuda, "device_count", device_count)
    replace(cuda, "_lazy_init", lazy_init)
    replace(cuda, "is_bf16_supported", lambda *_args, **_kwargs: True)
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is None:
        return
    current = accelerator.current_accelerator

    def current_accelerator(*args: Any, **kwargs: Any) -> Any:
        return torch.device("cpu") if callers.asked_by_job() else current(*args, **kwargs)

    replace(accelerator, "current_accelerator", current_accelerator)
    replace(accelerator, "device_count", lambda: callers.gpus() if callers.asked_by_job() else count())
    for name in ("set_device_index", "set_device_idx", "synchronize", "set_stream"):
        replace(accelerator, name, _answer(None))
    for name in ("current_device_index", "current_device_idx"):
        replace(accelerator, name, _answer_of(cuda))


def _devices_of_cuda(torch: Any) -> None:
    cuda = torch.cuda
    current = [0]

    def set_device(device: Any) -> None:
        index = getattr(device, "index", device)
        if isinstance(index, str):
            index = int(index.partition(":")[2] or 0)
        current[0] = index if isinstance(index, int) and index >= 0 else current[0]

    def properties(_device: Any = None) -> Any:
        pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
        return types.SimpleNamespace(
            name=NAME,
            major=8,
            minor=0,
            total_memory=pages * size,
            multi_processor_count=os.cpu_count() or 1,
            is_integrated=False,
            is_multi_gpu_board=False,
            warp_size=32,
            gcnArchName="",
            uuid="",
            L2_cache_size=0,
            max_threads_per_multi_processor=2048,
        )

    for name, new in {
        "set_device": set_device,
        "current_device": lambda: current[0],
        "get_device_name": lambda _device=None: NAME,
        "get_device_capability": lambda _device=None: (8, 0),
        "get_device_properties": properties,
        "can_device_access_peer": lambda *_args: False,
        "is_current_stream_capturing": lambda: False,
        "get_rng_state": lambda _device=None: torch.get_rng_state(),
        "get_rng_state_all": lambda: [torch.get_rng_state()] * callers.gpus(),
        "initial_seed": torch.initial_seed,
        "device": _context("device"),
        "device_of": _context("device_of"),
    }.items():
        replace(cuda, name, new)


def _memory(torch: Any) -> None:
    cuda = torch.cuda
    for name in _NOTHING:
        replace(cuda, name, _answer(None))
    for name in _ZERO:
        replace(cuda, name, _answer(0))

    def free(_device: Any = None) -> tuple[int, int]:
        size = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * size, os.sysconf("SC_PHYS_PAGES") * size

    for name, new in {
        "mem_get_info": free,
        "memory_stats": lambda _device=None: collections.defaultdict(int),
        "memory_stats_as_nested_dict": lambda _device=None: {},
        "memory_snapshot": lambda *_args: [],
        "memory_summary": lambda *_args, **_kwargs: "no GPU in this rehearsal: no memory of one is counted",
        "list_gpu_processes": lambda _device=None: "no GPU in this rehearsal",
        "_record_memory_history": _answer(None),
        "_dump_snapshot": _answer(None),
    }.items():
        replace(cuda.memory if name.startswith("_") else cuda, name, new)
    if hasattr(cuda, "nccl"):
        version = cuda.nccl.version

        def nccl_version() -> Any:
            try:
                return version()
            except (AttributeError, ImportError, RuntimeError):
                return (0, 0, 0)

        cuda.nccl.version = nccl_version


def _streams(torch: Any) -> None:
    cuda = torch.cuda
    default = CudaStream()
    for name in ("current_stream", "default_stream", "get_stream_from_external"):
        replace(cuda, name, _answer(default))
    for name, new in {
        "Stream": CudaStream,
        "ExternalStream": type("ExternalStream", (CudaStream,), {}),
        "Event": CudaEvent,
        "stream": _context("stream"),
        "StreamContext": _context("StreamContext"),
    }.items():
        replace(cuda, name, new)
    # torch 2.1 to 2.5 import their compiler, which every optimiser does, only where both are of these kinds.
    for kind, own in (("_StreamBase", CudaStream), ("_EventBase", CudaEvent)):
        getattr(getattr(getattr(torch, "_streambase", None), kind, None), "register", lambda _: None)(own)
    for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
        setattr(cuda.nvtx, name, _answer(0))
    cuda.nvtx.range = _context("range")
    for name in ("init", "start", "stop"):
        if hasattr(cuda.profiler, name):
            setattr(cuda.profiler, name, _answer(None))
    cuda.profiler.profile = _context("profile")


def _answer(value: Any) -> Any:
    """A new function that answers so, whatever it is given: torch.compile tells functions apart by their identity."""
    return lambda *_args, **_kwargs: value


def _answer_of(cuda: Any) -> Any:
    """A new function for the number of the device that was set."""
    return lambda: cuda.current_device()  # noqa: PLW0108 - a new one


def _context(name: str) -> type:
    return type(name, (Nothing,), {})
