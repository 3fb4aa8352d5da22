"""What an environment has and its stand-in has not."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Absent:
    """One thing that is not in a stand-in.

    Attributes:
        what: A package, or a line of a Dockerfile, as it was declared.
        why: Why it is not there, in a few words.
        modules: Python modules that cannot be imported for want of it.
    """

    what: str
    why: str
    modules: tuple[str, ...] = ()

    @property
    def consequence(self) -> str:
        """What fails without it."""
        if self.modules:
            return f"`import {self.modules[0]}` fails"
        return "what needs it fails"
