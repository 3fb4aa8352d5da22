"""A rehearsal smaller than its declaration: how much of a job this machine starts, and the counts in its commands."""

from amlstack.sandbox.scale.scale import QUERY, RehearsalScale

__all__ = ["QUERY", "RehearsalScale"]
