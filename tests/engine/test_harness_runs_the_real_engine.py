"""The harness itself: a program run by the real engine, with what every scenario test reads from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.harness import processes_of_session

if TYPE_CHECKING:
    from tests.support.running import Engine, MakeStack

pytestmark = pytest.mark.engine

PROGRAM = "boxes_from_settings"
WAITING = """
import asyncio
import pulumi

class Box(pulumi.ComponentResource):
    def __init__(self, name):
        super().__init__("scenario:index:Box", name)

Box("first")
pulumi.export("never", pulumi.Output.from_input(asyncio.Event().wait()))
"""


def test_a_stack_lives_through_preview_up_and_change(stack: MakeStack) -> None:
    one = stack(PROGRAM).set("boxes", {"red": "wool", "blue": "silk"})

    planned = one.preview().ok()
    assert planned.op("red") == "create"
    assert planned.changes == {"create": 3}  # the stack itself counts
    assert one.resources() == {}

    up = one.up(preview=True).ok()
    assert {step.name for step in up.done} >= {"red", "blue"}
    assert set(one.resources("Box")) == {"red", "blue"}
    assert one.outputs() == {"names": ["blue", "red"], "password": "swordfish"}
    assert Path(one.env["PULUMI_HOME"], "logs").is_file(), "it deploys where it cannot write its debug logs"

    one.set("boxes.green", "flax").set("boxes.red", None)
    changed = one.up().ok()
    assert changed.changes == {"create": 1, "delete": 1}
    assert (changed.op("green"), changed.op("red"), changed.op("blue")) == ("create", "delete", "same")


def test_a_policy_packs_verdict_is_read_and_stops_the_update(stack: MakeStack, tmp_path: Path) -> None:
    one = stack(PROGRAM).set("boxes", {"gold": "bar", "red": "wool"})
    launcher = tmp_path / "analyzer"
    launcher.write_text(
        f"#!{sys.executable} -u\n"  # the SDK prints its port without flushing, and the engine waits for that line
        "import runpy, sys\n"
        f"sys.argv = [sys.argv[0], sys.argv[1], {str(one.folder / 'pack.py')!r}]\n"
        "runpy.run_module('pulumi.policy', run_name='__main__', alter_sys=True)\n"
    )
    launcher.chmod(0o755)

    judged = one.up(policy_packs=[launcher]).failed()
    (verdict,) = judged.violations
    assert (verdict.policy, verdict.level, verdict.pack) == ("no-gold", "mandatory", "test-pack")
    assert verdict.urn.endswith("::gold")
    assert "must not be made" in verdict.message
    assert "gold" not in one.resources()


def test_an_engine_killed_in_the_middle_leaves_a_lock_and_no_process(stack: MakeStack) -> None:
    one = stack(WAITING)
    running = one.start_up()
    running.wait_until_starts("first")
    killed = running.kill()
    assert killed.code == -9
    assert processes_of_session(running.process.pid) == []

    assert "locked" in one.up().failed().output
    one.unlock()
    one.write("__main__.py", WAITING.partition("pulumi.export")[0])
    # Whether the kill came before or after the state was saved is chance; a component is made again either way.
    assert one.up().ok().op("first") in {"create", "same"}
    assert set(one.resources()) == {"first"}


def test_the_programs_refusal_is_one_error_and_shown_to_who_waits_for_what_never_happens(stack: MakeStack) -> None:
    running = stack(PROGRAM).set("boxes", {"red": ""}).start_up()
    with pytest.raises(AssertionError, match="box red is empty"):
        running.wait_until_done("never")
    assert any("box red is empty" in error for error in running.result().failed().errors)


def test_the_engine_under_test_is_recent_and_complete(engine: Engine) -> None:
    assert tuple(map(int, engine.version.split("."))) >= (3, 230, 0)
    assert (engine.folders[0] / "pulumi").is_file()
