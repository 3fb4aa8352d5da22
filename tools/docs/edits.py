"""docs/edits.md: what an edit of a cluster or of the workspace does, from the tables by which they are registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infra.components.workspace import edits as workspace_edits
from infra.compute import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """\
# What an edit does

`amlstack up` and `pulumi preview` show it before it happens; these tables are the data by which clusters and workspaces
are registered (`infra/compute/cluster.py`, `infra/components/workspace/edits.py`), and a test previews an edit of each
row with the real engine. This page is made from them by `make docs`.

- **updated in place**: Azure changes it on what exists.
- **replaced**: Azure cannot change it. The old one is deleted, then the new one is made: the name is taken until then.
- **refused**: a finding says why and nothing is planned, or Azure refuses the update.

## A cluster

Azure's request for updates of a cluster takes the scale and nothing else (`ClusterUpdateParameters` of the API version
2025-12-01). For other properties a request answers success and changes nothing, and azure-native plans exactly that; so
that a plan shows what happens, they are registered as replacements here.

| key of `clusters[]` | property | an edit | note |
| --- | --- | --- | --- |
"""

IDENTITY = """\

`identity` is where sources disagree. The REST API documents no update of it; terraform-provider-azurerm found in 2024
(pull request 26404) that the service takes one. If it does not, a planned update would leave the cluster with its old
identity without a word. So a replacement is planned, until somebody who has measured it writes
`identity_change: in_place`, for one cluster or in `cluster_defaults`.

A cluster that goes takes its runs along. So a replacement or removal is refused while a run of the stack is active or
queued on it, with the run's name, at preview and without one, and the same for `--replace`, `--target`, a replaced
storage account, workspace or resource group, and for a replaced identity of the clusters, private endpoint or network.
`on_edit: keep` cannot hold there, since the cluster is the run's. Under `on_edit: cancel` the run is ended first, and
this is announced. For a replacement that word has to be recorded by an earlier `up`. A run that the stack did not
start is seen by the nodes at work for it and stands against it too; one that still waits for nodes is not seen.

"""

WORKSPACE = """\
## The workspace

What Azure's request for updates takes (`WorkspaceUpdateParameters` of the API version 2025-12-01) is updated in place.
A workspace that would be replaced loses its jobs, models and environments. So wherever `protect` holds, which is every
stack but `sandbox`, a replacement is **refused** at preview: the engine names the protected workspace.

| property | settings | an edit | note |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    return "".join(
        (
            HEAD,
            *_clusters(),
            "| `name`, or the entry removed | `computeName` | another cluster, or none; the old one is deleted | |\n",
            IDENTITY,
            WORKSPACE,
            *_workspaces(),
            _rest(),
        )
    )


def _clusters() -> Iterator[str]:
    careful = set(cluster.replaced_by())
    for row in cluster.SETTINGS:
        yield _row(f"`{'.'.join(row.path)}`", f"`{row.wire}`", _operation(replaces=row.wire in careful), row.note)


def _workspaces() -> Iterator[str]:
    for row in workspace_edits.PROPERTIES:
        settings = ", ".join(f"`{name}`" for name in row.settings)
        # The group of a stack is kept by its state: other settings are a finding before the engine compares anything.
        refused = row.refused or row.settings == ("resource_group",)
        operation = "refused" if refused else _operation(replaces=row.replaces)
        yield _row(f"`{row.wire}`", settings, operation, row.note)


def _rest() -> str:
    unknown = ", ".join(f"`{name}`" for name in workspace_edits.UNKNOWN)
    return f"\nUnknown: {unknown}. Azure takes them when a workspace is made and documents no update; one is planned.\n"


def _operation(*, replaces: bool) -> str:
    return "replaced" if replaces else "updated in place"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"
