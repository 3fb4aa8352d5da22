"""Message sizes and the two bandwidths of an all-reduce."""

from __future__ import annotations

from dataclasses import dataclass

from amlnode.errors import NodeError
from amlnode.preflight.plan import amount

MOST = 1 << 36


@dataclass(frozen=True)
class Measurement:
    """One message size.

    Attributes:
        size: Bytes of the message.
        seconds: One all-reduce of it, as the slowest rank sees it.
        algbw: GB/s (10^9) of the message itself.
        busbw: GB/s that every rank sends and receives, which is comparable to the hardware's.
    """

    size: int
    seconds: float
    algbw: float
    busbw: float


def measurement(size: int, seconds: float, ranks: int) -> Measurement:
    """The bandwidths of one measurement; busbw = algbw × 2 (n - 1) / n."""
    algbw = size / seconds / 1e9
    return Measurement(size, seconds, algbw, algbw * 2 * (ranks - 1) / ranks)


def sizes(text: str) -> tuple[int, ...]:
    """Sizes from ``1M..1G`` (doubling), ``1M,64M`` or both, ascending.

    Raises:
        NodeError: It is neither.
    """
    found: set[int] = set()
    try:
        for part in text.split(","):
            low, dots, high = part.partition("..")
            first = amount(low)
            last = amount(high) if dots else first
            if not 4 <= first <= last <= MOST:
                raise ValueError(part)  # noqa: TRY301 - one message for all that is no list of sizes
            while first <= last:
                found.add(first // 4 * 4)
                first *= 2
    except (ValueError, OverflowError):
        raise NodeError(
            f"--sizes must be message sizes, got `{text}`",
            "Sizes are bytes from 4 to 64G: 1M..1G doubles, 1M,64M lists",
            "E.g. --sizes 1M..1G.",
        ) from None
    return tuple(sorted(found))
