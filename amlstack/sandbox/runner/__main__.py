"""``python -m amlstack.sandbox.runner HOME JOB``: runs one job from Preparing to its end."""

from __future__ import annotations

import contextlib
import os
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.images import building
from amlstack.images.environments import line as line_of
from amlstack.processes import adopt_orphans
from amlstack.sandbox import contract, processes
from amlstack.sandbox.files import environments
from amlstack.sandbox.runner import finish, fixed_ports, prepare, usage
from amlstack.sandbox.runner.machines import nodes_of
from amlstack.sandbox.runner.nodes import Cancel, CanceledError, NodeAgents, RunOutcome
from amlstack.sandbox.store import folders
from amlstack.sandbox.store.folders import PRIVATE, USUAL, umask
from amlstack.sandbox.store.store import JobError, JobRow, Store, job_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


def claim(store: Store, key: str) -> JobRow | None:
    """Makes this process the job's one runner; None when another one lives, or there is nothing to run."""
    with store.transaction():
        job = store.jobs.get(key)
        if job is None or not job.active:
            return None
        if job.runner_pid != os.getpid() and processes.alive(job.runner_pid, job.runner_started):
            return None
        store.jobs.set_runner(key, os.getpid(), processes.started(os.getpid()))
    return job


def note(line: str) -> None:
    """One line of the runner's own log (stdout goes there)."""
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stdout.flush()


def run(store: Store, job: JobRow, cancel: Cancel, held: contextlib.ExitStack) -> None:
    """Runs a claimed job to its end, whatever that is; ``held`` keeps what no other job may have meanwhile."""
    ending = finish.Ending(store, job.id)
    outcome = RunOutcome()
    nodes = nodes_of(store.home, job_folder(store.home, job.id))
    try:
        with cancel.interrupts():
            _check_wanted(store, job)
            store.jobs.move(job.id, "Preparing")
            ending.spec = wanted = contract.read(job.properties, store.scales.of(job.id))
            if environments.is_given(store, job):
                _progress(store, job, "not run: this machine has its outputs, and the steps after it read them there")
                return
            with umask(USUAL):  # the user's cache, which may serve several
                standin = prepare.image(store, job, wanted, contained=bool(nodes.container))
                built = building.build(standin, lambda line: _progress(store, job, line))
            note(f"environment: {standin.summary}; it differs from the image: {standin.differs}")
            if line := line_of(standin):
                note(f"stand-in: {line}")
            prepare.write_stand_in(store, job, wanted, standin)
            ending.stage = stage = prepare.stage(store, job, wanted, built, note, nodes=nodes)
            code = stage.folder / "nodes" / "0" / "wd"
            ports = fixed_ports.ports(wanted.command, wanted.distribution, wanted.variables, code)
            fixed_ports.hold(
                ports, f"the job {job.name} ({store.home})", lambda line: _progress(store, job, line), held
            )
        store.jobs.move(job.id, "Running")
        environ = os.environ | {processes.MARK: processes.mark(store.home, job.id)}
        sampled, needed = usage.Usage(stage.folder / usage.FILE), contract.needed(wanted)
        agents = NodeAgents(
            stage.plans, cancel, wanted.timeout, environ, note, machines=nodes, usage=sampled, needed=needed
        )
        outcome = agents.run()
        store.jobs.move(job.id, "Finalizing")
        ending.collect(outcome)
    except CanceledError:
        outcome.reason = "canceled"
    except (contract.RefusedError, building.ImageBuildError) as error:
        ending.error = JobError(getattr(error, "code", "ImageBuildFailure"), str(error))
    except Exception:  # noqa: BLE001 - whatever happens, the job must reach an end that names it
        traceback.print_exc(file=sys.stdout)
        reason = traceback.format_exc().strip().splitlines()[-1]
        log = job_folder(store.home, job.id) / "runner.log"
        ending.error = JobError("SandboxError", f"The sandbox's runner failed: {reason}. Its log: {log}")
    finally:
        with _quietly():
            processes.wipe()
            nodes.end()
            processes.end_marked(store.home, job.id)
        ending.write(outcome)
        folders.remove_temporary(store.home, job.id)


def main(home: str, key: str) -> int:
    """Runs one job; 0 when it reached an end, 3 when it was not ours to run."""
    os.umask(PRIVATE)
    adopt_orphans()
    cancel = Cancel()
    store = Store(Path(home))
    try:
        job = claim(store, key)
        if job is None:
            note(f"{key}: nothing to run, or another runner has it")
            return 3
        with contextlib.ExitStack() as held:
            run(store, job, cancel, held)
    finally:
        store.close()
    return 0


def _check_wanted(store: Store, job: JobRow) -> None:
    if store.jobs[job.id].cancel_requested:
        raise CanceledError


def _progress(store: Store, job: JobRow, line: str) -> None:
    note(line)
    store.history.record("job", job.id, "Preparing", line)


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    try:
        yield
    except OSError:
        traceback.print_exc(file=sys.stdout)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
