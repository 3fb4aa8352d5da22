"""Groups of resources in state and preview: one parent for the resources of one kind.

A component around every single resource would double the registrations of a stack.
"""

from __future__ import annotations

from functools import cached_property

import pulumi

from infra.components import tokens


class _Parent(pulumi.ComponentResource):
    def __init__(self, kind: str) -> None:
        super().__init__(kind, kind.rsplit(":", 1)[-1].lower())
        self.register_outputs({})


class StackTree:
    """The parents of a stack; one without children is not registered."""

    @cached_property
    def clusters(self) -> pulumi.Resource:
        """Of the clusters, and of the roles of clusters with an identity of their own."""
        return _Parent(tokens.CLUSTERS)

    @cached_property
    def jobs(self) -> pulumi.Resource:
        """Of jobs, sweeps and pipelines, and of the component versions that they name."""
        return _Parent(tokens.JOBS)

    @cached_property
    def schedules(self) -> pulumi.Resource:
        """Of schedules, and of the component versions that they name."""
        return _Parent(tokens.SCHEDULES)

    @cached_property
    def data(self) -> pulumi.Resource:
        """Of datastores with the roles on their accounts, and of data assets."""
        return _Parent(tokens.DATA)

    @cached_property
    def access(self) -> pulumi.Resource:
        """Of the roles of people, groups and applications on the workspace."""
        return _Parent(tokens.ACCESS)
