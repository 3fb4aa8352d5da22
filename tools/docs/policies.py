"""docs/policies.md, from what the rules say about themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from policies.checks.size.fabric import SINGLE_NODE_TAG
from policies.config import ALL
from policies.resource_types import machines, reasons
from policies.templates.forms import FORMS

if TYPE_CHECKING:
    from policies import checks


def resource_types() -> str:
    """Which types are judged, and why what else is named like a size or a template is left."""
    judged = sorted({":".join(kind) for kind in machines.MACHINES} | set(FORMS))
    left = {
        **reasons.SIZES,
        **{pattern: why for pattern, why in reasons.TEMPLATES.items() if pattern not in reasons.SIZES},
    }
    rows = "".join(f"| {', '.join(f'`{one}`' for one in sorted(each))} | {why} |\n" for why, each in _by_reason(left))
    names = ", ".join(f"`{kind}`" for kind in judged)
    return f"Judged beside clusters and jobs: {names}.\n\n| left | why |\n| --- | --- |\n{rows}".rstrip()


def _by_reason(left: dict[str, str]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for pattern, why in left.items():
        found.setdefault(why, []).append(pattern)
    return sorted(found.items())


_HEAD = f"""\
# Policies

<!-- Made by `make docs` from policies/checks; edit it there. -->

Every rule is one pure function in `policies/checks`. A finding carries the code of its rule in brackets; the codes are
the headings below. Three gates hold the rules:

1. **At the declaration**: `amlstack check`, and every stack's program before it registers anything. What the settings
   and job files will become is judged as the pack judges it: mandatory is an error, advisory a warning.
2. **In the engine**: the policy pack judges every resource that the engine is about to create, in any program.
3. **In Azure**: Azure Policy judges every request, of the portal and other tools too, by the rules that it can express.

## Running the pack

- Official Pulumi CLI: `pulumi up --policy-pack policies`.
- An engine whose Python host cannot start a directory pack (the one that `make up` builds when no official one is to be
  had): `pulumi up --policy-pack "$PWD/policies/analyzer"`, an absolute path to the same pack as an executable.

A preview shows all violations; an update stops at the first mandatory one. The verdict names the pack's version.
A plain `pulumi up` asks the pack in its preview and again in its update, and shows its advice in both; `amlstack up`
shows that of the last once.

## Configuration

Each rule is a policy of its own in Pulumi's words: `pulumi preview --policy-pack … --policy-pack-config FILE` (or
Pulumi Cloud) sets its level, `mandatory`, `advisory`, `disabled` or, where the table says so, `remediate`, and its
settings. A mandatory rule whose settings have no default is silent until a team gives them.

```json
{{
  "node-ceiling": {{"nodes": 16}},
  "tags-required": {{"enforcementLevel": "remediate", "required": ["team"], "values": {{"team": "vision"}}}},
  "managed-identity": "mandatory",
  "exception-expired": {{"exceptions": [{{"rule": "node-ceiling", "resource": "benchmark-*", "owner": "hpc",
    "reason": "Acceptance of the new racks.", "expires": "2026-12-31"}}]}}
}}
```

The declaration gate takes the same file: `amlstack:policies: FILE` in the stack's settings (a path in the project;
`amlstack up` hands it to the pack, too), or `amlstack check --policy-config FILE`. Without one the configuration built
into the pack counts. An exception's pattern over names meets a job's name and its cluster's; URNs are known where the
stack is.

The first two gates judge the same rendered bodies by the same function. Three things the declaration gate knows
otherwise: of networks only those of the setting `networks`, as settings declare none; the size that
`amlstack check --size` gives for a cluster that is declared elsewhere; and for `stack-budget` the jobs of the files
that `amlstack check` was given. An unknown size of a one-node job written as an Azure ML YAML is a warning there, as
Azure ML takes it and one node needs no fabric; the pack holds to the level.

## Pinning the pack

`make pack` builds `dist/amlstack-policies-VERSION.tar.gz` and its checksum: the rules, the catalogue and a requirements
file with hashes, no more. `make pack CONFIG=FILE` builds a configuration in, which then holds unless a workload's own
configuration changes it; a platform team that wants the last word publishes the archive (`pulumi policy publish`) and
enforces it from there. A workload repository pins version and checksum:

```sh
sha256sum --check amlstack-policies-VERSION.tar.gz.sha256 && tar xzf amlstack-policies-VERSION.tar.gz
cd amlstack-policies-VERSION
python -m venv .venv && .venv/bin/pip install --require-hashes -r requirements.txt
pulumi preview --policy-pack "$PWD"            # an engine built from Go modules: "$PWD/analyzer"
```

