"""Our body of a command job file is the one that azure-ai-ml would send, and what it refuses has findings."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path
from typing import Any

import oracle
import parity_cases as cases
import pytest
import yaml

import jobs

ON = date(2026, 1, 1)
INLINE = "inline"


def ours(path: Path) -> tuple[dict[str, Any] | None, list[str]]:
    """Our body, and the errors we found."""
    loaded = jobs.load(path)
    plans = [jobs.plan(job, on=ON, source=loaded.source) for job in loaded.jobs]
    errors = [
        str(finding)
        for finding in (*loaded.findings, *(finding for plan in plans for finding in plan.findings))
        if finding.level == "error"
    ]
    if not plans:
        return None, errors
    environment = plans[0].job.environment
    inline = isinstance(environment, jobs.Environment)
    body = jobs.body(plans[0].enriched, jobs.Refs(environment=INLINE if inline else None))
    if inline and not errors:
        body["environment"] = {"properties": jobs.environment_properties(environment, path.parent)}
    return body, errors


@pytest.fixture
def place(tmp_path: Path) -> Path:
    cases.folder(tmp_path)
    return tmp_path / "job.yml"


@pytest.mark.parametrize("case", cases.ACCEPTED)
def test_an_accepted_file_becomes_the_same_body(case: str, place: Path) -> None:
    place.write_text(cases.text(cases.ACCEPTED[case]), encoding="utf-8")
    theirs = oracle.body(place)
    body, errors = ours(place)
    assert errors == []
    assert body == theirs


@pytest.mark.parametrize("case", cases.REFUSED)
def test_a_refused_file_has_findings(case: str, place: Path) -> None:
    place.write_text(cases.text(cases.REFUSED[case]), encoding="utf-8")
    with pytest.raises(oracle.RefusedError):
        oracle.body(place)
    _, errors = ours(place)
    assert len(errors) == 1, errors
    assert "job.yml:" in errors[0]


def corpus() -> list[Path]:
    """Job files of a folder named by AMLSTACK_CORPUS; none without it."""
    folder = os.environ.get("AMLSTACK_CORPUS")
    return sorted(path for path in Path(folder).rglob("*.y*ml")) if folder else []


@pytest.mark.parametrize("file", corpus(), ids=lambda path: path.name)
def test_a_file_of_the_corpus_becomes_the_same_body(file: Path, tmp_path: Path, record_property: Any) -> None:
    written = file.read_text(encoding="utf-8")
    data = yaml.safe_load(written)
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    place = tmp_path / "a" / "b" / "c" / file.name  # deep enough for paths like ../../src
    place.write_text(written, encoding="utf-8")
    for path in stubs(data):
        stub(place.parent / path)
    try:
        theirs: dict[str, Any] | None = oracle.body(place) if data.get("type", "command") == "command" else None
    except oracle.RefusedError:
        theirs = None
    body, errors = ours(place)
    if theirs is None:
        record_property("verdict", "refused by both")
        assert errors
        return
    record_property("verdict", "same body")
    assert errors == []
    assert body == theirs


def stubs(data: Any) -> list[str]:
    """Local paths that a job file names."""
    environment = data.get("environment")
    found = [data.get("code")]
    if isinstance(environment, dict):
        found += [(environment.get("build") or {}).get("path"), environment.get("conda_file")]
    return [path for path in found if isinstance(path, str) and "://" not in path]


def stub(path: Path) -> None:
    if path.suffix in {".yml", ".yaml"}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("dependencies: [python]\n")
    else:
        path.mkdir(parents=True, exist_ok=True)
        (path / "Dockerfile").write_text("FROM scratch\n")
