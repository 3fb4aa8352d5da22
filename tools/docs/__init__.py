"""Pages of docs that are generated from the code: ``python -m tools.docs`` writes them, ``--check`` verifies them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.docs import edits, identities, launchers, networks, policies, sandbox, schema, settings

if TYPE_CHECKING:
    from collections.abc import Callable

PAGES: dict[str, Callable[[], str]] = {
    "edits.md": edits.page,
    "identities.md": identities.page,
    "launchers.md": launchers.page,
    "networks.md": networks.page,
    "policies.md": policies.page,
    "sandbox.md": sandbox.page,
    "schema/job.schema.json": schema.of_jobs,
    "schema/stack.schema.json": schema.of_stacks,
    "settings.md": settings.page,
}
"""File below docs → what renders its whole content."""
