"""The last step of the nightly files: one issue or work item for a stack while there is drift, closed afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.paths import PROJECT
from tests.support.gitops import devops
from tests.support.gitops.forge import Forge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Listed = Callable[[], list[tuple[bool, str]]]

pytestmark = [pytest.mark.tools]


@contextlib.contextmanager
def github(folder: Path) -> Iterator[tuple[str, dict[str, str], Listed]]:
    """The step, its variables, and the issues: whether they are open, and their text."""
    file: dict[str, Any] = yaml.safe_load((PROJECT / "deploy" / "github" / "amlstack-drift.yml").read_text("utf-8"))
    forge = Forge(folder / "forge", "")
    env = {"GH_TOKEN": forge.token({"issues": "write"}), "GH_STAND_IN": str(forge.folder), "LABEL": "amlstack-drift"}
    env |= {"GITHUB_REPOSITORY": forge.name, "PATH": f"{forge.folder / 'bin'}:{os.environ['PATH']}"}
    with contextlib.closing(forge):
        step = file["jobs"]["drift"]["steps"][-1]["run"]
        yield step, env, lambda: [(one["state"] == "open", one["body"]) for one in forge.state()["issues"]]


@contextlib.contextmanager
def azure_pipelines(folder: Path) -> Iterator[tuple[str, dict[str, str], Listed]]:
    """The step, its variables, and the work items: whether they are open, and their text."""
    file = yaml.safe_load((PROJECT / "deploy" / "azure-pipelines" / "amlstack-drift.yml").read_text("utf-8"))
    step = file["jobs"][0]["steps"][-1]
    with devops.served(folder / "devops") as (service, loopback):
        env = {"SYSTEM_COLLECTIONURI": f"{loopback.url}/", "SYSTEM_TEAMPROJECT": "p", "SYSTEM_ACCESSTOKEN": "build-1"}
        env |= {"CLOSED": step["env"]["CLOSED"], "CURL_CA_BUNDLE": str(loopback.ca), "PATH": os.environ["PATH"]}
        yield (
            step["bash"],
            env,
            lambda: [
                (fields.get("System.State") != "Done", fields["System.Description"])
                for fields in (one["fields"] for one in service.items)
            ],
        )


@pytest.mark.parametrize("service", [github, azure_pipelines])
def test_drift_is_one_thing_to_do_until_it_is_gone(service: Any, tmp_path: Path) -> None:
    (tmp_path / "amlstack").write_text("#!/bin/sh\necho Azure differs from main: prod\n")
    (tmp_path / "amlstack").chmod(0o755)
    with service(tmp_path) as (script, env, listed):
        for drift, text, then in (
            ("0", "", []),
            ("1", "a", [(True, "a")]),
            ("1", "b", [(True, "b")]),
            ("0", "", [(False, "b")]),
            ("0", "", [(False, "b")]),
        ):
            (tmp_path / "drift.md").write_text(text)
            own = {"STACK": "prod", "DRIFT": drift, "PATH": f"{tmp_path}:{env['PATH']}"}
            words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
            done = subprocess.run(words, env={**env, **own}, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, listed()) == (0, then), done.stderr
