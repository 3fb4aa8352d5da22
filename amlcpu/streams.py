"""Streams and events of CUDA, on a processor that does one thing after the other."""

from __future__ import annotations

import time
from typing import Any


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
            message = "Both events must be recorded before calculating elapsed time."
            raise RuntimeError(message)
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