Every verdict names the version, and a pack that is older than the retirements it knows says so
([catalogue-old](#catalogue-old)).

## At Azure's own gate

`amlstack policy export --out FOLDER --scope SCOPE` writes Azure Policy definitions and an initiative for the rules
that Azure Policy can express, and lists the others with the reason. A test holds both to the same verdicts.

A stack deploys and assigns the same definitions with the setting `amlstack:azurePolicy`
([settings.md](settings.md#azurepolicy)):

```yaml
amlstack:azurePolicy:
  effect: deny            # mandatory rules refuse, advisory ones report; audit, the default, only reports
  scope: resourceGroup    # the stack's own group; or the whole subscription
  exclude: [ssh-closed]   # rules that are left out
```

Definitions and initiative lie in the subscription under names of the stack's own, the assignment at the scope. A change
of the effect, or of what is excluded, updates the assignment. What Azure refuses then reads
`RequestDisallowedByPolicy`, with the rule's title and code as its reason. On the sandbox the assignment refuses at
once; Azure takes up to half an hour to see a new one.

## What is judged

- Clusters: AmlCompute of azure-native (current, versioned and local-package type tokens), of the classic Azure
  provider, as azure-native's generic `Resource`, and in ARM templates. The number of nodes is the maximum of the scale
  settings. The tag `{SINGLE_NODE_TAG}` with the value `"true"` says that no job on the cluster spans nodes.
- Jobs: `amlstack:jobs:Job`, `amlstack:schedules:Schedule`, azure-native's `Job` and `Schedule` and its generic
  `Resource`; command jobs, in a sweep the trial, in a pipeline each step, in a schedule what it starts. A job on a
  cluster that the same stack declares is judged by that cluster's size and by its promise of single-node jobs (with the
  whole stack, where the program registers the cluster after the job); on any other cluster by what the job says itself.
  A step is judged by the component that it names where the stack registers it (`amlstack:components:Version`,
  azure-native's `ComponentVersion`); of a component registered elsewhere the command cannot be seen here, and only what
  the step says itself is judged.
- Other machines: compute instances, AKS and virtual machines as computes of Azure ML, online deployments, virtual
  machines, node pools and whatever else of azure-native names a VM size: by [size-retired](#size-retired) and
  [size-retiring](#size-retiring) alone, as no job of Azure ML spans their nodes.
- ARM templates: of deployments and deployment stacks at every scope, template specifications, blueprints' artifacts,
  managed applications and the classic provider's deployments; nested and child resources included. Expressions are
  worked out from the parameters and defaults, variables, loops and functions beside them, and what is deployed is
  judged as if it stood in the program. What cannot be worked out is refused by
  [template-unresolved](#template-unresolved).
- Serverless jobs: `resources.instanceType` of the same; in a sweep the trial's, in a pipeline each step's. A job that
  names a compute is judged by that compute.

Of the resource types of azure-native that can name a VM size or hold a template, a test over the installed SDK holds
each judged or listed here:

{resource_types()}

The day of the judgement is today in UTC, or the day in `AMLSTACK_TODAY` (an ISO date).

## Rules

| code | what must hold | by default |
| --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    table = "".join(f"| [{rule.code}](#{rule.code}) | {rule.title} | {_default(rule)} |\n" for rule in ALL)
    return _HEAD + table + "".join(_section(rule) for rule in ALL)


def _default(rule: checks.Rule) -> str:
    unset = rule.settings and all(setting.default is None for setting in rule.settings) and rule.level == "mandatory"
    return f"{rule.level}{', once configured' if unset else ''}{', remediable' if rule.fix else ''}"


def _section(rule: checks.Rule) -> str:
    parts = [
        f"\n### {rule.code}\n",
        rule.title,
        f"\n**What it does.** {rule.what}",
        f"\n**Why.** {rule.why}",
        f"\n**Example.**\n\n```yaml\n{rule.example}```",
        f"\n**Instead.**\n\n```yaml\n{rule.instead}```",
    ]
    if rule.sample:
        parts.append(f"\nBoth with this configuration: `{json.dumps({rule.code: dict(rule.sample)})}`.")
    if rule.fix:
        parts.append(f"\n**Remediation.** {rule.fix}")
    options = [rule.options] if rule.options else []
    options += (f"- `{one.name}` ({one.kind}): {one.help} {_value(one)}" for one in rule.settings)
    if options:
        parts.append("\n**Options.** " + ("" if rule.options else "\n\n") + "\n".join(options))
    return "\n".join(parts) + "\n"


def _value(setting: checks.Setting) -> str:
    return "Unset by default." if setting.default is None else f"Default: {setting.default}."
