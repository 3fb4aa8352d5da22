"""docs/sandbox.md, the table of what is emulated, from the code."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from amlstack.sandbox import kinds
from amlstack.sandbox.arm import allowances
from amlstack.sandbox.kinds import witnesses
from amlstack.sandbox.kinds.witnesses import beside, open_answers

if TYPE_CHECKING:
    from amlstack.sandbox.kinds.base import ResourceKind

HEAD = """\
# What the sandbox emulates

This page is generated from the code (`make docs`); a test holds it current.

The sandbox is one server on loopback, TLS and bearer tokens included, that answers Azure's REST interfaces for the
types below. What is not in the table is refused with `501 SandboxNotEmulated`; a plausible empty answer would hide a
mistake. Bodies are checked against the classes of the installed `pulumi-azure-native`: an unknown property, a missing
one, a wrong enum value or type is `400 InvalidRequestContent` with its path and near misses. Azure lets some of that
pass. Each type takes the api-versions that Azure has for it (`amlstack/sandbox/arm/api_versions.json` names the
sources); another one is a 400 that lists them. A body beyond 4 MB is `413 RequestContentTooLarge`, an upload beyond
5,000 MiB `413 RequestBodyTooLarge`. A request whose head takes longer than 60 s, or that brings less than 4,096 bytes
of its body in 60 s, is `408 RequestTimeout` and nothing of it is kept; the variable `AMLSTACK_SANDBOX_REQUEST_SECONDS`
changes the bound when the sandbox starts. A name with `..`, a backslash or a control character in it, written out or
percent-encoded, is `400 InvalidUri`, and so is an encoded slash outside the names of blobs.

## Resource types

The last column says how each operation is known. *client*: a test ran it with azure-ai-ml,
azure-mgmt-machinelearningservices, azure-storage-blob or azureml-mlflow, unmodified, and the requests of that run were
recorded (`clients.json` and `other_clients.json` in `amlstack/sandbox/kinds/witnesses`). *documented*: the published
REST interface; of a resource type its azure-native class, generated from the REST API specifications. *assumed*:
neither of both. A test fails for an operation without a witness, and for one that the page says a client ran and none
did.

| type | verbs | provisioning | notes | known by |
| --- | --- | --- | --- | --- |
"""

BESIDE = """\
| path | what | known by |
| --- | --- | --- |
"""

DATA_PLANES = """
## Beside the resource manager

BESIDE_TYPES

