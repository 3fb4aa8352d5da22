"""What every rule says about itself; the pages of docs/policies.md are rendered from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """The metadata of one rule, kept in the module of its check.

    Attributes:
        code: Kebab-case name; every finding of the rule carries it, and it is the heading in docs/policies.md.
        title: The rule as one sentence of what must hold.
        what: What the rule does, in full.
        why: What goes wrong without it.
        example: A declaration that it refuses.
        instead: The same declaration, put right.
        options: How to configure it; empty when there is nothing to configure.
    """

    code: str
    title: str
    what: str
    why: str
    example: str
    instead: str
    options: str = ""
