"""Every job file of a checkout (AMLSTACK_PUBLIC_JOBS) that azure-ai-ml takes is taken here too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import jobs
from amlstack.base.findings import errors
from tests.support.jobs.refusals import FAILS_IN_THE_RUN

FOLDER = os.environ.get("AMLSTACK_PUBLIC_JOBS", "")
NOT_READ = frozenset({"file-type", "not-a-job", "component-kind", "file-empty"})
"""Types that are no command job, sweep, pipeline or schedule, and are named so."""
ON_THIS_MACHINE = frozenset({"code-missing", "environment-file-missing", "component-missing"})
"""Files that a checkout lacks."""

pytestmark = pytest.mark.skipif(not FOLDER, reason="AMLSTACK_PUBLIC_JOBS names no checkout with public job files")


def files() -> list[Path]:
    return sorted(path for pattern in ("*.yml", "*.yaml") for path in Path(FOLDER).rglob(pattern)) if FOLDER else []


@pytest.mark.filterwarnings("ignore")
def test_what_azure_ai_ml_takes_has_no_error() -> None:
    from azure.ai.ml import load_job

    refused = {}
    for path in files():
        loaded = jobs.load(path)
        found = [*loaded.findings]
        for job in loaded.jobs:
            found += jobs.resolve(job, lambda _: (jobs.Target(), ()), source=loaded.source).findings
        wrong = {each.code for each in errors(found)} - NOT_READ - FAILS_IN_THE_RUN - ON_THIS_MACHINE
        if wrong:
            try:
                load_job(path)
            except Exception:  # noqa: BLE001 - whatever it raises, it refuses the file
                continue
            refused[str(path)] = wrong
    assert refused == {}


def test_a_file_that_is_no_job_has_one_error() -> None:
    several = {}
    for path in files():
        codes = [each.code for each in errors(jobs.load(path).findings)]
        if len(codes) > 1 and NOT_READ & set(codes) - {"component-kind"}:
            several[str(path)] = codes
    assert several == {}
