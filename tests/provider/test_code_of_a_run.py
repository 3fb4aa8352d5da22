"""The code's hash in a run's identity: the same run under a former hash of the same code, and what changed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.run_identity import job_id
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

FORMER, CHECKOUT, NOW, NEXT = (digit * 64 for digit in "0123")
OLD = job_inputs(codeHash=FORMER)
"""What a version of this project declared that hashed every file of the folder."""
UPGRADED: dict[str, Any] = {
    "codeHash": NOW,
    "formerCodeHashes": [FORMER, CHECKOUT],
    "codeFiles": {"train.py": "a1", "old.py": "b1", "data/": "c1"},
}
EDITED: dict[str, Any] = {
    "codeHash": NEXT,
    "formerCodeHashes": ["4" * 64],
    "codeFiles": {"train.py": "a2", "new.py": "b1", "data/": "c1"},
}
CHANGES = "new.py added, old.py removed, train.py changed"


def run_of(code: str) -> str:
    return job_id(OLD["name"], OLD["declaration"], code, "", "train/dev")


@pytest.mark.parametrize("recorded", [FORMER, CHECKOUT])
def test_an_upgrade_runs_nothing_again(wire: Wire, arm: FakeArm, recorded: str) -> None:
    job = wire.job()
    job.up(job_inputs(codeHash=recorded))
    arm.set_status(job.id, "Running")
    asked = len(arm.asked)
    assert job.up(job_inputs(**UPGRADED)) == "same"
    # A former hash counts every file: it changes with what is left in the folder. The recorded one no longer does.
    assert job.up(job_inputs(**{**UPGRADED, "formerCodeHashes": ["5" * 64]})) == "same"
    assert len(arm.asked) == asked
    assert (arm.runs_started(), job.id) == (1, run_of(recorded))


def test_a_run_recorded_by_a_former_hash_is_adopted_where_the_state_is_lost(wire: Wire, arm: FakeArm) -> None:
    wire.job().up(OLD)
    arm.set_status(run_of(FORMER), "Running")
    job = wire.job()
    assert job.preview(job_inputs(**UPGRADED))["jobId"] == f"{WORKSPACE}/jobs/{run_of(FORMER)}"
    job.up(job_inputs(**UPGRADED))
    assert (arm.runs_started(), job.id) == (1, run_of(FORMER))
    assert job.up(job_inputs(**UPGRADED)) == "same"
    job.remove()
    assert arm.cancelled == [run_of(FORMER)]


def test_a_new_run_bears_the_hash_of_today(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(**UPGRADED))
    assert job.id == run_of(NOW)


def test_the_refusal_names_the_files_that_changed(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(OLD)
    job.up(job_inputs(**UPGRADED))
    arm.set_status(job.id, "Running")
    with pytest.raises(Refused) as caught:
        job.up(job_inputs(**EDITED, declaration={"command": "python train.py", "lr": 0.2}))
    assert f"its declaration changed (declaration.lr, {CHANGES})" in str(caught.value)
    assert "codeHash" not in str(caught.value)


@pytest.mark.parametrize(("status", "on_edit"), [("Completed", "refuse"), ("Running", "keep"), ("Running", "cancel")])
def test_what_makes_another_run_is_named_at_preview(
    wire: Wire, arm: FakeArm, log: Log, status: str, on_edit: str
) -> None:
    job = wire.job()
    job.up(job_inputs(**UPGRADED))
    arm.set_status(job.id, status)
    old = job.id
    job.diff(job.check(job_inputs(**EDITED, onEdit=on_edit)))
    assert f"another run than {old}: {CHANGES}" in log.of("info")


def test_without_a_recorded_list_the_hash_is_named(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(OLD)
    arm.set_status(job.id, "Running")
    with pytest.raises(Refused, match=r"its declaration changed \(codeHash\)"):
        job.up(job_inputs(**EDITED))
