"""The end of a job: outputs, exit codes, the rank that failed first, and its report."""

from __future__ import annotations

import contextlib
import json
import re
import signal
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.sandbox import contract, scheduling
from amlstack.sandbox.files import storage
from amlstack.sandbox.runner import prepare
from amlstack.sandbox.store.jobs import write_report
from amlstack.sandbox.store.store import Exit, JobError, Store, cluster_of, job_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from amlstack.sandbox.contract import RankPlace, Spec, Worker
    from amlstack.sandbox.runner.nodes import RankEnd, RunOutcome
    from amlstack.sandbox.runner.prepare import Stage

_VICTIM = re.compile(
    r"connection (was )?(closed|reset) by (remote )?peer|connection reset|broken pipe|socket (was )?closed"
    r"|horovod has been shut down|failed to recv|communicator was aborted|remote process exited"
    r"|DistNetworkError|DistStoreError|SignalException|received \d+ death signal",
    re.IGNORECASE,
)
_RAISED = re.compile(
    r"^(?:\[rank ?\d+\]:\s?)*((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Warning)\b.*)$", re.MULTILINE
)
TAIL = 16 * 1024


@dataclass(frozen=True, slots=True)
class End:
    """The end of one failed rank.

    Attributes:
        rank, node, local_rank: Where it stood.
        code: Exit code; negative for a signal.
        at: When, in seconds since the epoch: its exit, or the last line it wrote.
        log: Its log, relative to the job's folder.
        words: The end of that log.
        stopped: It ended after it was asked to stop.
    """

    rank: int
    node: int
    local_rank: int
    code: int
    at: float
    log: str
    words: str
    stopped: bool = False

    @property
    def victim(self) -> bool:
        """Its last words blame a peer."""
        return bool(_VICTIM.search(self.words))


def first(ends: Iterable[End]) -> End | None:
    """The first true cause among failed ranks: no victim, not stopped, the earliest."""
    return min(ends, key=lambda end: (end.stopped, end.victim, end.at, end.rank), default=None)


def sentence(end: End, ranks: int) -> str:
    """One sentence for the job's error: rank, node, code or signal, the exception's line, the log."""
    how = f"exited with code {end.code}" if end.code >= 0 else f"was killed by {signal_name(-end.code)}"
    raised = _RAISED.findall(end.words)
    reason = f": {raised[-1].strip()[:300]}" if raised and end.code > 0 else ""
    place = f"node {end.node}, local rank {end.local_rank}"
    return f"Execution failed: rank {end.rank} of {ranks} ({place}) {how}{reason}. Its log: {end.log}"


def tail(path: Path, size: int = TAIL) -> str:
    """The last bytes of a text file; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - size))
            return file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""


def signal_name(number: int) -> str:
    """``SIGKILL``, or the number of a signal without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


METRICS = "metrics.json"
"""A training script may write its last metrics into this file of ``outputs/``; they are shown with the run."""


def ranks(
    places: Sequence[RankPlace], ends: Sequence[RankEnd], workers: Sequence[Worker], logs: str, failed: dict[int, int]
) -> list[dict[str, Any]]:
    """One entry per training process: those that torchrun started, else those that the service started.

    Args:
        places: The service's processes.
        ends: Their ends.
        workers: The ranks that torchrun started.
        logs: Name of the log folder.
        failed: Exit codes of the workers that failed, by rank.
    """
    by_rank = {end.rank: end for end in ends}
    if workers:
        entries = []
        for worker in workers:
            parent = by_rank.get(_parent(places, worker.node))
            code = failed.get(worker.rank, 0 if parent is not None and parent.code == 0 else None)
            end = {"rank": worker.rank, "node": worker.node, "local_rank": worker.local_rank, "code": code}
            files = [f"{logs}/{path.name}" for path in (worker.stdout, worker.stderr)]
            entries.append({**end, **_times(parent), "logs": files})
        return entries
    entries = []
    for place in places:
        ended = by_rank.get(place.rank)
        end = {"rank": place.rank, "node": place.node, "local_rank": place.local_rank}
        code = None if ended is None else ended.code
        entries.append({**end, "code": code, **_times(ended), "logs": [f"{logs}/{place.log}"]})
    return entries


def metrics(folder: Path) -> Any:
    """The content of ``outputs/metrics.json``; None when there is none or it is no JSON."""
    try:
        return json.loads((folder / "outputs" / METRICS).read_text())
    except (OSError, ValueError):
        return None


def _parent(places: Sequence[RankPlace], node: int) -> int:
    return next(place.rank for place in places if place.node == node)


def _times(ended: RankEnd | None) -> dict[str, float | None]:
    if ended is None or ended.started is None or ended.ended is None:
        return {"started": None, "ended": None, "seconds": None}
    return {"started": ended.started, "ended": ended.ended, "seconds": round(ended.ended - ended.started, 3)}


_ARTIFACTS = "artifacts"


