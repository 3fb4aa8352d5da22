"""What every plan has in common, whatever kind of declaration it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import errors

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.base.findings import Finding
    from jobs.model.sweep import SweepLimits
    from jobs.planning.command import Plan


class Resolved:
    """Base of all plans.

    Attributes:
        findings: What is wrong, placed in the file.
        base: Folder that relative paths start from.
    """

    findings: tuple[Finding, ...]
    base: Path

    @property
    def ok(self) -> bool:
        """Whether nothing refuses it; warnings do not."""
        return not errors(self.findings)

    @property
    def parts(self) -> Mapping[str, Plan]:
        """The plans of its command jobs, by their place: `jobs.STEP`, `trial`; empty for a single job."""
        raise NotImplementedError

    def placed(self, place: str, finding: Finding) -> Finding:
        """A finding on a field of the part at a place as one of the whole."""
        return finding.under(place) if place else finding

    def trials(self, place: str) -> SweepLimits | None:
        """How often the part at a place is tried; None for a part that runs once."""
        del place
        return None
