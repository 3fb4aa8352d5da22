"""A process's place in its job as each kind of launcher gives it."""

from __future__ import annotations