@dataclass(slots=True)
class Ending:
    """The facts of a job at its end, filled in as it goes.

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
    workers: tuple[contract.Worker, ...] = ()
    failed: dict[int, int] = field(default_factory=dict)
    preempted: int | None = None

    def collect(self, outcome: RunOutcome) -> None:
        """Gathers logs and outputs from the nodes that are left; a lost node takes its ``outputs/`` with it.

        Of a pre-empted job only mounted outputs stay.
        """
        stage = self.stage
        if stage is None:
            return
        logs = stage.folder / contract.LOGS
        for place in stage.places:
            kept = contract.torchrun_logs(stage.folder, place.rank)
            text = tail(logs / place.log, contract.TABLE_BYTES)
            self.workers += contract.collect(kept, place.node, logs, text)
        with contextlib.suppress(OSError):  # holds earlier attempts, or was never made
            (logs / "torchrun").rmdir()
        self.preempted = scheduling.evicted(stage.folder, len(stage.plans))
        if outcome.reason == "preempted":
            self.preempted = outcome.lost or 0
        for node in range(len(stage.plans)):
            if node == outcome.lost or self.preempted is not None:
                continue
            for name in ("outputs", "logs"):
                storage.merge(stage.folder / "nodes" / str(node) / "wd" / name, stage.folder / name)
        self._outputs(stage, outcome)

    def _outputs(self, stage: Stage, outcome: RunOutcome) -> None:
        """Turn what the named outputs hold into blobs: a mount's always, an upload's from the nodes that are left."""
        job = self.store.jobs[self.job]
        keeper = storage.Storage(self.store, job.workspace)
        for folder, place in stage.mounts.values():
            if place is not None:
                keeper.publish(folder, place)
        _, place = stage.mounts.get(_default_artifacts(self.spec, job.name), (None, None))
        if place is not None and self.preempted is None:
            for name in ("outputs", "logs", contract.LOGS):
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
        found = first(ends)
        if found is None:
            return "Execution failed." if not outcome.launcher else self._mpirun(outcome.launcher)
        return sentence(found, len(self.workers) or self.spec.ranks)

    def _mpirun(self, code: int) -> str:
        """The reason that mpirun gives when no rank of its own failed."""
        log = f"{contract.LOGS}/{prepare.LOG}"
        words = tail(job_folder(self.store.home, self.job) / log)
        reason = next((line.strip() for line in words.splitlines() if line.strip() and not line.startswith("-")), "")
        return f"Execution failed: mpirun ended with {code}: {reason[:300]} Its log: {log}"

    def write(self, outcome: RunOutcome) -> None:
        """Takes the job to its end and writes the report."""
        status, error = self._status(outcome)
        exits = [
            Exit(ended.node, ended.rank, ended.code, f"{contract.LOGS}/std_log_process_{ended.rank:02d}.txt")
            for ended in sorted(outcome.ends, key=lambda ended: ended.rank)
        ]
        folder = job_folder(self.store.home, self.job)
        folder.mkdir(parents=True, exist_ok=True)
        spec = self.spec
        asked = {"command": spec.command if spec else None, "nodes": spec.nodes if spec else None}
        rest = {**asked, **self._report(outcome, folder)}
        with self.store.transaction():
            self.store.jobs.move(self.job, status, error=error, exits=exits)
            row = self.store.jobs.get(self.job)
            if row is not None:
                write_report(folder, row, **rest)
                if status == "Completed":
                    storage.register(self.store, row)
            self.store.jobs.set_runner(self.job, None, None)
            self.store.nodes.release(self.job)
            cluster = cluster_of(row) if row is not None else None
            here = row is not None and self.store.sites.of(row.id) is None
            if row is not None and here and cluster is not None and self.preempted is not None:
                self.store.nodes.drop(cluster, row.nodes[self.preempted])

    def _status(self, outcome: RunOutcome) -> tuple[str, JobError | None]:
        if self.error is not None:
            return "Failed", self.error
        if outcome.reason == "canceled":
            return "Canceled", JobError("JobCanceled", outcome.detail) if outcome.detail else None
        if outcome.reason == "timeout" and outcome.detail:
            return "Canceled", JobError("JobTimeout", outcome.detail)
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
            return "Failed", JobError("NodePreempted", f"{message} {outcome.detail}".rstrip())
        if outcome.reason == "lost":
            lost = "A node" if outcome.lost is None else f"Node {outcome.lost}"
            message = f"{lost} was lost while the job ran; its outputs/ are gone. {outcome.detail}"
            return "Failed", JobError("NodeLost", message.rstrip())
        if outcome.reason == "failed":
            return "Failed", JobError("UserError", self.cause(outcome))
        return "Completed", None

    def _failed(self, ended: RankEnd) -> list[End]:
        """A failed process, or the ranks below it that torchrun calls failed."""
        if self.stage is None or ended.code is None:
            return []
        place = self.stage.places[ended.rank]
        log = self.stage.folder / contract.LOGS / place.log
        failures = contract.failures(tail(log, contract.TABLE_BYTES))
        by_rank = {worker.rank: worker for worker in self.workers}
        found = []
        for one in failures:
            self.failed[one.rank] = one.code
            worker = by_rank.get(one.rank)
            file = worker.stderr if worker is not None and worker.stderr.is_file() else log
            times = [path.stat().st_mtime for path in _existing(worker)] or [ended.ended or 0.0]
            name = f"{contract.LOGS}/{file.name}"
            words = tail(file) if worker is not None else ""
            found.append(End(one.rank, ended.node, one.local_rank, one.code, max(times), name, words))
        if found:
            return found
        words = tail(log)
        name = f"{contract.LOGS}/{place.log}"
        end = End(ended.rank, ended.node, place.local_rank, ended.code, ended.ended or 0.0, name, words, ended.stopped)
        return [end]

    def _report(self, outcome: RunOutcome, folder: Path) -> dict[str, Any]:
        if self.stage is None or self.spec is None:
            return {"ranks": [], "metrics": None}
        entries = ranks(self.stage.places, outcome.ends, self.workers, contract.LOGS, self.failed)
        outputs = sorted(str(path.relative_to(folder)) for path in (folder / "outputs").rglob("*") if path.is_file())
        return {
            "world_size": len(self.workers) or self.spec.ranks,
            "reason": outcome.reason,
            "ranks": entries,
            "outputs": outputs,
            "named_outputs": self._named(self.stage),
            "metrics": metrics(folder),
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


def _existing(worker: contract.Worker | None) -> list[Path]:
    return [] if worker is None else [path for path in (worker.stdout, worker.stderr) if path.is_file()]
