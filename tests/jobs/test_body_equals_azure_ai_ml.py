"""Our body of a command job file is the one that azure-ai-ml would send, and what it refuses has findings."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from tests.support.jobs import oracle
from tests.support.jobs import parity_cases as cases

if TYPE_CHECKING:
    from pathlib import Path

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
