"""Processes below this one: started, ended together, never left behind."""

from __future__ import annotations
