"""No bad job file and no bad settings end in a traceback: two hundred at each run, 10,000 with `make garbage`."""

from __future__ import annotations

import json
import os
import random
from datetime import date
from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack import run_identity
from amlstack.base.findings import errors
from amlstack.cli.jobfiles.judgement import check_file
from amlstack.cli.targets import Targets
from infra.declaration import declare
from infra.settings import read_file
from policies.config import Config
from policies.gate import Gate
from tests.support.infra import garbage
from tests.support.infra.good_files import NEIGHBOURS

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding

FILES = int(os.environ.get("GARBAGE_FILES", "200"))
"""The number of files that are made."""
FIRST = int(os.environ.get("GARBAGE_SEED") or (0 if os.environ.get("CI") else random.SystemRandom().randrange(10**9)))
"""The number of the first: others at each run, the same ones in CI and where it is given."""
PARTS = 4
TODAY = date(2026, 7, 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("garbage")
    for name, text in NEIGHBOURS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def judged(file: garbage.Garbage, folder: Path) -> tuple[Finding, ...]:
    """All that is found wrong; what is found right is rendered and hashed as `up` would."""
    place = folder / file.name
    place.write_bytes(file.content)
    try:
        if file.kind == "settings":
            declaration = declare(read_file(place), on=TODAY, root=folder)
            return declaration.findings
        checked = check_file(place, Targets(size="Standard_ND96asr_v4", root=folder), gate=Gate(Config(), TODAY))
        if not errors(checked.findings):
            for plan in checked.plans:
                json.dumps(jobs.render(plan.enriched).body if not isinstance(plan, jobs.SchedulePlan) else {})
                if not isinstance(plan, jobs.SchedulePlan):
                    run_identity.digest("name", plan.declaration, "", "")
        return checked.findings
    finally:
        place.unlink()


def is_refused(file: garbage.Garbage, folder: Path, again: str = "") -> bool:
    """True where something is wrong with a file; fails, saying how to repeat it, where findings do not say that."""
    try:
        findings = judged(file, folder)
        json.dumps([finding.as_dict() for finding in findings])
        "\n".join(map(str, findings)).encode()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no finding
        shown = file.content.decode(errors="replace")
        pytest.fail(f"{again} {error!r}\n{shown}", pytrace=True)
    return bool(errors(findings))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_bad_file_ends_in_findings(part: int, folder: Path) -> None:
    seeds = range(FIRST + part, FIRST + FILES, PARTS)
    refused = [is_refused(garbage.make(seed), folder, f"GARBAGE_SEED={seed} GARBAGE_FILES=1:") for seed in seeds]
    assert FILES < PARTS or any(refused), "most of them are bad"


def test_each_value_of_a_good_file_may_be_of_any_other_kind(folder: Path) -> None:
    refused = [is_refused(file, folder) for file in garbage.exchanged(kinds=2 if FILES <= 400 else 5)]
    assert refused.count(True) > len(refused) / 2, "most of them are bad"


def test_a_file_is_the_same_at_each_call() -> None:
    assert [garbage.make(seed) for seed in range(20)] == [garbage.make(seed) for seed in range(20)]
