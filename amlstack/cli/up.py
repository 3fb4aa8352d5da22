"""``amlstack up``: what ``make up`` calls once the environment is there."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

from amlstack import home as homes
from amlstack import paths
from amlstack.cli import summary
from amlstack.cli.follow import TERMINAL, follow, with_reason
from amlstack.cli.progress import Progress
from amlstack.cli.stack import explain
from amlstack.sandbox.store import job_folder

GONE = "gone"
GOOD = frozenset({"Completed", GONE})
"""A record that vanished is no failure: the run was there, and is not run again by itself."""

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.engine import Outcome
    from amlstack.sandbox.daemon import Endpoint


def up() -> int:
    """Bring the sandbox stack up and follow its jobs to their end.

    Returns:
        0 when the stack stands and no job failed, 1 otherwise.
    """
    from amlstack import engine as engines
    from amlstack.provider.arm import ArmError
    from amlstack.sandbox import daemon

    progress = Progress()
    try:
        homes.check(paths.home())
        progress.step("Pulumi engine")
        engine = engines.find()
        progress.done(f"Pulumi {engine.version}")
        progress.step("sandbox: Azure on this machine")
        endpoint = daemon.up()
        progress.done(f"sandbox at {endpoint.url}")
        env = engines.environ(engine, endpoint.environ())
        if removed := engines.clear_stale_lock():
            progress.note(f"removed {removed} lock{'s' if removed > 1 else ''} of an engine that was killed")
        _select(env)
        outcome = engines.run(
            [
                "up",
                "--yes",
                "--non-interactive",
                "--stack",
                engines.STACK,
                "--policy-pack",
                str(engine.pack),
                *_rules(),
            ],
            env,
            on_event=progress.event,
        )
    except (engines.EngineError, daemon.SandboxError, homes.ForeignHomeError) as error:
        progress.fail(str(error))
        return 1
    if outcome.code:
        explain.failures(progress, outcome)
        progress.note("`make up` again goes on from here")
        return 1
    progress.done(_changes(outcome))
    outputs = _outputs(env)
    try:
        records = _follow_jobs(progress, outcome, outputs, endpoint)
    except ArmError as error:
        progress.fail(f"the sandbox does not answer any more: {error}")
        progress.note("jobs go on without it; `make up` again starts it and follows them")
        return 1
    summary.show(progress.console, outcome, outputs, records)
    return 0 if all(record["status"] in GOOD for record in records.values()) else 1


def _rules() -> tuple[str, ...]:
    """The stack's configuration of the rules, for the pack; what is wrong with it, the program tells."""
    from amlstack.engine import STACK
    from infra.settings import read_file

    settings = read_file(paths.PROJECT / f"Pulumi.{STACK}.yaml").partial
    file = paths.PROJECT / settings.policies if settings and settings.policies else None
    return ("--policy-pack-config", str(file)) if file and file.is_file() else ()


def _select(env: Mapping[str, str]) -> None:
    from amlstack.engine import STACK, EngineError

    done = subprocess.run(
        ["pulumi", "stack", "select", "--create", "--non-interactive", STACK],
        cwd=paths.PROJECT, env=dict(env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise EngineError(f"the stack could not be selected: {done.stderr.strip()}")


def _outputs(env: Mapping[str, str]) -> dict[str, Any]:
    import json

    from amlstack.engine import STACK

    done = subprocess.run(
        ["pulumi", "stack", "output", "--json", "--stack", STACK],
        cwd=paths.PROJECT, env=dict(env), capture_output=True, text=True, check=True,
    )  # fmt: skip
    outputs: dict[str, Any] = json.loads(done.stdout)
    return outputs


def _changes(outcome: Outcome) -> str:
    if not outcome.changed:
        return "nothing to change: everything is as declared"
    counts: dict[str, int] = {}
    for op in outcome.changed.values():
        counts[op] = counts.get(op, 0) + 1
    return "stack is up: " + ", ".join(f"{number} {op}" for op, number in sorted(counts.items()))


def _follow_jobs(
    progress: Progress, outcome: Outcome, outputs: Mapping[str, Any], endpoint: Endpoint
) -> dict[str, Mapping[str, Any]]:
    from amlstack.cli.rehearse_children import Family
    from amlstack.provider.arm import ArmClient

    # This process becomes a client of the sandbox; everything of the user's own cloud is out of its sight.
    os.environ.update(endpoint.environ())
    arm = ArmClient(endpoint.url)
    records: dict[str, Mapping[str, Any]] = {}
    for name, job in outputs.get("jobs", {}).items():
        job_id, run = job["jobId"], job["jobId"].rsplit("/", 1)[-1]
        answer = arm.get(job_id, allow=(404,))
        if answer.status == 404:
            progress.note(f"job {run}: its record is gone; it is not run again by itself: set `rerun` to another word")
            records[name] = {"status": GONE}
            continue
        record = answer.body["properties"]
        if record["status"] in TERMINAL and not _touched(outcome, name):
            progress.done(f"job {run} has run before: {record['status']}")
            records[name] = with_reason(arm, job_id, record)
            continue
        if "parts" in job:
            progress.step(f"job {run}: {', '.join(part.removeprefix('jobs.') for part in job['parts'])}")
            records[name] = Family(arm, job_id, endpoint.home, progress, quiet=True).follow()
            continue
        progress.step(f"job {run}: {job['worldSize']} ranks on {job['nodes']} nodes")
        records[name] = follow(
            arm,
            job_id,
            job_folder(endpoint.home, run),
            status=lambda status: progress.step(f"job is {status}"),
            line=lambda log, text: progress.note(f"{log}: {text}" if log == "runner" else text),
            only_first=True,
        )
    return records


def _touched(outcome: Outcome, name: str) -> bool:
    return any(urn.endswith(f"amlstack:jobs:Job::{name}") for urn in outcome.changed)
