"""torch 2.1 to 2.5 import their compiler only where `torch.cuda`'s streams and events are of its kinds."""

from __future__ import annotations

import types
from abc import ABC, abstractmethod

from amlcpu import torch_changes


class OfTheCompiler(ABC):
    """As in `torch/_streambase.py` of torch 2.5."""

    @abstractmethod
    def query(self) -> bool:
        raise NotImplementedError


def torch(**modules: object) -> types.SimpleNamespace:
    cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(), profiler=types.SimpleNamespace())
    for name in ("Stream", "ExternalStream", "Event", "stream", "StreamContext"):
        setattr(cuda, name, object())
    return types.SimpleNamespace(cuda=cuda, **modules)


def test_streams_and_events_are_of_the_kinds_that_it_asks_for() -> None:
    stream, event = (type(name, (OfTheCompiler,), {}) for name in ("_StreamBase", "_EventBase"))
    given = torch(_streambase=types.SimpleNamespace(_StreamBase=stream, _EventBase=event))
    torch_changes._streams(given)
    assert issubclass(given.cuda.Stream, stream)
    assert issubclass(given.cuda.Event, event)


def test_a_torch_without_such_kinds_is_changed_all_the_same() -> None:
    for given in (torch(), torch(_streambase=types.SimpleNamespace(_EventBase=int))):
        torch_changes._streams(given)
        assert given.cuda.Event is torch_changes.CudaEvent
