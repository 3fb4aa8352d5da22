"""The most nodes, and processes on each, with which a job is started here; its body keeps what it declares."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

QUERY: Final = "amlstack-scale"
"""Query parameter of a job's PUT by which `amlstack rehearse` hands the scale over, and header of the answer."""

_TEXT = re.compile(r"(?P<nodes>[1-9]\d{0,3})x(?P<ranks>[1-9]\d{0,3})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RehearsalScale:
    """A limit, never a demand: a job that declares fewer nodes or processes keeps its own counts.

    Attributes:
        nodes: The most nodes.
        ranks: The most processes on each.
    """

    nodes: int
    ranks: int

    @classmethod
    def read(cls, text: str) -> RehearsalScale | None:
        """The scale that is written as ``NODESxRANKS``; None for any other text."""
        found = _TEXT.fullmatch(text.strip())
        return None if found is None else cls(int(found["nodes"]), int(found["ranks"]))

    def __str__(self) -> str:
        """``NODESxRANKS``."""
        return f"{self.nodes}x{self.ranks}"

    def workers(self, count: int, nodes: int) -> int:
        """How many of TensorFlow's workers, declared for so many nodes, are started."""
        return min(count, min(nodes, self.nodes) * min(math.ceil(count / nodes), self.ranks))
