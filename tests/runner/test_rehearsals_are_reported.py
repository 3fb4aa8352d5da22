"""A real run, ended or under way, as a page."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from amlstack.report import jobs as of_job
from amlstack.report.page import render

if TYPE_CHECKING:
    from amlstack.report.logs import Report
    from tests.support.runner.runner_lab import Lab

TRAIN = """
import json, os
rank = int(os.environ["RANK"])
for step in range(5):
    print(f"step {step} loss {1 / (step + 1):.3f}", flush=True)
if rank == 3:
    raise ValueError("shard 3 is broken")
open("outputs/rank%d.txt" % rank, "w").write("x")
"""


def gathered(lab: Lab, job: str) -> Report:
    return of_job.job_report(lab.store, lab.store.jobs[job], time.time())


def test_a_failed_rehearsal_tells_ranks_loss_and_cause(lab: Lab) -> None:
    job = lab.job("python train.py", nodes=2, processes=2, codeId=lab.code({"train.py": TRAIN}))
    assert lab.run(job).status == "Failed"
    report = gathered(lab, job)
    assert [(rank.rank, rank.node, rank.local) for rank in report.ranks] == [
        (0, "0", 0),
        (1, "0", 1),
        (2, "1", 0),
        (3, "1", 1),
    ]
    assert report.ranks[3].code == 1
    assert all(rank.began is not None and rank.ended is not None for rank in report.ranks)
    assert report.verdict is not None
    assert (report.verdict.cause, report.verdict.rank) == ("python-exception", 3)
    assert [phase.name for phase in report.phases] == [
        *("NotStarted", "Queued", "Provisioning", "Preparing", "Running", "Finalizing")
    ]
    assert all(phase.ended is not None and phase.began <= phase.ended for phase in report.phases)
    (loss,) = report.series
    assert (loss.name, loss.axis, loss.points[0], loss.points[-1]) == ("loss", "step", (0, 1.0), (4, 0.2))
    assert "outputs/rank0.txt" in [file.name for file in report.outputs]
    assert "ValueError: shard 3 is broken" in render(report)


def test_a_running_job_is_reported_while_it_runs(lab: Lab) -> None:
    heard, go = lab.pipe(), lab.pipe()
    job = lab.job(f"echo step 1 loss 2; echo step 2 loss 1; echo up > {heard}; cat {go}", processes=1)
    seen: list[Report] = []

    def act() -> None:
        seen.append(gathered(lab, job))
        go.write_text("on")

    asyncio.run(lab.during(job, act=act, pipe=heard))
    (report,) = seen
    assert (report.status, report.active, report.verdict) == ("Running", True, None)
    assert report.phases[-1].ended is None
    assert [rank.rank for rank in report.ranks] == [0]
    assert [each.points for each in report.series] == [((1, 2.0), (2, 1.0))]
    assert lab.store.jobs[job].status == "Completed"