Microsoft's clients work on it as they are, led by the environment alone: `eval "$(amlstack sandbox env)"`, then
`MLClient(DefaultAzureCredential(), subscription, group, workspace)`. `--for az` signs az in, in a folder of its own;
`--for terraform` and `--for pulumi` are for azurerm and for the azure-native of the registry (neither has been run
here), `--for notebook` prints Python, `--for state` leads Azure's own host names of accounts, vaults and Entra ID
here, for clients that take no other address ([gitops-state.md](gitops-state.md#try-it-without-azure)). azure-ai-ml
makes the address of blobs of a datastore's account name; it alone is answered `127.0.0.1:PORT/blob/<account>` for an
account that lies here, so that its uploads and downloads stay here.

A token opens what it was issued for (its `aud`): the resource manager takes tokens for this sandbox's address or for
`https://management.azure.com`, the data plane those and tokens for `https://ml.azure.com`, blobs tokens for
`https://storage.azure.com` alone; any other is `401 InvalidAuthenticationTokenAudience` (blobs:
`InvalidAuthenticationInfo`), one of another tenant `401 InvalidAuthenticationTokenTenant`. The PUT of a new pipeline,
and of a new job with `identity: user_identity`, brings a
second token, for Azure Machine Learning itself, in the header `x-azureml-token`, as azure-ai-ml sends it; without it
the sandbox answers `400 UserError`.

Lists come in pages of 100 with `nextLink`. Jobs can be narrowed by `listViewType`, `jobType`, `tag` and `properties`,
versions of assets by `listViewType`, `version`, `description`, `stage`, `tags` and `properties`; `$orderBy` knows
`createdtime desc`, `$top` bounds the whole list. `If-Match` and `If-None-Match` bind a write of any resource but a job
to the `etag` that an answer showed; otherwise it is `412 PreconditionFailed`.

Long-running operations advance by polls of the operation or the resource, and once a second without polls. They
answer `retry-after-ms`, so that tests do not wait.

Jobs start as soon as their cluster has nodes for them. `amlstack sandbox up --hold-jobs` keeps those that have not
started in the queue, sweeps and pipelines included, until `amlstack sandbox release`: what a program submits can be
looked at and cancelled before anything runs. A job that has no nodes yet is `Canceled` as soon as it is cancelled.

## Answers that Azure's documentation leaves open

The sandbox had to choose; do not rely on Azure doing the same. The first ones a test can ask Azure for: with
`AMLSTACK_AZURE=1`, `AMLSTACK_AZURE_WORKSPACE=<ARM id>`, `AMLSTACK_AZURE_COMPUTE=<name>` and `az login`,
`pytest tests/sandbox/test_answers_that_azure_gives.py` asks a real workspace and records its answers with their date;
what is recorded leaves this list. Nobody has run it on Azure yet.

OPEN_ANSWERS
- A pipeline goes on after a failed step with what does not need it, unless its settings say otherwise, and then fails.
- A sweep with trials that failed is completed, as long as one trial completed; with none it fails, and makes no more
  trials once as many as run at once (three at least) have failed.
- A policy that ends trials early judges a trial whenever somebody logs, at its last interval that is due.
- Steps never reuse what an earlier run wrote, as if `force_rerun` were set.
- Rules that Azure ML makes itself in a managed network are shown as `__SYS_…`, once it is provisioned.
- A workspace goes from `AllowInternetOutbound` to `AllowOnlyApprovedOutbound`: one page of the documentation says that
  it can, another that it cannot. A PUT that names no `managedNetwork` leaves it as it is, and its rules with it.
- Which previews after 2024-04-01-preview know the properties of the last table is not known; but for
  2025-01-01-preview, to which azure-ai-ml sends them, they are refused.
- A second `provisionManagedNetwork` joins the first.
- Error codes of managed networks and of private endpoints' targets are the sandbox's own.
- A step or trial can be deleted only when its parent has ended.
- A compute, workspace or group that is deleted has its jobs cancelled first and goes when they have ended.

## Properties taken beyond azure-native's classes

An api-version that does not know one of them refuses it, and names those that do. azure-ai-ml sends command jobs by
2025-01-01-preview and all others by 2024-01-01-preview; this project's provider sends a job by 2025-12-01, unless its
body says what that one does not know.

| class | property | known from | api-versions |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page as Markdown."""
    rows = [
        f"| `{kind.type}` | {_verbs(kind)} | {_provisioning(kind)} | {kind.note} | {witnesses.words(kind)} |"
        for kind in kinds.ALL
    ]
    answers = "\n".join(
        textwrap.fill(text, 120, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)
        for text in open_answers.unanswered()
    )
    extra = [_extra(row.owner, row.name, row.source, row.versions) for row in allowances.PROPERTIES]
    extra += [_extra(row.beside, f"{row.tag}: {row.value}", row.source, row.versions) for row in allowances.VARIANTS]
    beside_types = "".join(f"| {row.paths} | {row.what} | {witnesses.way_beside(row)} |\n" for row in beside.ROWS)
    planes = DATA_PLANES.replace("BESIDE_TYPES\n", BESIDE + beside_types).replace("OPEN_ANSWERS", answers)
    return HEAD + "\n".join(rows) + "\n" + planes + "\n".join(extra) + "\n"


def _verbs(kind: ResourceKind) -> str:
    writes = [] if kind.read_only else ["PUT", *(["PATCH"] if kind.patches else []), "DELETE"]
    return ", ".join(["GET", *writes, *kind.actions])


def _provisioning(kind: ResourceKind) -> str:
    made = _polls(kind.ticks) if kind.ticks else "at once"
    return made if not kind.ticks_delete else f"{made}; deletion {_polls(kind.ticks_delete)}"


def _polls(number: int) -> str:
    return f"{number} poll{'' if number == 1 else 's'}"


def _extra(owner: str, name: str, source: str, versions: frozenset[str] | None) -> str:
    known = "all" if versions is None else ", ".join(sorted(versions))
    return f"| {_short(owner)} | `{name}` | {source} | {known} |"


def _short(name: str) -> str:
    return name.removesuffix("Args")
