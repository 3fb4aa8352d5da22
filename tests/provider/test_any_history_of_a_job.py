"""Any history of a job, against a small model of what was asked for.

At most one active run unless kept, none started twice or unasked, none ended unasked, none left over after a destroy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, note, settings
from hypothesis import strategies as st

from amlstack.run_identity import job_id
from tests.support.examples import examples
from tests.support.provider.engine_player import Fault, Player
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

CLUSTER = f"{WORKSPACE}/computes/rdma"
BYSTANDERS = {
    "mnist-00000000aa": {"amlstack.owner": "train/prod", "amlstack.name": "mnist"},
    "mnist-00000000bb": {"amlstack.owner": "train/dev", "amlstack.stack": "elsewhere", "amlstack.name": "mnist"},
    "mnist-00000000cc": {
        "amlstack.owner": "train/dev",
        "amlstack.stack": "s1",
        "amlstack.name": "mnist",
        "amlstack.resource": "amlstack:jobs:Job::b",
    },
    "mnist-00000000dd": {},
}
"""Runs of another stack, of an equally named stack, of another resource, of nobody: never touched."""
ENDED = ("Completed", "Failed", "Canceled")


def program(what: int, on_edit: str) -> dict[str, Any]:
    """One of four declarations; the last two are two `rerun` words of one."""
    declaration = {"lr": min(what, 2)}
    rerun = "again" if what == 3 else ""
    return job_inputs(declaration=declaration, rerun=rerun, onEdit=on_edit, stackId="s1", placedOn=[WORKSPACE, CLUSTER])


def run_of(inputs: dict[str, Any]) -> str:
    return job_id(inputs["name"], inputs["declaration"], inputs["codeHash"], inputs["rerun"], "train/dev")


@dataclass
class Model:
    """The requests and promises so far.

    Attributes:
        promised: Runs that were let go on, and that no later deployment has declared again.
        dirty: A deployment was killed, and none has looked for what it left since.
    """

    player: Player
    arm: FakeArm
    promised: set[str] = field(default_factory=set)
    dirty: bool = False

    # -- what there is -----------------------------------------------------------------------------------------------

    def ours(self) -> dict[str, dict[str, Any]]:
        names = {key.rsplit("/", 1)[-1]: job["properties"] for key, job in self.arm.jobs.items()}
        return {name: found for name, found in names.items() if name not in BYSTANDERS}

    def active(self) -> set[str]:
        return {name for name, found in self.ours().items() if found["status"] not in ENDED}

    def marked(self) -> set[str]:
        return {name for name in self.active() if self.ours()[name].get("tags", {}).get("amlstack.keptFor")}

    @property
    def current(self) -> str:
        return self.player.live.id if self.player.live else ""

    # -- what is done ------------------------------------------------------------------------------------------------

    def up(self, what: int, on_edit: str, fault: Fault | None, *, replace_it: bool = False) -> None:
        inputs = program(what, on_edit)
        wanted, live, active, marked = run_of(inputs), self.player.live, self.active(), self.marked()
        looks = live is None or replace_it or live.pending_replacement or wanted != live.id
        unmarked_others = active - marked - {wanted}
        asks_current = {self.current} & active - {wanted} if not replace_it else set()
        refused = on_edit == "refuse" and looks and bool(unmarked_others | asks_current)
        begun, cancelled, tags = len(self.arm.begun), len(self.arm.cancelled), self.marks()
        try:
            foretold = self.player.preview(inputs, replace_it=replace_it)
        except Refused as error:
            note(f"refused at preview: {error}")
            assert refused, "only an active run, and only under refuse"
            foretold = ""
        assert (len(self.arm.begun), len(self.arm.cancelled), self.marks()) == (begun, cancelled, tags), "a preview"
        if not foretold:
            assert refused
            with pytest.raises(Refused):
                self.player.up(inputs, replace_it=replace_it)
            assert (len(self.arm.begun), len(self.arm.cancelled), self.marks()) == (begun, cancelled, tags)
            return
        assert not refused
        self.promised.discard(wanted)
        may_end = set()
        if on_edit == "cancel":
            may_end = (active - self.promised - {wanted}) | ({self.current} - {wanted})
        done = self.player.up(inputs, replace_it=replace_it, fault=fault)
        note(f"{foretold} → {done}")
        assert done in (foretold, "killed")
        assert set(self.arm.cancelled[cancelled:]) <= may_end, "ended unasked"
        assert set(self.arm.begun[begun:]) <= ({wanted} if looks else set()), "started unasked"
        self._settled(done, looked=looks)
        if done != "killed":
            assert self.current == wanted
            assert self.player.pending == []

    def remove(self, fault: Fault | None, *, destroy: bool) -> None:
        live, begun = self.player.live, len(self.arm.begun)
        # The engine forgets a resource that is pending replacement without asking the provider to delete it.
        asked = self.player.pending or (live is not None and not live.pending_replacement)
        active, cancelled = self.active(), len(self.arm.cancelled)
        try:
            done = self.player.destroy(fault) if destroy else self.player.up(None, fault=fault)
        except Refused as error:
            note(f"refused: {error}")
            assert not destroy, "a whole stack that is destroyed is not refused"
            assert active, "only an active run"
            assert len(self.arm.cancelled) == cancelled, "ended unasked"
            return
        assert len(self.arm.begun) == begun
        self._settled(done, looked=False)
        if done != "killed":
            assert (self.player.live, self.player.pending) == (None, [])
            if asked:  # what the state does not know is the guard's to find
                assert self.active() == set(), "left over"
                self.dirty = False

    def replace_cluster(self) -> None:
        live = self.player.live
        if live is None:
            return
        recorded, active, cancelled = live.inputs["onEdit"], self.active(), len(self.arm.cancelled)
        begun = len(self.arm.begun)
        others = active - {self.current}

        def goes() -> None:
            assert self.active() == set(), "the cluster was taken from a run"

        again = {name: value for name, value in live.inputs.items() if name != "body"} | {
            "body": program(0, "keep")["body"]
        }
        try:
            self.player.replace_cluster(again, goes)
        except Refused as error:
            note(f"refused: {error}")
            assert others or (active and recorded != "cancel"), "only an active run holds a cluster"
            assert (len(self.arm.begun), len(self.arm.cancelled)) == (begun, cancelled)
            return
        assert not others
        assert not active or recorded == "cancel"
        assert set(self.arm.cancelled[cancelled:]) <= active
        # A record that was deleted outside is made again where the resource was replaced; nothing else begins.
        assert set(self.arm.begun[begun:]) <= {self.current}

    def outside(self, what: str, index: int) -> None:
        names = sorted(self.active() if what != "delete" else self.ours())
        if not names:
            return
        name = names[index % len(names)]
        note(f"{what} {name}")
        if what == "delete":
            del self.arm.jobs[f"{WORKSPACE}/jobs/{name}".lower()]
            self.promised.discard(name)
        else:
            self.arm.set_status(name, {"cancel": "Canceled", "complete": "Completed", "fail": "Failed"}[what])

    def marks(self) -> dict[str, Any]:
        return {name: dict(found.get("tags", {})) for name, found in self.ours().items()}

    def _settled(self, done: str, *, looked: bool) -> None:
        self.promised = (self.promised | self.marked()) & set(self.ours())
        if done == "killed":
            self.dirty = True
        elif looked:
            self.dirty = False
        if not self.dirty:
            assert self.active() - self.marked() <= {self.current}, "a second active run"
        for name in BYSTANDERS:
            assert self.arm.job(name)["status"] == "Running", "a run of somebody else"


faults = st.one_of(
    st.none(),
    st.builds(Fault, st.just("write"), st.integers(0, 3), st.booleans()),
    st.builds(Fault, st.sampled_from(["unsaved", "saved"]), st.integers(0, 2)),
)
modes = st.sampled_from(["refuse", "cancel", "keep", "keep"])
ups = st.tuples(st.just("up"), st.integers(0, 3), modes, faults, st.booleans())
steps = st.one_of(
    ups,
    ups,
    ups,
    st.tuples(st.just("outside"), st.sampled_from(["complete", "fail", "cancel", "delete"]), st.integers(0, 5)),
    st.tuples(st.sampled_from(["destroy", "remove"]), faults),
    st.tuples(st.sampled_from(["refresh", "cluster"])),
)
KEEP, LATE = "keep", Fault("write", 1, late=True)


@example([("up", 0, KEEP, None, False), ("up", 1, KEEP, None, False), ("up", 0, KEEP, None, False), ("destroy", None)])
@example([("up", 0, KEEP, None, False), ("up", 1, KEEP, LATE, False), ("up", 0, KEEP, None, False), ("destroy", None)])
@example([("up", 0, KEEP, None, False), ("up", 0, KEEP, Fault("saved", 0), True), ("up", 0, KEEP, None, False)])
@example([("up", 0, "cancel", None, False), ("cluster",), ("up", 1, "refuse", None, False)])
@example([("up", 1, "refuse", None, False), ("up", 0, "cancel", LATE, False)])
@example(
    [
        ("up", 0, "refuse", None, False),
        ("outside", "complete", 0),
        ("up", 1, "cancel", Fault("unsaved", 1), False),
        ("cluster",),
    ]
)
@settings(
    max_examples=examples(0.15), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=st.lists(steps, min_size=3, max_size=14))
def test_any_history_runs_what_was_asked_for_and_ends_what_was_asked_for(
    wire: Wire, arm: FakeArm, history: list[Any]
) -> None:
    for record in (arm.jobs, arm.asked, arm.begun, arm.cancelled, arm.statuses):
        record.clear()
    arm.page = 100
    for name, owner in BYSTANDERS.items():
        properties = {"status": "Running", "properties": owner, "computeId": CLUSTER}
        arm.jobs[f"{WORKSPACE}/jobs/{name}".lower()] = {"properties": properties, "sent": {}}
    wire.restart()
    model = Model(Player(wire, arm), arm)
    for step in history:
        note(str(step))
        match step:
            case ("up", what, on_edit, fault, replace_it):
                model.up(what, on_edit, fault, replace_it=replace_it)
            case ("outside", what, index):
                model.outside(what, index)
            case ("destroy" | "remove" as verb, fault):
                model.remove(fault, destroy=verb == "destroy")
            case ("refresh",):
                model.player.refresh()
            case _:
                model.replace_cluster()
    model.remove(None, destroy=True)
