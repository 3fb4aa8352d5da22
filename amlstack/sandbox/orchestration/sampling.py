"""The search space of a sweep: a distribution as a function of one number between 0 and 1.

Sobol's sequence: points that fill a space evenly, each coordinate between 0 and 1.

Direction numbers: S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008.

Values of a trial: random, by Sobol's sequence, or every combination.
"""

from __future__ import annotations

import hashlib
import math
import random
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.protocol.refusals import invalid, near, not_emulated

if TYPE_CHECKING:
    from collections.abc import Mapping

ARGUMENTS = {
    "choice": ("values",),
    "randint": ("upper",),
    "uniform": ("min_value", "max_value"),
    "loguniform": ("min_value", "max_value"),
    "quniform": ("min_value", "max_value", "q"),
    "qloguniform": ("min_value", "max_value", "q"),
    "normal": ("mu", "sigma"),
    "lognormal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "qlognormal": ("mu", "sigma", "q"),
}
"""The distributions, and their arguments in the order of the wire."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One hyperparameter's distribution: its kind, and its arguments by name."""

    kind: str
    arguments: Mapping[str, Any]

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of a choice; empty for all others."""
        return tuple(self.arguments["values"]) if self.kind == "choice" else ()

    def at(self, u: float, base: float = math.e) -> Any:
        """The value below which a share ``u`` of the distribution lies.

        Args:
            u: Above 0 and below 1.
            base: Of the log distributions.
        """
        arguments = self.arguments
        if self.kind == "choice":
            return self.values[min(int(u * len(self.values)), len(self.values) - 1)]
        if self.kind == "randint":
            return min(int(u * arguments["upper"]), arguments["upper"] - 1)
        if "sigma" in arguments:
            drawn = arguments["mu"] + arguments["sigma"] * NormalDist().inv_cdf(u)
        else:
            drawn = arguments["min_value"] + u * (arguments["max_value"] - arguments["min_value"])
        if "log" in self.kind:
            drawn = base**drawn
        return round(drawn / arguments["q"]) * arguments["q"] if "q" in arguments else float(drawn)


def read(space: Any) -> dict[str, Distribution]:
    """A search space: by name a distribution, as ``["uniform", [0, 1]]`` or as an object with ``type``.

    Raises:
        Refused: One of them is none.
    """
    if not isinstance(space, dict) or not space:
        raise invalid(
            "properties.searchSpace", "a sweep without a search space; one hyperparameter at least is varied."
        )
    return {name: _distribution(value, f"properties.searchSpace.{name}") for name, value in space.items()}


def _distribution(written: Any, where: str) -> Distribution:
    if isinstance(written, dict):
        kind = str(written.get("type"))
        given = [written[name] for name in ARGUMENTS.get(kind, ()) if name in written]
    elif isinstance(written, list) and len(written) == 2 and isinstance(written[1], list):
        kind, given = str(written[0]), written[1]
    else:
        raise invalid(where, "a distribution is a list of its name and its arguments.")
    kind = kind.lower()
    if kind not in ARGUMENTS:
        raise invalid(where, f"'{kind}' is no distribution.{near(kind, ARGUMENTS)}")
    names = ARGUMENTS[kind]
    if len(given) != len(names):
        raise invalid(where, f"{kind} takes {len(names)} argument(s) ({', '.join(names)}), got {len(given)}.")
    found = Distribution(kind, dict(zip(names, given, strict=True)))
    _check(found, where)
    return found


def _check(found: Distribution, where: str) -> None:
    arguments = found.arguments
    if found.kind == "choice":
        if not isinstance(arguments["values"], list) or not arguments["values"]:
            raise invalid(where, "a choice has at least one value.")
        if any(isinstance(value, dict) for value in found.values):
            raise not_emulated(f"choices among objects ({where}); write their values as hyperparameters of their own")
        return
    wrong = next(
        (name for name, value in arguments.items() if isinstance(value, bool) or not isinstance(value, int | float)),
        None,
    )
    if wrong is not None:
        raise invalid(where, f"'{arguments[wrong]}' is no number ({wrong} of {found.kind}).")
    if found.kind == "randint" and (not isinstance(arguments["upper"], int) or arguments["upper"] < 1):
        raise invalid(where, f"randint draws below its upper bound, a whole number from 1; got {arguments['upper']}.")
    if "min_value" in arguments and arguments["min_value"] > arguments["max_value"]:
        raise invalid(
            where, f"the lower bound {arguments['min_value']} is above the upper bound {arguments['max_value']}."
        )
    if arguments.get("q", 1) <= 0 or arguments.get("sigma", 1) < 0:
        raise invalid(where, "q is above 0, and sigma is not below 0.")


BITS = 32

# Per dimension from the second on: degree and coefficients of the primitive polynomial, the first direction numbers.
_POLYNOMIALS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (1, 0, (1,)),
    (2, 1, (1, 3)),
    (3, 1, (1, 3, 1)),
    (3, 2, (1, 1, 1)),
    (4, 1, (1, 1, 3, 3)),
    (4, 4, (1, 3, 5, 13)),
    (5, 2, (1, 1, 5, 5, 17)),
    (5, 4, (1, 1, 5, 5, 5)),
    (5, 7, (1, 1, 7, 11, 19)),
)
DIMENSIONS = len(_POLYNOMIALS) + 1
"""As many hyperparameters as can be drawn together."""


def point(number: int, shifts: tuple[int, ...]) -> tuple[float, ...]:
    """One point of the sequence, shifted bit by bit.

    Args:
        number: From 0.
        shifts: One word of `BITS` bits for each dimension; zeros give the sequence as it is.
    """
    return tuple(_coordinate(number, dimension, shift) for dimension, shift in enumerate(shifts))


def _coordinate(number: int, dimension: int, shift: int) -> float:
    directions = _directions(dimension)
    gray, word = number ^ (number >> 1), shift
    for bit in range(BITS):
        if gray >> bit & 1:
            word ^= directions[bit]
    return (word + 0.5) / (1 << BITS)  # never 0, never 1


def _directions(dimension: int) -> list[int]:
    if dimension == 0:
        return [1 << (BITS - 1 - bit) for bit in range(BITS)]
    degree, coefficients, first = _POLYNOMIALS[dimension - 1]
    found = [number << (BITS - 1 - bit) for bit, number in enumerate(first)]
    for bit in range(degree, BITS):
        word = found[bit - degree] ^ (found[bit - degree] >> degree)
        for step in range(1, degree):
            if coefficients >> (degree - 1 - step) & 1:
                word ^= found[bit - step]
        found.append(word)
    return found


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
            return point(number, tuple(shifts.getrandbits(BITS) for _ in range(count)))
        source = random.Random(f"{self.seed}/{number}")  # noqa: S311
        return tuple(_inside(source.random()) for _ in range(count))


def read_sampling(given: Mapping[str, Any], space: Mapping[str, Distribution], name: str) -> Sampling:
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
    if kind == "random" and rule == "sobol" and len(space) > DIMENSIONS:
        limit = f"Sobol sampling of {len(space)} hyperparameters, at most {DIMENSIONS}; take the rule random"
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
