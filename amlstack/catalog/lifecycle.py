"""Where a series stands in its life, as Microsoft's pages on the lifecycle of VM sizes say."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from amlstack.catalog.files import day, load

if TYPE_CHECKING:
    from datetime import date

Stage = Literal["current", "extended", "current or extended", "end of life", "retired"]
"""Microsoft's four stages; "current or extended" where no page says which of the two."""

NewSubscriptions = Literal["closed", "restricted"]


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """What is known of a series that is not retired.

    Attributes:
        stage: Its stage until it is retired.
        new_subscriptions: ``closed`` where new subscriptions cannot deploy it and no more quota is approved,
            ``restricted`` where Microsoft says only that there are restrictions; None for neither.
        closed_since: First day of the month since which it is closed; None for no date.
        source: Where it was read, as keys of ``data/sources.json`` followed by the page.
        checked: The date of that page.
        note: In a sentence, what the page says; may be empty.
    """

    stage: Stage
    new_subscriptions: NewSubscriptions | None
    closed_since: date | None
    source: tuple[str, ...]
    checked: date
    note: str


def of(series: str) -> Lifecycle | None:
    """The row of a series; None where no page speaks of it."""
    return _by_series().get(series)


@cache
def _by_series() -> dict[str, Lifecycle]:
    found = {}
    for row in load("lifecycle"):
        closed = row["closed_since"]
        one = Lifecycle(
            stage=row["stage"],
            new_subscriptions=row["new_subscriptions"],
            closed_since=day(closed) if closed else None,
            source=tuple(row["source"]),
            checked=day(row["checked"]),
            note=row["note"],
        )
        found.update(dict.fromkeys(row["series"], one))
    return found
