from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from scenarios import SCENARIOS

from amlstack.diagnose import diagnose
from amlstack.diagnose.judge import judge
from amlstack.diagnose.sources import read
from amlstack.diagnose.words import report

if TYPE_CHECKING:
    from pathlib import Path


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_true_is_said(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    verdict = diagnose([write(tmp_path, scenario.files)])
    told = verdict.as_dict()
    assert told["found"] is scenario.found, told
    assert {key: told[key] for key in scenario.truth} == scenario.truth
    assert report(verdict)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_order_of_the_files_changes_nothing(name: str, tmp_path: Path) -> None:
    logs = read([write(tmp_path, SCENARIOS[name].files)]).logs
    assert len({repr(judge(order).as_dict()) for order in list(permutations(logs))[:24]}) == 1
