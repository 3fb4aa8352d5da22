"""Any updates of some resources alone, as the engine makes them of the provider: no active run ends unasked.

The engine neither checks nor compares what is not targeted, and deletes what is targeted and not declared any more. So
a job may be deleted without its guard having been asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, Resource, job_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log, Wire

STACK_ID = "s" * 32
JOBS, GUARD = ("a", "b", "c"), "guard"
ENDED = ("Completed", "Failed", "Canceled")


@dataclass
class PartialStack:
    """A guard and some jobs, as the state file has them.

    Attributes:
        jobs: Those in the state.
        words: Their recorded ``on_edit``.
    """

    wire: Wire
    arm: FakeArm
    guard: Resource = field(init=False)
    jobs: dict[str, Resource] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.guard = Resource(self.wire, "amlstack:runs:Guard", "runs")

    def active(self) -> dict[str, str]:
        """Run → job, of those that have not ended."""
        found = {key.rsplit("/", 1)[-1]: job["properties"] for key, job in self.arm.jobs.items()}
        return {run: run.partition("-")[0] for run, one in found.items() if one["status"] not in ENDED}

    def up(self, program: Mapping[str, tuple[int, str]], part: set[str]) -> None:
        """An update of a part: what is declared first, in order, then what is not declared any more.

        Raises:
            Refused: The provider refused a step; what came before it has happened.
        """
        self.wire.configure_for_a_program()
        if GUARD in part:
            modes = {name: on_edit for name, (_, on_edit) in program.items()}
            self.guard.up({"workspace": WORKSPACE, "stackId": STACK_ID, "jobs": modes}, same_deployment=True)
        for name, (what, on_edit) in program.items():
            if name not in part:
                continue
            job = self.jobs.get(name) or self.wire.job(name)
            inputs = job_inputs(name=name, declaration={"lr": what}, onEdit=on_edit, stackId=STACK_ID)
            job.up(inputs, same_deployment=True)
            self.jobs[name] = job
        for name in sorted(self.jobs.keys() - program.keys()):
            if name in part:
                job = self.jobs[name]
                job._delete(job.id, job.inputs, job.outputs)
                del self.jobs[name]


modes = st.sampled_from(["refuse", "refuse", "keep", "cancel"])
programs = st.dictionaries(st.sampled_from(JOBS), st.tuples(st.integers(0, 1), modes))
parts = st.one_of(
    st.just({GUARD, *JOBS}),
    st.sets(st.sampled_from([GUARD, *JOBS])),  # --target
    st.sampled_from([GUARD, *JOBS]).map(lambda left_out: {GUARD, *JOBS} - {left_out}),  # --exclude
)
REFUSING = {"a": (0, "refuse"), "b": (0, "keep")}


@example([(REFUSING, {GUARD, *JOBS}), ({}, {"a"}), ({}, {"b"}), ({}, set(JOBS))])
@example([({"a": (0, "keep")}, {GUARD, *JOBS}), ({"a": (1, "keep")}, {"a"}), ({}, {"a"})])
@example([({"a": (0, "cancel")}, {GUARD, *JOBS}), ({}, {"a"})])
@settings(
    max_examples=examples(0.15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=st.lists(st.tuples(programs, parts), min_size=2, max_size=6))
def test_no_targets_and_no_excludes_end_a_run_that_nobody_gave_up(wire: Wire, arm: FakeArm, history: list[Any]) -> None:
    for record in (arm.jobs, arm.asked, arm.begun, arm.cancelled, arm.statuses):
        record.clear()
    wire.restart()
    stack = PartialStack(wire, arm)
    for program, part in history:
        note(f"{program} on {sorted(part)}")
        given_up = {name for name, job in stack.jobs.items() if job.inputs["onEdit"] == "cancel"}
        given_up |= {name for name, (_, on_edit) in program.items() if on_edit == "cancel"}
        before, ended = stack.active(), len(arm.cancelled)
        try:
            stack.up(program, part)
        except Refused as error:
            note(f"refused: {error}")
        for run in arm.cancelled[ended:]:
            assert before[run] in given_up & part, "ended unasked"
    wire.configure()
    for resource in (*stack.jobs.values(), *([stack.guard] if stack.guard.id else [])):
        resource._delete(resource.id, resource.inputs, resource.outputs)
    if stack.guard.id:
        assert stack.active() == {}, "left by a destroy"


def test_a_removed_job_whose_guard_was_left_out_is_refused_with_the_way_out(wire: Wire, arm: FakeArm, log: Log) -> None:
    stack = PartialStack(wire, arm)
    every = {GUARD, *JOBS}
    stack.up(REFUSING, every)
    for name, words in (("a", f"run {stack.jobs['a'].id} is "), ("b", "which cluster it needs is not looked at")):
        with pytest.raises(Refused, match=words) as refused:
            stack.up({}, {name})
        assert "`--target`, `--exclude`" in str(refused.value)
    assert arm.cancelled == []
    stack.up({"a": (0, "cancel")}, every)
    run = stack.jobs["a"].id
    stack.up({}, {"a"})
    assert arm.cancelled == [run]
    assert any(f"run {run} is " in words and "is ended (on_edit: cancel)" in words for words in log.messages("info"))
