"""Renders docs/policies.md from what the rules say about themselves.

``python -m policies.document`` writes it; a test holds that it is current.
"""

from __future__ import annotations

from amlstack.paths import PROJECT
from policies import checks
from policies.verdicts import CHECKED_AT_UP
from policies.views import SINGLE_NODE_JOBS_TAG

PAGE = PROJECT / "docs" / "policies.md"

_HEAD = f"""\
# Policies

<!-- Rendered by `python -m policies.document` from policies/checks; edit it there. -->

Every rule is one pure function in `policies/checks`. The stack settings and the job plan call it before anything
exists, and the policy pack calls it for every resource that the engine is about to create. A finding carries the code
of its rule in brackets; the codes are the headings below.

## Running the pack

- Official Pulumi CLI: `pulumi up --policy-pack policies`.
- An engine whose Python host cannot start a directory pack (the one that `make up` builds when no official one is to be
  had): `pulumi up --policy-pack "$PWD/policies/analyzer"`, an absolute path to the same pack as an executable.

All rules are mandatory but `{CHECKED_AT_UP.code}`, which only advises. A preview shows all violations; an update stops
at the first.

## What is judged

- Clusters: AmlCompute of azure-native (current, versioned and local-package type tokens), of the classic Azure
  provider, and as azure-native's generic `Resource`. The number of nodes is the maximum of the scale settings. The tag
  `{SINGLE_NODE_JOBS_TAG}` with the value `"true"` says that no job on the cluster spans nodes.
- Serverless jobs: `resources.instanceType` of `amlstack:jobs:Job`, of azure-native's `Job` and `Schedule` and of its
  generic `Resource`; in a sweep the trial's, in a pipeline each step's. A job that names a compute is judged by that
  compute.

The day of the judgement is today in UTC, or the day in `AMLSTACK_TODAY` (an ISO date).

## Rules

| code | what must hold |
| --- | --- |
"""


def render() -> str:
    """The whole page."""
    rules = (*checks.RULES, CHECKED_AT_UP)
    table = "".join(f"| [{rule.code}](#{rule.code}) | {rule.title} |\n" for rule in rules)
    return _HEAD + table + "".join(_section(rule) for rule in rules)


def _section(rule: checks.Rule) -> str:
    parts = [
        f"\n### {rule.code}\n",
        rule.title,
        f"\n**What it does.** {rule.what}",
        f"\n**Why.** {rule.why}",
        f"\n**Example.**\n\n```yaml\n{rule.example}```",
        f"\n**Instead.**\n\n```yaml\n{rule.instead}```",
    ]
    if rule.options:
        parts.append(f"\n**Options.** {rule.options}")
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
