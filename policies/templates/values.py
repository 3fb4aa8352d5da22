"""Values inside a template: plain data, texts with gaps, and what cannot be worked out here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from amlstack.base.arm_language.values import OpenError
from amlstack.base.pulumi_wire import UNKNOWN
from policies.evaluation.facts import AT_UP, Gapped, Unknown

TOO_LARGE = "the template is too large to be worked out here"


def opened(marker: Unknown) -> OpenError:
    """The reason why a value that was found to be open is open."""
    return OpenError(marker.why.partition(": ")[2] or marker.why, later=marker.why == AT_UP)


@dataclass(slots=True)
class Budget:
    """How much of one template is worked out before it is given up: no template written by hand is that large."""

    left: int = 200_000

    def spend(self) -> None:
        """Count one step.

        Raises:
            OpenError: Nothing is left.
        """
        self.left -= 1
        if self.left < 0:
            raise OpenError(TOO_LARGE)


def closed(value: Any, budget: Budget) -> Any:
    """A value of which every part is known; whole numbers as such, as all are floats on the wire.

    Raises:
        OpenError: A part is not known, or the budget is spent.
    """
    budget.spend()
    if isinstance(value, Gapped):
        raise OpenError(value.why)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if (why := missing(value)) is not None:
        raise why
    if isinstance(value, Mapping):
        return {key: closed(one, budget) for key, one in value.items()}
    if isinstance(value, list):
        return [closed(one, budget) for one in value]
    return value


def missing(value: Any) -> OpenError | None:
    """Why a value is open as a whole; None where it is not."""
    if value is UNKNOWN:
        return OpenError(AT_UP, later=True)
    return opened(value) if isinstance(value, Unknown) else None


def member(value: Any, key: Any) -> Any:
    """A property of an object, in any letter case, or an element of a list.

    Raises:
        OpenError: There is none, or the value is not known.
    """
    if (why := missing(value)) is not None:
        raise why
    if isinstance(value, Mapping) and isinstance(key, str):
        found = [one for name, one in value.items() if name.lower() == key.lower()]
        if len(found) == 1:
            return found[0]
    if isinstance(value, list) and isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(value):
        return value[key]
    raise OpenError(f"there is no `{str(key)[:60]}` in the value")
