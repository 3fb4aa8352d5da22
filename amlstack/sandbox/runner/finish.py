"""The end of a job: outputs collected, the rank that broke it named, status and report written."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.contract import torchrun
from amlstack.sandbox.files import storage
from amlstack.sandbox.runner import inputs, prepare, report
from amlstack.sandbox.runner.mpi import mpirun
from amlstack.sandbox.scheduling import eviction
from amlstack.sandbox.store.store import Exit, JobError, Store, cluster_of, job_folder

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.contract.spec import Spec
    from amlstack.sandbox.runner.nodes import RankEnd, RunOutcome
    from amlstack.sandbox.runner.prepare import Stage

_ARTIFACTS = "artifacts"


@dataclass(slots=True)
class Ending:
    """What is known of a job when it ends, filled in as it goes.

    Attributes:
        store, job: Where the end is written.
        spec: What it asked for, once read.
        stage: What was prepared, once it was.
        error: Why it failed, when that was before or outside of its processes.
        workers: Ranks that torchrun started.
        failed: Exit codes of those that failed, by rank.
        preempted: The node that was taken away.
    """

    store: Store
    job: str
    spec: Spec | None = None
    stage: Stage | None = None
    error: JobError | None = None
    workers: tuple[torchrun.Worker, ...] = ()
    failed: dict[int, int] = field(default_factory=dict)
    preempted: int | None = None

    def collect(self, outcome: RunOutcome) -> None:
        """Gathers logs and outputs from the nodes that are left; a lost node takes its ``outputs/`` with it.

        Of a pre-empted job only mounted outputs stay.
        """
        stage = self.stage
        if stage is None:
            return
        logs = stage.folder / prepare.LOGS
        for place in stage.places:
            kept = prepare.torchrun_logs(stage.folder, place.rank)
            text = report.tail(logs / place.log, torchrun.TABLE_BYTES)
            self.workers += torchrun.collect(kept, place.node, logs, text)
        with contextlib.suppress(OSError):  # holds earlier attempts, or was never made
            (logs / "torchrun").rmdir()
        self.preempted = eviction.evicted(stage.folder, len(stage.plans))
        for node in range(len(stage.plans)):
            if node == outcome.lost or self.preempted is not None:
                continue
            for name in ("outputs", "logs"):
                storage.merge(stage.folder / "nodes" / str(node) / "wd" / name, stage.folder / name)
        self._outputs(stage, outcome)

    def _outputs(self, stage: Stage, outcome: RunOutcome) -> None:
        """What the named outputs hold becomes blobs: a mount's always, an upload's from the nodes that are left."""
        job = self.store.jobs[self.job]
        keeper = storage.Storage(self.store, job.workspace)
        for folder, place in stage.mounts.values():
            keeper.publish(folder, place)
        if (default := _default_artifacts(self.spec, job.name)) in stage.mounts and self.preempted is None:
            place = stage.mounts[default][1]
            for name in ("outputs", "logs", prepare.LOGS):
                keeper.publish(stage.folder / name, replace(place, path=f"{place.path}/{name}"))
        for upload in stage.uploads:
            for node, source in enumerate(upload.sources):
                if node != outcome.lost and self.preempted is None:
                    keeper.publish(source, upload.place)

    def cause(self, outcome: RunOutcome) -> str:
        """The sentence that names the rank which broke the job first."""
        if self.stage is None or self.spec is None:  # pragma: no cover - it ran
            return "Execution failed."
        ends = [end for ended in outcome.ends if ended.code for end in self._failed(ended)]
        found = report.first(ends)
        if found is None:
            return "Execution failed." if not outcome.launcher else self._mpirun(outcome.launcher)
        return report.sentence(found, len(self.workers) or self.spec.ranks)

    def _mpirun(self, code: int) -> str:
        """What mpirun reason when no rank of its own failed."""
        log = f"{prepare.LOGS}/{mpirun.LOG}"
        words = report.tail(job_folder(self.store.home, self.job) / log)
        reason = next((line.strip() for line in words.splitlines() if line.strip() and not line.startswith("-")), "")
        return f"Execution failed: mpirun ended with {code}: {reason[:300]} Its log: {log}"

    def write(self, outcome: RunOutcome) -> None:
        """Takes the job to its end and writes the report."""
        status, error = self._status(outcome)
        exits = [
            Exit(ended.node, ended.rank, ended.code, f"{prepare.LOGS}/std_log_process_{ended.rank:02d}.txt")
            for ended in sorted(outcome.ends, key=lambda ended: ended.rank)
        ]
        folder = job_folder(self.store.home, self.job)
        folder.mkdir(parents=True, exist_ok=True)
        rest = self._report(outcome, folder)
        with self.store.transaction():
            self.store.jobs.move(self.job, status, error=error, exits=exits)
            row = self.store.jobs.get(self.job)
            if row is not None:
                report.write(folder, row, self.spec, **rest)
                if status == "Completed":
                    inputs.register(self.store, row)
            self.store.jobs.set_runner(self.job, None, None)
            self.store.nodes.release(self.job)
            cluster = cluster_of(row) if row is not None else None
            if row is not None and cluster is not None and self.preempted is not None:
                self.store.nodes.drop(cluster, row.nodes[self.preempted])

    def _status(self, outcome: RunOutcome) -> tuple[str, JobError | None]:
        if self.error is not None:
            return "Failed", self.error
        if outcome.reason == "canceled":
            return "Canceled", None
        if outcome.reason == "timeout" and self.spec is not None:
            message = (
                f"The job ran longer than its limit of {self.spec.timeout:g} s (limits.timeout) and was cancelled."
            )
            return "Canceled", JobError("JobTimeout", message)
        if self.preempted is not None:
            message = (
                f"Node {self.preempted} was pre-empted while the job ran. Its outputs/ are gone, mounted outputs are "
                "kept. Start the job again; from a checkpoint in a mounted output it can go on."
            )
            return "Failed", JobError("NodePreempted", message)
        if outcome.reason == "lost":
            lost = "A node" if outcome.lost is None else f"Node {outcome.lost}"
            return "Failed", JobError("NodeLost", f"{lost} was lost while the job ran; its outputs/ are gone.")
        if outcome.reason == "failed":
            return "Failed", JobError("UserError", self.cause(outcome))
        return "Completed", None

    def _failed(self, ended: RankEnd) -> list[report.End]:
        """A failed process, or the ranks below it that torchrun calls failed."""
        if self.stage is None or ended.code is None:
            return []
        place = self.stage.places[ended.rank]
        log = self.stage.folder / prepare.LOGS / place.log
        failures = torchrun.failures(report.tail(log, torchrun.TABLE_BYTES))
        by_rank = {worker.rank: worker for worker in self.workers}
        found = []
        for one in failures:
            self.failed[one.rank] = one.code
            worker = by_rank.get(one.rank)
            file = worker.stderr if worker is not None and worker.stderr.is_file() else log
            times = [path.stat().st_mtime for path in _existing(worker)] or [ended.ended or 0.0]
            name = f"{prepare.LOGS}/{file.name}"
            words = report.tail(file) if worker is not None else ""
            found.append(report.End(one.rank, ended.node, one.local_rank, one.code, max(times), name, words))
        if found:
            return found
        words = report.tail(log)
        name = f"{prepare.LOGS}/{place.log}"
        end = report.End(
            ended.rank, ended.node, place.local_rank, ended.code, ended.ended or 0.0, name, words, ended.stopped
        )
        return [end]

    def _report(self, outcome: RunOutcome, folder: Path) -> dict[str, Any]:
        if self.stage is None or self.spec is None:
            return {"ranks": [], "metrics": None}
        entries = report.ranks(self.stage.places, outcome.ends, self.workers, prepare.LOGS, self.failed)
        outputs = sorted(str(path.relative_to(folder)) for path in (folder / "outputs").rglob("*") if path.is_file())
        return {
            "world_size": len(self.workers) or self.spec.ranks,
            "reason": outcome.reason,
            "ranks": entries,
            "outputs": outputs,
            "named_outputs": self._named(self.stage),
            "metrics": report.metrics(folder),
            "replaced": {name: list(pair) for name, pair in self.stage.replaced.items()},
            "environment": self.stage.image.name,
        }

    @staticmethod
    def _named(stage: Stage) -> dict[str, list[str]]:
        """The folders of the named outputs: of a mount the one that all nodes share, of an upload one of each node."""
        mounts = {name: [str(folder)] for name, (folder, _) in stage.mounts.items()}
        return mounts | {upload.name: [str(source) for source in upload.sources] for upload in stage.uploads}


def _default_artifacts(spec: Spec | None, job: str) -> str:
    """The output of a pipeline's step that is what the run keeps by itself (its ``outputs/`` and logs); else empty.

    The service has it without the step writing there: it is called ``artifacts`` and has no path of its own
    (azureml-examples, cli/jobs/basics/hello-pipeline-default-artifacts.yml).
    """
    port = spec.outputs.get(_ARTIFACTS) if spec is not None else None
    given = port is not None and (port.uri or "").endswith(f"/paths/azureml/{job}/{_ARTIFACTS}/")
    return _ARTIFACTS if given else ""


def _existing(worker: torchrun.Worker | None) -> list[Path]:
    return [] if worker is None else [path for path in (worker.stdout, worker.stderr) if path.is_file()]
