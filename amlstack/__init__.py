"""The libraries below jobs, infra and policies: facts, the provider, the sandbox and the command line."""

from __future__ import annotations

__version__ = "0.1.0"
"""The only place of the version: everything else derives it, or tests/test_version.py holds it."""
