"""What the sandbox answers beside its resource types: tokens, data planes, lists; each with how it is known.

A row whose `asked` no recorded request of Microsoft's clients matches needs the page that documents it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table in docs/sandbox.md.

    Attributes:
        name: How the records of clients call it.
        paths: Its addresses, as Markdown.
        what: What is answered and what is not, as Markdown.
        asked: Pattern of ``METHOD /path`` that belongs to it, whole.
        documented: Address of the page that documents it, for one that no client of the tests asks for.
    """

    name: str
    paths: str
    what: str
    asked: str
    documented: str = ""


ROWS: Final = (
    Row(
        name="token",
        paths="`POST /{tenant}/oauth2/v2.0/token`",
        what=(
            "Entra ID: the text of the token file is the client assertion (workload identity, `az login "
            "--federated-token`) or the client secret"
        ),
        asked=r"POST /[^/]+/oauth2/v2\.0/token",
    ),
    Row(
        name="metadata",
        paths="`/metadata/endpoints`, `/{tenant}/v2.0/.well-known/openid-configuration`",
        what="where a client of this cloud finds everything; asked without a token",
        asked=r"GET /(metadata/endpoints|[^/]+/v2\.0/\.well-known/openid-configuration)",
    ),
    Row(
        name="deployments",
        paths="`{group}/providers/Microsoft.Resources/deployments/{name}`",
        what=(
            "a template deployed at once, incrementally: its resources one after another as requests of their "
            "own; the functions of expressions that the template of azure-ai-ml's `workspaces.begin_create` uses,"
            " and more; no nested deployments, no links"
        ),
        asked=r"\w+ .*/providers/Microsoft\.Resources/deployments/.*",
    ),
    Row(
        name="run data",
        paths="`/history/v1.0{workspace}/rundata`, `/data/v1.0{workspace}/dataversion/batchGetResolvedUris`",
        what=(
            "what azure-ai-ml downloads of a job: its named outputs, and from the datastore "
            "`workspaceartifactstore` its logs and `outputs/`, which are blobs there once it has ended"
        ),
        asked=r"\w+ /(history/v1\.0/.*/rundata|data/v1\.0/.*/batchGetResolvedUris)",
    ),
    Row(
        name="registry",
        paths=(
            "`/registrymanagement/v1.0/registries/azureml/discovery`, `/mferp/managementfrontend/…/registries/azureml`"
        ),
        what="the registry of curated environments, by the names of the catalogue; any whole number is a version",
        asked=r"\w+ /(registrymanagement/v1\.0|mferp/managementfrontend/.*)/registries/azureml(/.*)?",
    ),
    Row(
        name="subscriptions",
        paths=(
            "`/subscriptions`, `/tenants`, `{subscription}/resources`, `{subscription}/providers`, "
            "`…/checkNameAvailability`"
        ),
        what=(
            "what az and others ask before and between; lists of workspaces and other tracked types of the whole "
            "subscription"
        ),
        asked=r"\w+ (/subscriptions|/tenants|/subscriptions/[^/]+/(resources|providers)|.*/checkNameAvailability)",
        documented="https://learn.microsoft.com/rest/api/resources/subscriptions/list",
    ),
    Row(
        name="blobs",
        paths="`/blob/{account}/{container}/{blob}`",
        what=(
            "block blobs by SAS or bearer: put, put from the URL of another blob, copy, block, block lists, "
            "metadata, headers, tags, tier, lease, get with ranges, head, delete, list by pages, with conditions "
            "(etags and times); containers made, listed, labelled, deleted. No snapshots, append and page blobs, "
            "batches"
        ),
        asked=r"\w+ /blob/[^/.]+/.*",
    ),
    Row(
        name="directories",
        paths="`/blob/{account}.dfs.{suffix}/{file system}/{path}`",
        what=(
            "the same as files and directories (Data Lake Storage Gen2): make, append, flush, get, head, list by "
            "pages, rename, delete; whether the account has a hierarchical namespace is not looked at, and there "
            "are no access control lists"
        ),
        asked=r"\w+ /blob/[^/]+\.dfs\..*",
    ),
    Row(
        name="runs",
        paths="`/history/v1.0{workspace}/…/runs/{job}`",
        what=(
            "GET the run, its `details` and its `children`; PATCH merges tags and properties, sets displayName, "
            "description, hidden; PATCH of its `tags` sets and removes tags"
        ),
        asked=r"\w+ /history/v1\.0/.*/runs/[^/]+(/details|/children)?",
    ),
    Row(
        name="mlflow",
        paths="`/mlflow/v1.0{workspace}/api/2.0/mlflow/…`",
        what=(
            "MLflow's tracking service (API 2.0); every job's `MLFLOW_TRACKING_URI` leads here. Jobs are runs; "
            "runs made within one (`start_run(nested=True)`) and outside of any, metrics, parameters, tags, "
            "search, experiments; registered models, which are the workspace's models. Files "
            "(`mlflow.log_artifact`, `log_text`, `log_dict`) lie in the job's `artifacts/`, a nested run's in "
            "`runs/<run>/artifacts/`, and so do models that `log_model` logs, with MLflow 3's clients also as "
            "`logged-models`. A run keeps which data it read (`log_input`). No aliases, traces"
        ),
        asked=r"\w+ /mlflow/v\d\.0/.*/api/2\.0/(preview/)?mlflow/.*",
    ),
    Row(
        name="operations",
        paths=(
            "`GET /providers/{namespace}/operations`; a workspace's `privateEndpointConnections`, "
            "`privateLinkResources`"
        ),
        what="what can be done with the types above; the private endpoints that lead to it",
        asked=r"GET (/providers/[^/]+/operations|.*/workspaces/[^/]+/private(EndpointConnections|LinkResources))",
    ),
    Row(
        name="empty lists",
        paths="a workspace's `features`, `connections`; a group's `registries`",
        what="empty lists, as nothing makes an entry here",
        asked=r"GET .*/(workspaces/[^/]+/(features|connections)|Microsoft\.MachineLearningServices/registries)",
    ),
    Row(
        name="discovery",
        paths="`/discovery`",
        what="where the data plane is: the same endpoint; asked without a token",
        asked=r"GET /discovery",
    ),
    Row(
        name="quota",
        paths="`GET …/Microsoft.MachineLearningServices/locations/{region}/usages`, `…/vmSizes`, `…/quotas`",
        what=(
            "quota and offered sizes; beyond any stack unless `amlstack sandbox quota` lowers them "
            "([quota.md](quota.md))"
        ),
        asked=r"GET .*/locations/[^/]+/(usages|vmSizes|quotas)",
    ),
)


def names(requests: Iterable[tuple[str, str]]) -> set[str]:
    """The rows that requests, each a method and a path, belong to."""
    asked = [f"{method} {path}" for method, path in requests]
    return {row.name for row in ROWS if any(re.fullmatch(row.asked, one) for one in asked)}
