"""The walks of docs/architecture.md: from a declaration to its effect, each module named once."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from amlstack.base.paths import PROJECT

PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = {
    section.partition("\n")[0]: re.findall(r"`([a-z_]+/[a-z_/]+(?:\.py|/))`", section)
    for section in PAGE.split("\n## ")
    if section.startswith("From a ")
}


def test_there_is_a_walk_for_a_job_and_one_for_a_cluster() -> None:
    assert list(WALKS) == ["From a YAML line to a rank log", "From a cluster setting to a verdict"]


@pytest.mark.parametrize("walk", WALKS)
def test_a_walk_names_each_module_once_and_only_what_there_is(walk: str) -> None:
    named = WALKS[walk]

    assert len(named) > 5
    assert [module for module in named if not (PROJECT / module).exists()] == []
    assert [module for module, times in Counter(named).items() if times > 1] == []
