"""What a measured bandwidth means, and which network NCCL's log names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlnode.preflight.check import BAD, GOOD, UNJUDGED

if TYPE_CHECKING:
    from collections.abc import Iterable

_USING = re.compile(r"NET/IB : Using .*?\[\d+\](\S+?):\d+/(IB|RoCE)")
_NETWORK = re.compile(r"Using network (\S+)")
_WHY = (
    (re.compile(r"NCCL_IB_DISABLE set by environment to [1-9]"), "NCCL_IB_DISABLE is set"),
    (re.compile(r"Failed to open libibverbs"), "the image lacks libibverbs"),
    (re.compile(r"NET/IB : No device found"), "no InfiniBand device in the container"),
)


@dataclass(frozen=True)
class Network:
    """The network of NCCL's data between nodes.

    Attributes:
        name: InfiniBand, RoCE, Socket or as NCCL calls it; empty where it is not logged.
        why: Why it is not InfiniBand, where NCCL logged that.
    """

    name: str = ""
    why: str = ""


def network(lines: Iterable[str]) -> Network:
    """The network in NCCL's log (NCCL_DEBUG=INFO)."""
    name = why = link = ""
    for line in lines:
        if found := _USING.search(line):
            link = "InfiniBand" if found[2] == "IB" else "RoCE"
        elif found := _NETWORK.search(line):
            name = found[1]
        else:
            why = next((reason for pattern, reason in _WHY if pattern.search(line)), why)
    if name in ("", "IB", "IBext"):
        return Network(link or name, "" if link else why)
    return Network(name, why)


@dataclass(frozen=True)
class Expectation:
    """What a measurement is held against.

    Attributes:
        least: GB/s of busbw below which something is broken; None: not known.
        explicit: Given on the command line, for whatever is measured; else it is the planned nodes', for NCCL on them.
        infiniband: Whether InfiniBand was planned between the nodes.
        rehearsal: Whether this machine only plays the planned nodes.
    """

    least: float | None = None
    explicit: bool = False
    infiniband: bool = False
    rehearsal: bool = False


@dataclass(frozen=True)
class BandwidthVerdict:
    """Good, bad or not judged, in a sentence."""

    state: str
    text: str


def judge(
    peak: float, *, backend: str, nodes: int, ranks: int, seen: Network, expected: Expectation
) -> BandwidthVerdict:
    """Whether the bandwidth is what was paid for.

    Args:
        peak: The best busbw of all sizes, GB/s.
        backend: nccl or gloo.
        nodes: Number of nodes.
        ranks: Number of ranks.
        seen: The network in NCCL's log.
        expected: What it is held against.
    """
    reached = f"{peak:.4g} GB/s of busbw"
    if ranks == 1:
        return BandwidthVerdict(UNJUDGED, "one rank alone sends nothing")
    planned = backend == "nccl" and not expected.rehearsal
    if planned and expected.infiniband and nodes > 1 and seen.name not in ("", "InfiniBand"):
        why = f" ({seen.why})" if seen.why else ""
        return BandwidthVerdict(BAD, f"NCCL took {seen.name}{why} where InfiniBand was planned; {reached}")
    if expected.least is None:
        return BandwidthVerdict(UNJUDGED, f"{reached}; no expectation given")
    if not (planned or expected.explicit):
        what = "a rehearsal" if expected.rehearsal else f"{backend} on CPUs"
        return BandwidthVerdict(
            UNJUDGED, f"{reached} by {what}; {expected.least:g} GB/s is expected of NCCL on the planned nodes"
        )
    if peak < expected.least:
        return BandwidthVerdict(
            BAD, f"{reached} is {peak / expected.least:.1%} of the {expected.least:g} GB/s expected"
        )
    return BandwidthVerdict(GOOD, f"{reached}, {expected.least:g} GB/s expected")
