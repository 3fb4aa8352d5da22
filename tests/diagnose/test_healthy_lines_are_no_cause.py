"""Lines of runs that end well and read like errors: alone they are no cause, and they hide none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.diagnose import diagnose
from tests.support.diagnose.kept_logs import HEALTHY
from tests.support.diagnose.log_texts import traceback
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path


@for_each("line", HEALTHY)
def test_a_line_of_a_healthy_run_is_no_cause(line: str, tmp_path: Path) -> None:
    (tmp_path / "out.log").write_text(f"step 1\n{line}\nstep 2\nstep 3 loss 0.2\n")
    assert not diagnose([tmp_path]).found


def test_all_of_them_together_hide_no_exception(tmp_path: Path) -> None:
    healthy = "".join(f"step 1\n{line}\n" for line in HEALTHY)
    (tmp_path / "out.log").write_text(healthy)
    assert not diagnose([tmp_path]).found
    (tmp_path / "out.log").write_text(healthy + traceback("KeyError: 'x'", prefix="[rank3]: "))
    verdict = diagnose([tmp_path])
    assert (verdict.cause, verdict.rank, verdict.text) == ("python-exception", 3, "KeyError: 'x'")
