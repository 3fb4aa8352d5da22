"""Naming the slow node: nodes are measured in pairs, and the one that is slow with every other is named.

Pairs of one round share no node, so that a round measures half as many pairs as there are nodes at once. Three rounds
of changing partners leave few suspects; a last one pairs each of them with a node known to be good.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Pair = tuple[int, int]

ROUNDS = 3
LINE = 0.7
"""A node whose best pair is below this part of the usual best pair is slow."""


@dataclass(frozen=True)
class SlowNodes:
    """Who is slow.

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
    """What a good node reaches: the median, for the quickest pair of a noisy machine may be far above the others."""
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
