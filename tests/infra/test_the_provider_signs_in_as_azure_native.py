"""azure-native's settings of a stack reach our provider too, as a provider of the stack's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import MakeStack, Sandbox

pytestmark = pytest.mark.engine

OWN = {"name": "mine", "image": "ubuntu:24.04"}
JOB = "command: echo 1\nenvironment: azureml:mine\ncompute: azureml:a100\n"


def test_settings_of_azure_native_sign_our_provider_in_replace_nothing_and_stay_secret(
    stack: MakeStack, sandbox: Sandbox, tmp_path: Path
) -> None:
    job = tmp_path / "small.yml"
    job.write_text(JOB)
    one = stack(PROJECT, sandbox=sandbox).set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-sign-in")
    one.set("amlstack:clusters", [{"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 1}}])
    one.set("amlstack:environments", [OWN]).set("amlstack:jobs", [str(job)]).set("amlstack:protect", "false")
    one.up().ok()
    before = {name: each.get("id") for name, each in one.resources().items() if each["type"].startswith("amlstack:")}

    # From here on the default chain cannot sign in, and only the stack's settings can.
    one.env["AZURE_TOKEN_CREDENTIALS"] = "AzureCliCredential"
    token = sandbox.endpoint.token.read_text()
    one.set("azure-native:tenantId", sandbox.endpoint.tenant, path=False)
    one.set("azure-native:clientId", sandbox.endpoint.client, path=False)
    one.set("azure-native:useOidc", "true", path=False)
    one.pulumi("config", "set", "--secret", "azure-native:oidcToken", token).ok()
    job.with_name("second.yml").write_text(JOB)
    one.set("amlstack:jobs", [str(job), str(job.with_name("second.yml"))])
    changed = one.up(preview=True).ok()

    ended = {step.type for step in changed.done if "replace" in step.op or "delete" in step.op}
    assert ended <= {"pulumi:providers:amlstack"}, "the engine's own provider goes, and no resource with it"
    after = {name: each.get("id") for name, each in one.resources().items()}
    assert {name: after[name] for name in before} == before
    assert "second" in after
    providers = [each for each in one.state()["resources"] if each["type"] == "pulumi:providers:amlstack"]
    (ours,) = [each for each in providers if each["urn"].endswith("::amlstack")]
    assert ours["inputs"]["tenantId"] == sandbox.endpoint.tenant
    assert token not in json.dumps(one.state())
    assert one.up().ok().changes == {}
    # This does not run the program: the state knows how to sign in.
    one.destroy("--refresh").ok()
