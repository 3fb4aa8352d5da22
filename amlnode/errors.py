"""Errors that a person can mend: what was seen, the rule, the remedy."""

from __future__ import annotations


class NodeError(Exception):
    """Something that a person can mend; its text is the whole message, a traceback adds nothing."""

    def __init__(self, seen: str, rule: str, remedy: str) -> None:
        super().__init__(f"{seen.rstrip('.')}. {rule.rstrip('.')}. {remedy}")
        self.seen, self.rule, self.remedy = seen, rule, remedy
