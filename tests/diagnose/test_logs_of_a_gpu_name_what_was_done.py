"""Logs of programs that were broken on purpose on a GPU: what was done to each is known from the program."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from amlstack.diagnose import diagnose
from tests.support.rows import for_each

FOLDER = Path(__file__).parent / "gpu"
TABLE: dict[str, Any] = tomllib.loads((FOLDER / "truth.toml").read_text("utf-8"))


def is_right(name: str) -> bool:
    (log,) = FOLDER.glob(f"{name}.txt*")
    said, truth = diagnose([log]).as_dict(), TABLE["truth"][name]
    if not truth:
        return not said["found"]
    pattern, *rank = truth
    return said["found"] and re.search(pattern, said["text"]) is not None and rank in ([], [said["rank"]])


def test_every_log_has_its_truth() -> None:
    assert {path.name.partition(".")[0] for path in FOLDER.glob("*.txt*")} == set(TABLE["truth"])
    assert set(TABLE["open"]) < set(TABLE["truth"])


@for_each("name", TABLE["truth"])
def test_what_was_done_is_named(name: str) -> None:
    assert is_right(name) is (name not in TABLE["open"])
