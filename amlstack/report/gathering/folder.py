"""A report of a folder of logs, wherever they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from amlstack.report.content import OutputFile, Phase, RankOutcome, Report
from amlstack.report.gathering import logs as reading
from amlstack.report.gathering import series

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from amlstack.diagnose import Diagnosis
    from amlstack.report.content import Series

MOST_OUTPUTS = 400


class NoLogsError(Exception):
    """The folder holds nothing to report on."""


def gather(folder: Path, now: float) -> Report:
    """The content of a folder of logs; of a job's folder of the sandbox also that of its ``report.json``.

    Raises:
        NoLogsError: It holds no log.
    """
    folder = folder.resolve()
    found = reading.gather(folder)
    record = record_of(folder)
    if not found.logs:
        message = f"{folder} holds no log: texts such as user_logs/std_log_process_00.txt or 70_driver_log_0.txt."
        raise NoLogsError(message)
    status = str(record.get("status") or "")
    nodes = {log.rank: log.node for log in found.logs if log.rank is not None}
    ranks = ranks_of(record) or tuple(RankOutcome(number, nodes[number]) for number in sorted(nodes))
    lists, numbers = metrics(folder, record)
    return Report(
        title=str(record.get("job") or folder.name),
        status=status,
        active=False,
        made=now,
        facts=_facts(folder, record, found.verdict),
        error=error_of(record),
        verdict=shown(found.verdict, status),
        phases=_phases(record),
        ranks=ranks,
        series=found.series or lists,
        numbers=numbers,
        excerpts=found.excerpts,
        outputs=outputs(folder),
        notes=notes(found, status),
    )


def record_of(folder: Path) -> Mapping[str, Any]:
    """The content of a job's ``report.json``; empty when there is none."""
    record = series.read_json(folder / "report.json")
    return record if isinstance(record, dict) and isinstance(record.get("ranks"), list) else {}


def metrics(folder: Path, record: Mapping[str, Any]) -> tuple[tuple[Series, ...], tuple[tuple[str, str], ...]]:
    """Series and single values that the script left at its end."""
    file = "outputs/metrics.json"
    return series.from_metrics(record.get("metrics") or series.read_json(folder / file), file)


def error_of(record: Mapping[str, Any]) -> str:
    """The service's message about the end."""
    error = record.get("error")
    return str(error.get("message") or "") if isinstance(error, dict) else ""


def ranks_of(record: Mapping[str, Any]) -> tuple[RankOutcome, ...]:
    """The ranks that a ``report.json`` lists."""
    found = []
    for entry in record.get("ranks", ()):
        if isinstance(entry, dict) and isinstance(entry.get("rank"), int):
            node = entry.get("node")
            ends = (entry.get(name) for name in ("local_rank", "code", "started", "ended"))
            found.append(RankOutcome(entry["rank"], None if node is None else str(node), *ends))
    return tuple(sorted(found, key=lambda rank: rank.rank))


def shown(verdict: Diagnosis, status: str) -> Diagnosis | None:
    """The verdict, where there is an end to explain: not of a job that completed, or that still runs well."""
    if status == "Completed" or (not verdict.fatal and not verdict.found):
        return None
    return verdict


def notes(found: reading.FolderLogs, status: str) -> tuple[str, ...]:
    """What a reader should know besides: files that could not be read, a network that is slow."""
    shown = [f"{finding.seen}." for finding in found.findings]
    if found.left_out:
        shown.append(f"{found.left_out} more logs were read for the verdict and are not shown here.")
    if status == "Completed":
        shown += [f"{note.code}: {note.text} ({note.file}:{note.line})" for note in found.verdict.notes]
    return tuple(shown)


def outputs(folder: Path) -> tuple[OutputFile, ...]:
    """The files under ``outputs/``."""
    root = folder / "outputs"
    found = []
    for path in sorted(root.rglob("*")) if root.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            found.append(OutputFile(str(path.relative_to(folder)), path.stat().st_size))
        if len(found) >= MOST_OUTPUTS:
            break
    return tuple(found)


def _facts(folder: Path, record: Mapping[str, Any], verdict: Diagnosis) -> tuple[tuple[str, str], ...]:
    pairs = [("folder", folder.name), ("read", f"{verdict.files} files, {verdict.lines} lines")]
    known = (("command", "command"), ("nodes", "nodes"), ("world size", "world_size"), ("environment", "environment"))
    return (*pairs, *((name, str(record[key])) for name, key in known if record.get(key)))


def _phases(record: Mapping[str, Any]) -> tuple[Phase, ...]:
    created, started, ended = (record.get(name) for name in ("created", "started", "ended"))
    if not isinstance(created, float) or not isinstance(ended, float):
        return ()
    if not isinstance(started, float):
        return (Phase("Waiting", created, ended),)
    return (Phase("Waiting", created, started), Phase("Running", started, ended))
