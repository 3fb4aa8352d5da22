"""Processes that ask for NCCL meet over gloo; what gloo lacks is put together from what it has."""

from __future__ import annotations

import functools
from typing import Any

from amlcpu import callers, devices, ending
from amlcpu.hooks import replace


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
    init, new = dist.init_process_group, dist.new_group

    @functools.wraps(init)
    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device_id") is not None:
            kwargs["device_id"] = None
        kwargs.pop("pg_options", None)
        ending.wait_at_exit()
        return init(gloo(backend), *args, **kwargs)

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
        output: Any,
        input_list: Any,
        op: Any = dist.ReduceOp.SUM,
        group: Any = None,
        async_op: bool = False,
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
