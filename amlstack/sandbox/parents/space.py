"""The search space of a sweep: a distribution as a function of one number between 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.arm.refusals import invalid, near, not_emulated

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
