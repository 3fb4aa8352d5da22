"""The workflow, the Makefile and .ci/run name each other's parts correctly."""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest
import yaml

from amlstack.base.paths import PROJECT

WORKFLOWS = sorted((PROJECT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text("utf-8"), re.MULTILINE))


def jobs(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((PROJECT / ".github" / "workflows" / name).read_text("utf-8"))["jobs"]
    return found


def test_last_job_waits_for_every_other_job() -> None:
    *others, last = jobs("ci.yml")
    assert jobs("ci.yml")[last]["needs"] == others


@pytest.mark.parametrize("path", [*WORKFLOWS, PROJECT / ".ci" / "run"], ids=lambda path: path.name)
def test_make_targets_that_a_run_calls_exist(path: Any) -> None:
    called = set(re.findall(r"\bmake ([a-z-]+)", path.read_text("utf-8")))
    assert called
    assert called <= TARGETS


@pytest.mark.parametrize("verb", ["up", "down"])
def test_make_asks_nothing_when_yes_is_given(verb: str) -> None:
    asking, silent = (
        subprocess.run(["make", "-n", verb, *words], cwd=PROJECT, capture_output=True, text=True, check=True).stdout
        for words in ((), ("YES=1",))
    )
    assert f"amlstack {verb} --yes" in silent
    assert "--yes" not in asking


def test_lock_file_names_public_hosts_only() -> None:
    hosts = set(re.findall(r"https?://([^/\"]+)", (PROJECT / "uv.lock").read_text("utf-8")))
    assert hosts == {"pypi.org", "files.pythonhosted.org"}
