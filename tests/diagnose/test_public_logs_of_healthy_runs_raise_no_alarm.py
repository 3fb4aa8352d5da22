"""Long public logs of runs that ended well: the results of MLPerf Training 0.7, which may not be kept here.

``AMLSTACK_PUBLIC_LOGS=FOLDER`` names a checkout of https://github.com/mlcommons/training_results_v0.7: more than a
thousand logs of up to 90,000 lines by eight submitters, with srun, mpirun, torch, TensorFlow and MXNet.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from amlstack.diagnose import diagnose

FOLDER = os.environ.get("AMLSTACK_PUBLIC_LOGS", "")
FEW = 10
"""One of so many logs is read."""


def logs() -> list[Path]:
    found = sorted(file for file in Path(FOLDER).glob("*/results/**/*") if file.suffix in (".txt", ".log"))
    return [file for file in found if file.is_file() and file.stat().st_size > 5000][::FEW]


@pytest.mark.skipif(not FOLDER, reason="AMLSTACK_PUBLIC_LOGS names no checkout of the public logs")
def test_public_logs_of_healthy_runs_raise_no_alarm() -> None:
    files = logs()
    assert len(files) >= 30
    alarms = {str(file): verdict.cause for file in files if (verdict := diagnose([file])).found or verdict.fatal}
    assert not alarms
