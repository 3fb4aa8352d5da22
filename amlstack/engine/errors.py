"""How the engine fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from amlstack.engine.outcome import Outcome


class EngineError(Exception):
    """The engine could not be had, or did not do what it was asked; the message is for the user."""


class EngineInterruptedError(KeyboardInterrupt):
    """A command of the engine was interrupted (Ctrl-C), and has ended what was under way.

    Attributes:
        outcome: What it did until then.
    """

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("interrupted")
        self.outcome = outcome
