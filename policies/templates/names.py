"""What an expression of a template asks for: names, and the place that the template is deployed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from policies.evaluation.facts import GAP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.templates.values import Budget


@dataclass(frozen=True, slots=True)
class Around:
    """What is known of the place that a template is deployed to.

    Attributes:
        group: Name of the resource group; a gap where it is not known.
        group_location: Its location; None where it is not known.
        location: Where the deployment itself is kept; None where it is not known.
    """

    group: str = GAP
    group_location: Any = None
    location: Any = None


class TemplateNames(Protocol):
    """The names of one template, as its expressions see them; `scope.Scope` has them.

    Attributes:
        around: Where the template is deployed.
        copies: Index in each loop around, by the loop's name in small letters; the innermost also as the empty name.
        budget: What is left to spend.
    """

    around: Around
    copies: Mapping[str, int | None]
    budget: Budget

    def named(self, kind: str, name: str) -> Any:
        """The value of a parameter or variable."""
        ...
