"""The engine's own debug log of each command cost up to half of a large preview; it has no setting for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack import engine

if TYPE_CHECKING:
    from pathlib import Path


def test_where_their_folder_would_be_stands_a_file_that_says_so(tmp_path: Path) -> None:
    engine.keep_no_logs(tmp_path)
    assert "Remove the file" in (tmp_path / "logs").read_text()


def test_folder_of_logs_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "pulumi.log").write_text("kept")
    engine.keep_no_logs(tmp_path)
    assert (tmp_path / "logs" / "pulumi.log").read_text() == "kept"
