from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.report.logs import ALL, AROUND, LEAST, LONGEST, TAIL, budget, excerpt, plain
from tests.support.report.pages import HOSTILE
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.report.logs import Excerpt


def log(folder: Path, text: str | bytes) -> Path:
    path = folder / "log.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def made(path: Path, marks: dict[int, str] | None = None, size: int = TAIL) -> Excerpt:
    return excerpt(path, "log.txt", rank=0, node="0", marks=marks or {}, size=size)


def hidden(found: Excerpt) -> int:
    return found.lines - sum(len(part.lines) for part in found.parts)


def test_a_short_log_is_shown_whole(tmp_path: Path) -> None:
    found = made(log(tmp_path, "one\ntwo\n\nfour"))
    assert [(part.first, part.lines) for part in found.parts] == [(1, ("one", "two", "", "four"))]
    assert (found.lines, hidden(found), found.size) == (4, 0, 13)


def test_of_a_long_log_the_end_is_shown_with_true_numbers(tmp_path: Path) -> None:
    found = made(log(tmp_path, "".join(f"line {each}\n" for each in range(1, 5001))), size=1000)
    (part,) = found.parts
    assert part.lines[0] == f"line {part.first}"
    assert part.lines[-1] == "line 5000"
    assert (found.lines, hidden(found)) == (5000, part.first - 1)
    assert sum(len(line) + 1 for line in part.lines) <= 1000


def test_an_early_error_is_shown_with_its_neighbours(tmp_path: Path) -> None:
    found = made(log(tmp_path, "".join(f"line {each}\n" for each in range(1, 5001))), {700: "cause"}, size=1000)
    early, late = found.parts
    assert early.first == 700 - AROUND
    assert early.lines[AROUND] == "line 700"
    assert early.after == 700 + AROUND + 1
    assert late.after == 5001
    assert hidden(found) == 5000 - len(early.lines) - len(late.lines)


@for_each("offset", range(-14, 3))
def test_an_error_just_before_the_end_is_shown_once(tmp_path: Path, offset: int) -> None:
    path = log(tmp_path, "".join(f"line {each}\n" for each in range(1, 501)))
    tail = made(path, size=200).parts[0].first
    found = made(path, {tail + offset: "cause"}, size=200)
    shown = [number for part in found.parts for number in range(part.first, part.after)]
    assert shown == sorted(set(shown))
    assert tail + offset in shown
    assert shown[-1] == 500


def test_one_endless_line_does_not_fill_the_page(tmp_path: Path) -> None:
    found = made(log(tmp_path, b"x" * 5_000_000 + b"\nValueError: here\n"), {1: "victim"}, size=2000)
    assert [part.lines[-1] for part in found.parts][-1] == "ValueError: here"
    assert all(len(line) < 2 * LONGEST for part in found.parts for line in part.lines)


def test_lines_are_plain_text_without_secrets() -> None:
    shown = [plain(line.encode()) for line in HOSTILE]
    assert shown[0] == HOSTILE[0]  # escaping is the page's business
    assert shown[4] == "red  \ufffdgnihton \ufffd end"
    assert "c2Vj" not in shown[5]
    assert "abcdefgh" not in shown[5]
    assert plain(b"\r 10%|#\r 20%|##\r") == " 20%|##"


@pytest.mark.parametrize("logs", [1, 40, 128, 5000])
def test_many_logs_share_the_page(logs: int) -> None:
    assert LEAST <= budget(logs) <= TAIL
    assert budget(logs) * min(logs, 128) <= ALL
