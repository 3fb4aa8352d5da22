"""Processes that ask for NCCL meet over gloo; what gloo lacks is put together from what it has.

The rank and world size of a process are noted when it joins others, by whatever library.

A process that met others over gloo ends only when gloo's threads have let go of what belongs to Python. A thread that
has just finished a transfer still frees the transfer's tensors. If the interpreter ends first, the thread ends the
process with SIGABRT ("terminate called without an active exception", https://github.com/pytorch/pytorch/pull/179291).
Busy machines show it often; with NCCL, on Azure, it does not happen. The same holds for the end of a group: freeing a
model of DistributedDataParallel right after it would wait for a thread that waits for the interpreter.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from amlcpu import callers, devices
from amlcpu.hooks import replace

LONGEST = 2.0
"""Seconds after which a process ends whatever its threads do: some compute until the last moment."""
_PAUSE = 0.001
_QUIET_LOOKS = 2  # at the first, a thread may wait for the interpreter's lock, which is free between two looks
_registered = False


def wait_at_exit() -> None:
    """Has this process wait for its threads when it ends; once, however many groups it makes."""
    global _registered  # noqa: PLW0603
    if not _registered:
        _registered = True
        atexit.register(wait_for_threads)


def wait_for_threads(running: Callable[[], bool] | None = None, clock: Callable[[], float] = time.monotonic) -> None:
    """Returns when no other thread of this process has anything to do, or after `LONGEST`.

    Args:
        running: Whether another thread runs or wants to; by default the system's word.
        clock: Seconds from any start.
    """
    end, quiet = clock() + LONGEST, 0
    while quiet < _QUIET_LOOKS and clock() < end:
        time.sleep(_PAUSE)  # frees the interpreter's lock for whoever waits for it
        quiet = 0 if (running or others_run)() else quiet + 1


def others_run() -> bool:
    """True where a thread of this process other than the caller's runs, or is ready to."""
    own = os.readlink("/proc/thread-self").rpartition("/")[2]
    for task in Path("/proc/self/task").iterdir():
        if task.name == own:
            continue
        try:
            stat = (task / "stat").read_bytes()
        except OSError:  # it has ended
            continue
        # The state follows the name, which is in brackets and may hold any character.
        if stat.rpartition(b")")[2].split()[0] in (b"R", b"D"):
            return True
    return False


def gloo(backend: Any) -> Any:
    """A backend's name without NCCL: gloo in place of `nccl`, of a pair with it, and of none."""
    if backend is None:
        return "gloo"
    text = str(backend).lower()
    if text in ("nccl", "undefined") or "nccl" in [part.rpartition(":")[2] for part in text.split(",")]:
        return "gloo"
    return backend


def change(torch: Any) -> None:
    """Changes how groups are made and what they are asked for."""
    dist = torch.distributed
    _groups(dist)
    _averages(dist)
    _scattered(torch, dist)
    barrier, nccl = dist.barrier, dist.is_nccl_available

    @functools.wraps(barrier)
    def one_barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Any:  # noqa: ARG001 - torch's
        return barrier(group=group, async_op=async_op)

    replace(dist, "barrier", one_barrier)
    replace(dist, "is_nccl_available", lambda: callers.asked_by_job() or nccl())


def change_mesh(module: Any) -> None:
    """Meshes of CUDA devices are meshes of processes on the CPU."""
    import torch

    for owner, name in ((module, "init_device_mesh"), (module.DeviceMesh, "__init__")):
        made = getattr(owner, name)
        setattr(owner, name, _on_a_mesh(torch, made, 0 if owner is module else 1))


def _on_a_mesh(torch: Any, made: Any, at: int) -> Any:
    @functools.wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        if len(args) > at:
            args = (*args[:at], devices.on_cpu(torch, args[at]), *args[at + 1 :])
        if "device_type" in kwargs:
            kwargs["device_type"] = devices.on_cpu(torch, kwargs["device_type"])
        return made(*args, **kwargs)

    return call


