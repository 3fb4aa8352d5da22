"""The engine's own debug log of each command cost up to half of a large preview; it has no setting for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from amlstack import engine

if TYPE_CHECKING:
    from tests.support.running import MakeStack

PROGRAM = """\
import pulumi
pulumi.export("word", "given")
"""


def test_engine_deploys_and_writes_no_log_where_their_folder_is_a_file(stack: MakeStack) -> None:
    one = stack(PROGRAM)
    one.up().ok()
    logs = Path(one.env["PULUMI_HOME"]) / "logs"
    assert logs.is_file()
    assert "Remove the file" in logs.read_text()
    assert one.outputs() == {"word": "given"}


def test_folder_of_logs_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "pulumi.log").write_text("kept")
    engine.keep_no_logs(tmp_path)
    assert (tmp_path / "logs" / "pulumi.log").read_text() == "kept"
