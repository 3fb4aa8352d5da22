"""Whoever writes what a finding advises, at the place it is about, gets no next finding of the rule and no error."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.findings import Finding, Level
from infra.declaration import declare
from infra.settings import parse
from policies import checks
from tests.support.policies.pack_subjects import pack, seen
from tests.support.policies.showing import TODAY, request, shown
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME"
IDENTITY = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/g/providers/"
    "Microsoft.ManagedIdentity/userAssignedIdentities/i"
)
CLUSTER: dict[str, Any] = {"name": "train", "size": "Standard_ND96isr_H100_v5", "nodes": {"min": 0, "max": 2}}
ADVISED: list[tuple[str, dict[str, Any], str, list[dict[str, Any]]]] = [
    # (rule, what the cluster says, the remedy, what its reader may write)
    ("managed-identity", {"identity": "none"},
     "Write identity: stack, identity: system, or identity: {user_assigned: [ID]}",
     [{"identity": "stack"}, {"identity": "system"},
      {"identity": {"user_assigned": [IDENTITY]}}]),
    ("subnet-present", {}, "Write the subnet's ARM id, subnet: /subscriptions/…/virtualNetworks/NET/subnets/NAME",
     [{"subnet": SUBNET}]),
    ("node-public-ip", {}, "Write node_public_ip: false; outside a managed network the nodes then need a subnet",
     [{"node_public_ip": False, "subnet": SUBNET}]),
    ("scale-to-zero", {"nodes": {"min": 1, "max": 2}}, "Write 0", [{"nodes": {"min": 0, "max": 2}}]),
    ("idle-time", {"nodes": {"max": 2, "idle": "P1D"}}, "Write PT60M or less",
     [{"nodes": {"max": 2, "idle": "PT60M"}}]),
]  # fmt: skip


def findings(root: Path, code: str, cluster: dict[str, Any], job: str = "") -> list[Finding]:
    """The declaration gate's findings on a stack with one rule enforced."""
    (root / "rules.json").write_text(json.dumps({code: "mandatory"}))
    values = {"location": "westeurope", "workspace": "w-team", "clusters": [{**CLUSTER, **cluster}],
              "policies": "rules.json", "jobs": [job] if job else []}  # fmt: skip
    return list(declare(parse(values), on=TODAY, root=root, place="team::amlstack").findings)


@for_each("code, cluster, remedy, written", ADVISED)
def test_a_cluster_s_remedy_is_one_that_the_settings_take(
    code: str, cluster: dict[str, Any], remedy: str, written: list[dict[str, Any]], tmp_path: Path
) -> None:
    (found,) = [one for one in findings(tmp_path, code, cluster) if one.code == code]

    assert found.remedy == remedy
    for answer in written:
        after = findings(tmp_path, code, {**cluster, **answer})
        assert [one for one in after if one.code == code or one.level is Level.ERROR] == []


JOBS = {
    "run.yml": ("Write limits: {timeout: SECONDS}", "limits: {timeout: 3600}\n",
                "command: python t.py\nenvironment: azureml:mine:3\ncompute: azureml:train\n"),
    "run.py": ("Write limits=jobs.Limits(timeout=SECONDS)", ", limits=jobs.Limits(timeout=3600))\n",
               "import jobs\njob = jobs.Job(command='python t.py', environment='azureml:mine:3', compute='train'"),
}  # fmt: skip


@pytest.mark.parametrize("name", JOBS)
def test_a_job_s_remedy_is_one_that_its_file_takes(name: str, tmp_path: Path) -> None:
    remedy, line, text = JOBS[name]
    (tmp_path / name).write_text(text + (")\n" if name.endswith(".py") else ""))
    (found,) = [one for one in findings(tmp_path, "job-timeout", {}, name) if one.code == "job-timeout"]
    assert found.remedy == remedy

    other = tmp_path / "after"
    other.mkdir()
    (other / name).write_text(text + line)
    after = findings(other, "job-timeout", {}, name)
    assert [one for one in after if one.code == "job-timeout" or one.level is Level.ERROR] == []


@for_each(
    "rule",
    [
        *(each for each in checks.RULES if each.words.example.startswith("# ") and not each.code.startswith("cost-")),
        checks.OURS["template-unresolved"],
    ],
)
def test_what_a_rule_shows_instead_breaks_no_other_rule(rule: checks.Rule) -> None:
    judge = pack({rule.code: {"enforcementLevel": "mandatory", **rule.words.sample}})
    token = re.match(r"# ([\w:-]+)", rule.words.instead)
    assert token is not None
    found = shown(judge.Analyze(request(token[1], yaml.safe_load(rule.words.instead)), None))

    assert [(level, code) for level, code, _ in found if level == "mandatory" or code == rule.code] == []
    before = seen(judge, token[1], yaml.safe_load(rule.words.example))
    assert {code for _, code, _ in found} <= {one.split()[1] for one in before} | {"checked-at-up"}
