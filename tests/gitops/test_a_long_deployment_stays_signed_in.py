"""The workflow files keep the token of a run fresh during a long `up`; the state reads it anew."""

from __future__ import annotations

import os
import re
import select
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

ANSWERS = {"github": "value", "azure-pipelines": "oidcToken"}
VARIABLES = {
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "request",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "https://token.example/?api-version=2.0",
    "SYSTEM_OIDCREQUESTURI": "https://token.example/",
    "AZURESUBSCRIPTION_SERVICE_CONNECTION_ID": "connection",
    "SYSTEM_ACCESSTOKEN": "build",
    "idToken": "token-0",
    "servicePrincipalId": "client",
    "tenantId": "tenant",
    "STACK": "prod",
    "AZURE_CLIENT_ID": "client",
}


def scripts(service: str) -> list[str]:
    """The scripts that sign in and deploy."""
    file: dict[str, Any] = yaml.safe_load((PROJECT / "deploy" / service / "amlstack-main.yml").read_text("utf-8"))
    if service == "github":
        return [
            step["run"] for step in file["jobs"]["up"]["steps"] if step.get("name", "").startswith(("Sign in", "Up"))
        ]
    (job,) = (job for job in file["jobs"] if job.get("deployment") == "up")
    steps = job["strategy"]["runOnce"]["deploy"]["steps"]
    return [step["inputs"]["inlineScript"] for step in steps if step.get("displayName") == "Up"]


@pytest.mark.parametrize("service", sorted(ANSWERS))
@pytest.mark.parametrize("status", [0, 3])
def test_the_token_is_renewed_while_up_works_and_no_longer(service: str, status: int, tmp_path: Path) -> None:
    tools, temp = tmp_path / "bin", tmp_path / "temp"
    tools.mkdir()
    temp.mkdir()
    asked = tmp_path / "asked"
    asked.touch()
    stubs = {
        # Each token that is asked for is another one.
        "curl": f'echo x >> {asked}; echo "{{\\"{ANSWERS[service]}\\": \\"token-$(wc -l < {asked})\\"}}"',
        # Works until others came after the first, each of them whole.
        "amlstack": f'until n=$(cat "$AZURE_FEDERATED_TOKEN_FILE"); [ "${{n#*-}}" -ge 3 ]; do :; done; exit {status}',
        "az": "echo subscription",
        "sleep": "exec /bin/sleep 0.02",
    }
    for name, text in stubs.items():
        (tools / name).write_text(f"#!/bin/bash\n{text}\n")
        (tools / name).chmod(0o755)
    script = tmp_path / "step.sh"
    script.write_text("\n".join(scripts(service)))
    places = {"RUNNER_TEMP": str(temp), "AGENT_TEMPDIRECTORY": str(temp), "PIPELINE_WORKSPACE": str(tmp_path)}
    places |= {"GITHUB_ENV": str(tmp_path / "env"), "AZURE_FEDERATED_TOKEN_FILE": str(temp / "azure-token")}
    path = os.pathsep.join([str(tools), *os.environ["PATH"].split(os.pathsep)])
    reader, writer = os.pipe()  # its end comes with the end of whoever the script has started
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        env={**VARIABLES, **places, "PATH": path},
        pass_fds=(writer,),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    os.close(writer)
    assert done.returncode == status, done.stderr
    token = (temp / "azure-token").read_bytes()
    assert re.fullmatch(rb"token-\d+", token)
    assert (temp / "azure-token").stat().st_mode & 0o077 == 0
    assert select.select([reader], [], [], 60)[0], "something goes on after the step"
    assert os.read(reader, 1) == b""
    os.close(reader)
