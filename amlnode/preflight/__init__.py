"""Judges the nodes before the expensive part of a job: hardware as planned, settings, clocks."""

from __future__ import annotations
