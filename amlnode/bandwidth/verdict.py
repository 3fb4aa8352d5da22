"""Bandwidths of an all-reduce, their verdict, and the slow node by name. Pure functions on measured values."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from amlnode.preflight.checks import BAD, GOOD, UNJUDGED, amount
from amlnode.rank import NodeError

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


if TYPE_CHECKING:
    Pair = tuple[int, int]

ROUNDS = 3
LINE = 0.7
"""A node whose best pair is below this part of the usual best pair is slow."""


@dataclass(frozen=True)
class SlowNodes:
    """The slow nodes or pairs.

    Attributes:
        slow: Nodes that are slow with every other.
        text: The same in a sentence.
    """

    slow: tuple[int, ...]
    text: str


def rounds(nodes: Sequence[int], most: int = ROUNDS) -> list[list[Pair]]:
    """Rounds of pairs with partners that change: a round-robin tournament, cut off after ``most`` rounds.

    Of an odd number of nodes one rests in each round; then every node gets its rounds with one more.
    """
    around: list[int | None] = list(nodes)
    if len(around) % 2:
        around.append(None)
        most += 1
    found = []
    for _ in range(min(most, len(around) - 1)):
        half = len(around) // 2
        pairs = zip(around[:half], reversed(around[half:]))
        found.append([(min(a, b), max(a, b)) for a, b in pairs if a is not None and b is not None])
        around = [around[0], around[-1], *around[1:-1]]
    return found


def best(measured: Mapping[Pair, float]) -> dict[int, float]:
    """Each node's best pair, GB/s."""
    found: dict[int, float] = {}
    for pair, busbw in measured.items():
        for node in pair:
            found[node] = max(found.get(node, 0.0), busbw)
    return found


def usual(score: Mapping[int, float]) -> float:
    """The bandwidth of a good node: the median, for a noisy machine's quickest pair may be far above the others."""
    return statistics.median(score.values()) if score else 0.0


def confirm(measured: Mapping[Pair, float]) -> list[list[Pair]]:
    """Further rounds that pair each suspect with a good node, best one that it has not met."""
    score = best(measured)
    line = LINE * usual(score)
    good = sorted((node for node in score if score[node] >= line), key=lambda node: -score[node])
    suspects = [node for node in sorted(score) if score[node] < line]
    found: list[list[Pair]] = []
    while suspects:
        free, pairs, left = list(good), [], []
        for node in suspects:
            if not free:
                left.append(node)
                continue
            partner = next((one for one in free if (min(node, one), max(node, one)) not in measured), free[0])
            free.remove(partner)
            pairs.append((min(node, partner), max(node, partner)))
        if not pairs:
            break
        found.append(pairs)
        suspects = left
    return found


def name(measured: Mapping[Pair, float], alone: Mapping[int, float]) -> SlowNodes:
    """Names the nodes that are slow with every other.

    Args:
        measured: busbw by pair of nodes, GB/s.
        alone: busbw within each node, GB/s; empty where a node has one rank.
    """
    score = best(measured)
    if len(score) > 2:
        top = usual(score)
        slow = tuple(node for node in sorted(score) if score[node] < LINE * top)
        if slow:
            each = ", ".join(f"node {node} reaches {score[node]:.3g} GB/s" for node in slow)
            return SlowNodes(slow, f"{each} at best, other nodes {top:.3g} GB/s")
        worst = min(measured, key=lambda pair: measured[pair])
        if measured[worst] < LINE * top:
            return SlowNodes(
                (),
                f"Nodes {worst[0]} and {worst[1]} are slow with each other alone ({measured[worst]:.3g} GB/s, "
                f"others {top:.3g}): the way between them",
            )
        span = f"{min(measured.values()):.3g} to {max(measured.values()):.3g} GB/s"
        return SlowNodes((), f"No node is slower (pairs {span}): what all share")
    within = max(alone.values(), default=0.0)
    slow = tuple(node for node in sorted(alone) if alone[node] < LINE * within)
    if slow:
        each = ", ".join(f"node {node} reaches {alone[node]:.3g} GB/s" for node in slow)
        return SlowNodes(slow, f"{each} within itself, the other {within:.3g} GB/s")
    if not score:
        return SlowNodes((), "One node: nothing to compare it with")
    first, second = sorted(score)
    return SlowNodes((), f"Node {first} or {second}, or the way between: two nodes cannot be separated by their pair")


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
    """The bandwidth that a measurement is held against.

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
    """Judge whether the bandwidth is what was paid for.

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
