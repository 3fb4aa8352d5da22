"""docs/settings.md, from the models: their descriptions are the one place that explains a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from infra.settings.model import (
    ApplicationInsights,
    AzurePolicy,
    Cluster,
    ClusterIdentity,
    ContainerRegistry,
    CuratedEnvironment,
    CustomEnvironment,
    Diagnostics,
    Encryption,
    Include,
    JobFile,
    KeyVault,
    LogAnalytics,
    NetworkSettings,
    Nodes,
    OutboundRule,
    PublicNetwork,
    ServerlessCompute,
    Settings,
    Ssh,
    StorageAccount,
    VirtualNetwork,
    Workspace,
    WorkspaceIdentity,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

HEAD = """\
# Stack settings

Everything under `amlstack:` in `Pulumi.<stack>.yaml`. Unknown keys are refused, with near misses by name; all
errors are reported at once, each with its line. Paths start at the project's root, the folder of `Pulumi.yaml`.

This page is made from `infra/settings/model/` by `make docs`.
"""

SECTIONS: tuple[tuple[str, str, type[BaseModel]], ...] = (
    ("`amlstack:`", "", Settings),
    ("`workspace`", "A bare string is the name.", Workspace),
    (
        "`workspace.public_network`",
        "true and false stand for `enabled`, a list for `allow`: docs/secure-workspace.md.",
        PublicNetwork,
    ),
    (
        "`workspace.identity`",
        "A bare string is the type. docs/identities.md says which roles come with it.",
        WorkspaceIdentity,
    ),
    ("`workspace.storage`", "", StorageAccount),
    ("`workspace.key_vault`", "", KeyVault),
    ("`workspace.registry`", "", ContainerRegistry),
    ("`workspace.insights`", "", ApplicationInsights),
    ("`workspace.logs`", "", LogAnalytics),
    ("`workspace.network`", "docs/networks.md says what is made of it.", NetworkSettings),
    ("`workspace.network.rules[]`", "", OutboundRule),
    ("`workspace.network.vnet`", "", VirtualNetwork),
    ("`workspace.encryption`", "A bare string is the key.", Encryption),
    ("`workspace.diagnostics`", "true and false stand for `enabled`, a list for `categories`.", Diagnostics),
    ("`workspace.serverless_compute`", "", ServerlessCompute),
    ("`clusters[]`", "", Cluster),
    ("`clusters[].nodes`", "", Nodes),
    (
        "`clusters[].identity`",
        "A bare string is the type. docs/identities.md says which roles come with it.",
        ClusterIdentity,
    ),
    ("`clusters[].ssh`", "", Ssh),
    ("`environments[]`, curated", "A bare string is the name.", CuratedEnvironment),
    ("`environments[]`, your own", "Registered under a version that is the hash of its content.", CustomEnvironment),
    ("`azurePolicy`", "docs/policies.md says what is assigned.", AzurePolicy),
    ("`jobs[]`", "A bare string is the file. All else overrides the job file.", JobFile),
    (
        "`include`",
        "Stands in `clusters`, `environments` or `jobs` for the entries of files, written as in the stack file.",
        Include,
    ),
)

TAIL = """\
```yaml
amlstack:clusters:
  - {name: login, size: Standard_D4s_v3, nodes: {max: 1}}
  - include: clusters/*.yml
```

with a file `clusters/west.yml`:

```yaml
- name: a100-west
  size: Standard_ND96asr_v4
  nodes: {max: 16}
```

The program reads included files, and so does every verb that reads settings. They lie in the project's folder; a link
out of it is refused. Paths in them start at the project's root too. A file is included once, and includes no other. A
secret stays in the stack file, as the engine decrypts nothing else. Findings name the line of the included file.

A large stack needs this: the engine hands the settings to the program and to the policy pack in one string of the
environment, which Linux ends at 128 KiB. That is about 450 clusters with a subnet each, or 3,500 entries of `jobs`;
what included files hold does not count. `amlstack up` and `amlstack check --stack` report a stack file that is too
large; the engine by itself ends with `argument list too long`.

## Clusters with something in common

```yaml
amlstack:cluster_defaults:
  size: Standard_ND96isr_H100_v5
  nodes: {idle: PT20M}
  tags: {team: vision}
amlstack:clusters:
  - {name: west, nodes: {max: 4}
  - {name: north, location: northeurope, nodes: {max: 8}, tags: {use: long runs}
```

Each cluster is completed by the defaults and then judged as if it had been written so. A finding points at the line
where the value stands: in the entry, or among the defaults.

## What an edit does

[edits.md](edits.md) has a row for each setting of a cluster and each property of the workspace.

## Beside `amlstack:`

| key | meaning |
| --- | --- |
| `azure-native:subscriptionId` | Subscription; else `ARM_SUBSCRIPTION_ID` or `AZURE_SUBSCRIPTION_ID`. |
| `azure-native:tenantId` | Tenant; else `ARM_TENANT_ID` or `AZURE_TENANT_ID`. |

Names of storage account, key vault and registry end in a hash of subscription, resource group, workspace and
`workspace.name_salt`, so that every id is known at preview.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(_section(*section) for section in SECTIONS), TAIL])


def _section(title: str, note: str, model: type[BaseModel]) -> str:
    rows = "\n".join(_rows(model))
    lead = f"{note}\n\n" if note else ""
    return f"## {title}\n\n{lead}| key | value | default | meaning |\n| --- | --- | --- | --- |\n{rows}\n"


def _rows(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield f"| `{field.alias or name}` | {_kind(field.annotation)} | {_default(field)} | {field.description} |"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value in ((), {}, ""):
        return "none"
    if isinstance(value, ClusterIdentity):
        return f"`{value.kind}`"
    if isinstance(value, BaseModel):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


_WORDS: dict[Any, str] = {str: "text", int: "number", bool: "true, false", dict: "names to texts", tuple: "list"}


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return ", ".join(f"`{word}`" for word in inner)
    if hasattr(annotation, "__metadata__"):
        return _kind(inner[0])
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        return ", ".join(dict.fromkeys(_kind(part) for part in inner if part is not type(None)))
    return _WORDS.get(origin or annotation, "object")
