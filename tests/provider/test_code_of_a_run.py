"""The code's hash in a run's identity, and what changed, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.run_identity import job_id
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

OTHER, NOW, NEXT = (digit * 64 for digit in "012")
UNLISTED = job_inputs(codeHash=OTHER)
LISTED: dict[str, Any] = {
    "codeHash": NOW,
    "codeFiles": {"train.py": "a1", "old.py": "b1", "data/": "c1"},
}
EDITED: dict[str, Any] = {
    "codeHash": NEXT,
    "codeFiles": {"train.py": "a2", "new.py": "b1", "data/": "c1"},
}
CHANGES = "new.py added, old.py removed, train.py changed"


def run_of(code: str) -> str:
    return job_id(UNLISTED["name"], UNLISTED["declaration"], code, "", "train/dev")


def test_the_code_is_part_of_a_runs_id(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(**LISTED))
    assert job.id == run_of(NOW)


def test_the_refusal_names_the_files_that_changed(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(job_inputs(**LISTED))
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
    job.up(job_inputs(**LISTED))
    arm.set_status(job.id, status)
    old = job.id
    job.diff(job.check(job_inputs(**EDITED, onEdit=on_edit)))
    assert f"another run than {old}: {CHANGES}" in log.messages("info")


def test_without_a_recorded_list_the_hash_is_named(wire: Wire, arm: FakeArm) -> None:
    job = wire.job()
    job.up(UNLISTED)
    arm.set_status(job.id, "Running")
    with pytest.raises(Refused, match=r"its declaration changed \(codeHash\)"):
        job.up(job_inputs(**EDITED))
