"""Which facts of which subject each rule judges: the one place where wire forms and check functions meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.evaluation.bindings import cluster, cost, job, resource, size

if TYPE_CHECKING:
    from policies.evaluation.binding import Binding

BINDINGS: tuple[Binding, ...] = (
    *size.BINDINGS,
    *cluster.BINDINGS,
    *cost.BINDINGS,
    *resource.BINDINGS,
    *job.BINDINGS,
)
"""Every rule on single resources. `policies.evaluation.verdicts` judges sizes by three rules together; of those, only
what a cluster promised of the jobs on it is here."""