def _groups(dist: Any) -> None:
    init, new, destroy = dist.init_process_group, dist.new_group, dist.destroy_process_group

    @functools.wraps(init)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device_id") is not None:
            kwargs["device_id"] = None
        kwargs.pop("pg_options", None)
        wait_at_exit()
        result = init(gloo(backend), *args, **kwargs)
        note(lambda: (dist.get_rank(), dist.get_world_size()))
        return result

    @functools.wraps(new)
    def new_group(
        ranks: Any = None, timeout: Any = None, backend: Any = None, pg_options: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        del pg_options
        if kwargs.get("device_id") is not None:
            kwargs["device_id"] = None
        backend = None if backend is None else gloo(backend)
        if timeout is None and not args:
            return new(ranks, backend=backend, **kwargs)  # before torch 2 None is no timeout
        return new(ranks, timeout, backend, None, *args, **kwargs)

    @functools.wraps(destroy)
    def destroy_process_group(*args: Any, **kwargs: Any) -> None:
        wait_for_threads()
        destroy(*args, **kwargs)

    replace(dist, "destroy_process_group", destroy_process_group)
    replace(dist, "init_process_group", init_process_group)
    replace(dist, "new_group", new_group)


class Divided:
    """A transfer under way whose result is divided once it is there."""

    def __init__(self, work: Any, tensor: Any, size: int) -> None:
        self._work, self._tensor, self._size = work, tensor, size

    def wait(self, *args: Any, **kwargs: Any) -> Any:
        """Waits for the result, and divides it the first time."""
        done = self._work.wait(*args, **kwargs)
        if self._size:
            self._tensor.div_(self._size)
            self._size = 0
        return done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work, name)


def _averages(dist: Any) -> None:
    """`ReduceOp.AVG` is a sum that is divided."""
    average = getattr(dist.ReduceOp, "AVG", None)
    if average is None:
        return
    reduce, one = dist.all_reduce, dist.reduce

    @functools.wraps(reduce)
    def all_reduce(tensor: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Any:
        if op != average:
            return reduce(tensor, op, group, async_op)
        work = reduce(tensor, dist.ReduceOp.SUM, group, async_op)
        size = dist.get_world_size(group)
        if async_op:
            return Divided(work, tensor, size)
        tensor.div_(size)
        return work

    @functools.wraps(one)
    def reduce_to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        words = list(args)
        op = kwargs.get("op", words[1] if len(words) > 1 else None)
        if op != average:
            return one(tensor, *args, **kwargs)
        if len(words) > 1:
            words[1] = dist.ReduceOp.SUM
        else:
            kwargs["op"] = dist.ReduceOp.SUM
        work = one(tensor, *words, **kwargs)
        size = dist.get_world_size(kwargs.get("group", words[2] if len(words) > 2 else None))
        if work is not None:
            return Divided(work, tensor, size)
        tensor.div_(size)
        return work

    replace(dist, "all_reduce", all_reduce)
    replace(dist, "reduce", reduce_to)


def _scattered(torch: Any, dist: Any) -> None:
    """Sums of which each rank keeps a part (all of it is summed, the part copied), and lists from all to all."""

    def part_of(output: Any, whole: Any, op: Any, group: Any) -> None:
        dist.all_reduce(whole, op, group)
        rank = dist.get_rank(group)
        output.copy_(whole.view(dist.get_world_size(group), *output.shape)[rank])

    def reduce_scatter(
        output: Any, input_list: Any, op: Any = dist.ReduceOp.SUM, group: Any = None, async_op: bool = False
    ) -> Any:
        part_of(output, torch.stack([each.detach() for each in input_list]), op, group)
        return Done() if async_op else None

    def reduce_scatter_tensor(
        output: Any,
        input: Any,  # noqa: A002 - torch's
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
    ) -> Any:
        part_of(output, input.detach().clone(), op, group)
        return Done() if async_op else None

    def all_to_all(output_tensor_list: Any, input_tensor_list: Any, group: Any = None, async_op: bool = False) -> Any:
        me = dist.get_rank(group)
        output_tensor_list[me].copy_(input_tensor_list[me])
        waiting = []
        for peer in range(dist.get_world_size(group)):
            if peer != me:
                place = peer if group is None else dist.get_global_rank(group, peer)
                waiting.append(dist.isend(input_tensor_list[peer].contiguous(), place, group))
                waiting.append(dist.irecv(output_tensor_list[peer], place, group))
        for each in waiting:
            each.wait()
        return Done() if async_op else None

    replace(dist, "all_to_all", all_to_all)
    replace(dist, "reduce_scatter", reduce_scatter)
    for name in ("reduce_scatter_tensor", "_reduce_scatter_base"):
        replace(dist, name, reduce_scatter_tensor)


class Done:
    """A transfer that has ended."""

    def wait(self, *_args: Any, **_kwargs: Any) -> bool:
        """Nothing to wait for."""
        return True

    def is_completed(self) -> bool:
        """Always."""
        return True


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
