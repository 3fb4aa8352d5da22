"""Values of a trial: random, by Sobol's sequence, or every combination."""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid, not_emulated
from amlstack.sandbox.parents import sobol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.parents.space import Distribution


@dataclass(frozen=True, slots=True)
class Sampling:
    """An algorithm; the same number always gives the same values.

    Attributes:
        kind: ``random``, ``grid``, or ``bayesian``, which is sampled as random.
        rule: ``random`` or ``sobol``, for random sampling.
        seed: What the draws start from.
        base: Of the log distributions.
    """

    kind: str
    rule: str
    seed: str
    base: float = math.e

    def values(self, space: Mapping[str, Distribution], number: int) -> dict[str, Any] | None:
        """The hyperparameters of one trial (from 0); None when a grid has no more."""
        if self.kind == "grid":
            return _grid(space, number)
        names = sorted(space)
        drawn = {
            name: space[name].at(u, self.base) for name, u in zip(names, self._draw(len(names), number), strict=True)
        }
        return {name: drawn[name] for name in space}

    def _draw(self, count: int, number: int) -> tuple[float, ...]:
        if self.rule == "sobol":
            shifts = random.Random(self.seed)  # noqa: S311 - a sample, no secret
            return sobol.point(number, tuple(shifts.getrandbits(sobol.BITS) for _ in range(count)))
        source = random.Random(f"{self.seed}/{number}")  # noqa: S311
        return tuple(_inside(source.random()) for _ in range(count))


def read(given: Mapping[str, Any], space: Mapping[str, Distribution], name: str) -> Sampling:
    """Reads ``samplingAlgorithm``.

    Args:
        given: As in the body.
        space: What is sampled.
        name: The sweep's name; without a seed it is one, so that a restart draws the same.

    Raises:
        Refused: The algorithm cannot sample the space.
    """
    where = "properties.samplingAlgorithm"
    kind, rule = str(given["samplingAlgorithmType"]).lower(), str(given.get("rule") or "random").lower()
    takes = {"grid": ("choice",), "bayesian": ("choice", "uniform", "quniform")}.get(kind)
    odd = next((name for name, each in space.items() if takes is not None and each.kind not in takes), None)
    if odd is not None and takes is not None:
        message = (
            f"{kind} sampling takes {', '.join(takes)}; '{odd}' is {space[odd].kind}. Take random sampling for it."
        )
        raise invalid(where, message)
    if kind == "random" and rule == "sobol" and len(space) > sobol.DIMENSIONS:
        limit = f"Sobol sampling of {len(space)} hyperparameters, at most {sobol.DIMENSIONS}; take the rule random"
        raise not_emulated(limit)
    seed = given.get("seed")
    text = hashlib.sha256(name.encode()).hexdigest() if seed is None else str(seed)
    return Sampling(kind, rule if kind == "random" else "random", text, _base(given.get("logbase"), where))


def _base(logbase: Any, where: str) -> float:
    if logbase is None or logbase == "e":
        return math.e
    try:
        found = float(logbase)
    except (TypeError, ValueError):
        found = 0.0
    if found <= 0:
        raise invalid(f"{where}.logbase", f"'{logbase}' is neither a number above 0 nor 'e'.")
    return found


def _grid(space: Mapping[str, Distribution], number: int) -> dict[str, Any] | None:
    """The combinations in the order in which they would be counted, the last hyperparameter first."""
    found = {}
    for name in reversed(list(space)):
        number, index = divmod(number, len(space[name].values))
        found[name] = space[name].values[index]
    return None if number else {name: found[name] for name in space}


def _inside(u: float) -> float:
    return min(max(u, 2.0**-53), 1 - 2.0**-53)
