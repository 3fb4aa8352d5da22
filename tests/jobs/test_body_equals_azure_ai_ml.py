"""Our body of a command job file is the one that azure-ai-ml would send, and what it refuses has findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.jobs import oracle
from tests.support.jobs import parity_cases as cases
from tests.support.jobs.our_commands import ours
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    cases.folder(tmp_path)
    return tmp_path / "job.yml"


@for_each("case", cases.ACCEPTED)
def test_an_accepted_file_becomes_the_same_body(case: str, place: Path) -> None:
    place.write_text(cases.text(cases.ACCEPTED[case]), encoding="utf-8")
    theirs = oracle.body(place)
    body, errors = ours(place)
    assert errors == []
    assert body == theirs


@for_each("case", cases.REFUSED)
def test_a_refused_file_has_findings(case: str, place: Path) -> None:
    place.write_text(cases.text(cases.REFUSED[case]), encoding="utf-8")
    with pytest.raises(oracle.RefusedError):
        oracle.body(place)
    _, errors = ours(place)
    assert len(errors) == 1, errors
    assert "job.yml:" in errors[0]
