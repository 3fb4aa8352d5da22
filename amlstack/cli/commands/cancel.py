"""``amlstack cancel``: asks for the end of a run, and waits for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from amlstack.cli.progress import Progress
    from amlstack.provider.arm import ArmClient
    from amlstack.sandbox.store.store import JobRow

app = typer.Typer(add_completion=False)

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
"""Seconds between two looks at a run that is to end; each pause is half as long again as the one before."""

Job = Annotated[
    str, typer.Argument(help="Name of a run, or its beginning as in the job's file; of a step PARENT/STEP.")
]


@app.command()
def cancel(job: Job) -> None:
    """Cancel a run of the sandbox and wait for its end.

    Exit status: 0 when the run is canceled, 1 when it ended in another way, 2 when there is no such run.

    Examples:
        amlstack cancel train

        amlstack cancel ddp-torchrun-3f97dd4a3c
    """
    from amlstack.cli.progress import Progress
    from amlstack.cli.sandbox_arm import connect
    from amlstack.provider.arm import ArmError
    from amlstack.sandbox.server import daemon

    row = _meant(job)
    progress = Progress()
    if not row.active:
        (progress.done if row.status == "Canceled" else progress.fail)(f"job {row.name} has ended before: {row.status}")
        raise typer.Exit(0 if row.status == "Canceled" else 1)
    try:
        status = ended(connect(daemon.up()), row.workspace, row.name, progress)
    except (daemon.SandboxError, ArmError) as error:
        progress.fail(str(error))
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        progress.note(f"job {row.name} was asked to end and will; this command does not wait for it any more")
        raise
    if status == "Canceled":
        progress.done(f"job {row.name} is canceled; its logs stay")
        raise typer.Exit(0)
    progress.fail(f"job {row.name} ended before it could be canceled: {status}")
    raise typer.Exit(1)


def ended(arm: ArmClient, workspace: str, run: str, progress: Progress) -> str:
    """Cancels a run of any workspace and waits until it has ended.

    Args:
        arm: A client of the workspace's resource manager.
        workspace: The workspace's ARM id.
        run: The run's name.
        progress: Where each new status is printed.

    Returns:
        The run's last status; ``gone`` when its record vanished meanwhile.

    Raises:
        ArmError: The service refused, or does not answer.
    """
    from amlstack.cli.rehearsal.follow import TERMINAL
    from amlstack.provider.runs import Runs

    runs, seen, pause = Runs(arm), "", FIRST_PAUSE
    progress.step(f"cancelling job {run}")
    runs.cancel(workspace, run)
    while True:
        record = runs.get(workspace, run)
        status = "gone" if record is None else record.status
        if record is None or status in TERMINAL:
            return status
        if status != seen:
            seen = status
            progress.step(f"job is {status}")
        time.sleep(pause)
        pause = min(1.5 * pause, LONGEST_PAUSE)


def _meant(wanted: str) -> JobRow:
    """The active run that is meant, else the latest one of that name that has ended."""
    import contextlib

    from amlstack.base import paths
    from amlstack.sandbox.store import job_names
    from amlstack.sandbox.store.database import StateError
    from amlstack.sandbox.store.store import Store, folder

    if not (folder(paths.home()) / "state.db").exists():
        _fail("There is no sandbox here, and no run (amlstack sandbox up).")
    try:
        with contextlib.closing(Store(paths.home())) as store:
            active = store.jobs.list(active=True)
            if job_names.matches(store, wanted, active):
                return job_names.find(store, wanted, active, what="active")
            if past := job_names.matches(store, wanted, store.jobs.list(active=False)):
                return past[-1]
            return job_names.find(store, wanted, store.jobs.list())
    except (job_names.UnknownJobError, StateError) as error:
        _fail(str(error))


def _fail(message: str) -> NoReturn:
    typer.echo(message, err=True)
    raise typer.Exit(2)
