"""A random secret in variables of jobs: delivered to the processes, and in no file but the sandbox's own database.

Searched are all files under the sandbox's home, the stack's folder and its backend, what the engine printed and its
events, and reports, for the secret itself, its base64 at every offset, and its form in URLs and JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from amlstack.cli.main import main
from tests.support.stack.small_jobs import job, runs, settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.engine_result import Result
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

SECRET = f"canary/{secrets.token_urlsafe(24)}+&%\"='"
DIGEST = hashlib.sha256(SECRET.encode()).hexdigest()
PROVES = (
    "python -c \"import hashlib, os; assert hashlib.sha256(os.environ['TOKEN'].encode()).hexdigest() == '{digest}'\""
)
OWN = """\
from jobs import Job

job = Job(
    name="own",
    command={command!r},
    environment="small",
    compute="busy",
    environment_variables={{"TOKEN": {{"secret": "canary"}}}},
    wait="completed",
)
"""
STEPS = """\
type: pipeline
name: steps
settings: {{default_compute: "azureml:busy"}}
jobs:
  one:
    command: {command}
    environment: azureml:small
"""
NIGHTLY = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 1}
create_job: ./steps.yml
"""


def forms(secret: str) -> dict[str, bytes]:
    """The forms in which a secret may lie in a file."""
    found = {
        "itself": secret.encode(),
        "in a URL": quote(secret, safe="").encode(),
        "in JSON": json.dumps(secret)[1:-1].encode(),
    }
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + secret.encode())
        found[f"base64 at {offset}"] = coded[4 if offset else 0 : len(secret) // 3 * 4 - 4]
    return found


@dataclass
class Search:
    """The places where the secret was found, by step."""

    found: list[str] = field(default_factory=list)
    looked_at: int = 0
    results: dict[str, Result] = field(default_factory=dict)

    def look(self, step: str, result: Result, *folders: Path) -> None:
        self.results[step] = result
        self._in(f"{step}: events", json.dumps(result.events).encode())
        self._in(f"{step}: output", result.output.encode())
        for folder in folders:
            for file in folder.rglob("*"):
                if file.name.startswith("state.db"):
                    assert file.stat().st_mode & 0o077 == 0, file
                elif file.is_file() and not file.is_symlink():
                    self._in(f"{step}: {file}", file.read_bytes())

    def _in(self, where: str, content: bytes) -> None:
        self.looked_at += 1
        self.found += [f"{form} in {where}" for form, text in forms(SECRET).items() if text in content]


@pytest.fixture(scope="module")
def search(own: Own, tmp_path_factory: pytest.TempPathFactory) -> Search:
    """The stack's life with the secret, everything searched after each step."""
    folder, reports = tmp_path_factory.mktemp("jobs"), tmp_path_factory.mktemp("reports")
    stack, search = own.stack, Search()
    where = (own.home, stack.folder, stack.backend, reports)
    proves = PROVES.format(digest=DIGEST)
    job(folder, "listed", proves)
    (folder / "own.py").write_text(OWN.format(command=proves))
    (folder / "steps.yml").write_text(STEPS.format(command=json.dumps(proves)))
    (folder / "nightly.yml").write_text(NIGHTLY)
    for key, value in settings("ws-secret").items():
        stack.set(key, value)
    variables = {"environment_variables": {"TOKEN": {"secret": "canary"}}}
    listed = [{"file": str(folder / name), "wait": "completed", **variables} for name in ("listed.yml", "steps.yml")]
    listed += [{"file": str(folder / "own.py")}, {"file": str(folder / "nightly.yml"), **variables}]
    stack.set("amlstack:jobs", listed)
    stack.pulumi("config", "set", "--secret", "--path", "amlstack:secrets.canary", SECRET).ok()

    search.look("up", stack.up(preview=True).ok(), *where)
    (folder / "own.py").write_text(OWN.format(command="python -c 'import os; raise SystemExit(len(os.environ))'"))
    search.look("failure", stack.up().failed(), *where)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AMLSTACK_HOME", str(own.home))
        failed = next(row.name for row in runs(own.home).values() if row.status == "Failed")
        main(["diagnose", failed])
        main(["report", failed, "-o", str(reports / "report.html")])
    stack.pulumi("config", "set", "--secret", "--path", "amlstack:secrets.canary", f"{SECRET}2").ok()
    (folder / "own.py").write_text(OWN.format(command="true"))
    search.look("another value", stack.up("--refresh").ok(), *where)
    search.look("destroy", stack.destroy().ok(), *where)
    assert (reports / "report.html").is_file()
    return search


def test_the_jobs_had_the_secret(search: Search, own: Own) -> None:
    done = {step.name: step for step in search.results["up"].done if step.type == "amlstack:jobs:Job"}
    assert done.keys() == {"listed", "own", "steps"}
    assert {step.new["outputs"]["status"] for step in done.values()} == {"Completed"}


def test_the_secret_lies_nowhere(search: Search) -> None:
    assert search.looked_at > 100
    assert search.found == []


def test_what_is_searched_for_would_be_found() -> None:
    coded = [base64.b64encode(b"x" * number + SECRET.encode()).decode() for number in range(5)]
    for text in (SECRET, quote(SECRET, safe=""), json.dumps({"a": SECRET}), *coded):
        assert any(form in f"before {text} after".encode() for form in forms(SECRET).values())


def test_another_value_of_the_secret_runs_nothing_again(search: Search) -> None:
    # The job that was edited, and the schedule, which has the value for the runs to come.
    for step, expected in (("failure", {"own"}), ("another value", {"own", "nightly"})):
        ops = search.results[step].ops.items()
        assert {urn.rpartition("::")[2] for urn, done in ops if {*done} - {"same", "refresh"}} == expected
    assert search.results["another value"].op("nightly") == "update"
