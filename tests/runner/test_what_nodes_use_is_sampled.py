from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from amlstack.report import performance
from amlstack.sandbox import processes
from amlstack.sandbox.runner import usage

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runner.runner_lab import Lab


def test_a_node_that_computes_is_told_from_one_that_waits(lab: Lab) -> None:
    seen, go = lab.folder("job") / usage.FILE, lab.pipe()
    computes = f"until [ -s {seen} ]; do :; done; echo go > {go}"
    job = lab.job(f'if [ "$RANK" = 0 ]; then {computes}; else cat {go}; fi', nodes=2)
    assert lab.run(job).status == "Completed"
    busy, waits = (each.points[0][1] for each in performance.usage(lab.folder(job))["CPU, cores"])
    assert busy > waits


def test_cpu_and_memory_are_those_of_the_processes_below_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def process(parent: int, ticks: tuple[int, int, int, int], pages: int) -> list[bytes]:
        return [b"S", b"%d" % parent, *[b"0"] * 9, *(b"%d" % each for each in ticks), *[b"0"] * 6, b"%d" % pages]

    own = usage._TICKS
    living = {
        10: process(1, (9, 9, own, 0), 7),
        11: process(10, (own, own, 0, own), 100),
        12: process(11, (0,) * 4, 50),
    }
    monkeypatch.setattr(processes, "living", lambda: {**living, 99: process(1, (own,) * 4, 900)})
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    sampled = usage.Usage(tmp_path / usage.FILE, usage.Rhythm(time.monotonic() - 4.0, due=0.0))
    sampled.sample({0: 10})
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '11, 512'\necho '11, 1024'\necho '99, 7'\n")
    (tools / "nvidia-smi").chmod(0o755)
    sampled.rhythm.due = 0.0
    sampled.sample({0: 10, 1: 77})  # node 1 is gone meanwhile
    found = performance.usage(tmp_path)
    assert found["CPU, cores"][0].points[0][1] == pytest.approx(1.0, abs=0.1)
    assert found["CPU, cores"][0].points[1][1] == 0.0
    assert {y for _, y in found["memory, GiB"][0].points} == {150 * usage._PAGE / 2**30}
    assert [y for each in found["GPU memory, GiB"] for _, y in each.points] == [1.5, 0.0]


def test_samples_become_rarer_in_a_long_run(tmp_path: Path) -> None:
    sampled = usage.Usage(tmp_path / "no folder" / usage.FILE, usage.Rhythm(time.monotonic() - 24 * 3600, due=0.0))
    sampled.sample({0: os.getpid()})  # a folder that cannot be written ends nothing
    assert sampled.rhythm.due == pytest.approx(time.monotonic() + 432, abs=5)
