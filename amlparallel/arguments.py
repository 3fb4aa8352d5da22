"""Arguments of the driver: the step's settings, then ``--`` and the arguments of the entry script."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, NamedTuple, Sequence

HERE = Path(__file__).resolve().parent.parent / "here.json"
"""The sandbox's words on its nodes: ``default_workers``, and ``most_workers`` where it allows no more."""
IGNORED = ("--task_overhead_timeout", "--resource_monitor_interval", "--copy_logs_to_parent",
           "--metrics_name_prefix", "--push_metrics_to_parent")  # fmt: skip
"""Arguments that Azure ML takes out of a step's ``program_arguments`` and that change nothing here."""


class StepSettings(NamedTuple):
    """One parallel step.

    Attributes:
        entry_script: The user's file, below the working folder.
        input_data: File or folder of the input that is split.
        mini_batch_size: Files, or bytes of a table; 0 for the default.
        partition_keys: Columns whose values make the mini-batches; empty for a split by size.
        append_row_to: File or folder for what ``run()`` returns; empty for none.
        tries: How often a mini-batch is tried.
        run_timeout: Seconds that one call of ``run()`` may last.
        first_timeout: Seconds that ``init()`` may last.
        progress_timeout: Seconds without an ended mini-batch after which the step fails; None for no limit.
        error_threshold: Items that may fail; -1 for any number.
        mini_batch_error_threshold: Mini-batches that may fail; -1 for any number.
        allowed_failed_percent: The same in percent.
        workers: Processes on each node.
        level: Level of the entry script's logger.
        program: What the entry script finds in ``sys.argv``.
        ignored: What was asked for and changes nothing here.
    """

    entry_script: str
    input_data: str
    mini_batch_size: int
    partition_keys: tuple[str, ...]
    append_row_to: str
    tries: int
    run_timeout: float
    first_timeout: float
    progress_timeout: float | None
    error_threshold: int
    mini_batch_error_threshold: int
    allowed_failed_percent: float
    workers: int
    level: str
    program: tuple[str, ...]
    ignored: tuple[str, ...]


def read(argv: Sequence[str], here: Path = HERE) -> StepSettings:
    """Reads the command line.

    Raises:
        SystemExit: An argument is none (argparse's own message).
    """
    words = list(argv)
    cut = words.index("--") if "--" in words else len(words)
    program = words[cut + 1 :]
    own, among = _own().parse_args(words[:cut]), _among().parse_known_args(program)[0]
    known: dict[str, Any] = json.loads(here.read_text(encoding="utf-8")) if here.is_file() else {}
    workers = own.process_count_per_node or int(known.get("default_workers") or os.cpu_count() or 1)
    workers = min(workers, int(known.get("most_workers") or workers))
    items = own.error_threshold if among.error_threshold is None else among.error_threshold
    return StepSettings(
        entry_script=own.entry_script,
        input_data=own.input_data,
        mini_batch_size=own.mini_batch_size,
        partition_keys=tuple(json.loads(own.partition_keys)),
        append_row_to=own.append_row_to,
        tries=own.max_retries + 1,
        run_timeout=own.timeout,
        first_timeout=among.first_task_creation_timeout,
        progress_timeout=among.progress_update_timeout,
        error_threshold=items,
        mini_batch_error_threshold=own.mini_batch_error_threshold,
        allowed_failed_percent=among.allowed_failed_percent,
        workers=max(1, workers),
        level=own.logging_level.upper(),
        program=tuple(program),
        ignored=tuple(name for name in IGNORED if name in program),
    )


def _own() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="amlparallel", allow_abbrev=False)
    parser.add_argument("--entry_script", required=True)
    parser.add_argument("--input_data", required=True)
    parser.add_argument("--mini_batch_size", type=int, default=0)
    parser.add_argument("--partition_keys", default="[]")
    parser.add_argument("--append_row_to", default="")
    parser.add_argument("--max_retries", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--error_threshold", type=int, default=-1)
    parser.add_argument("--mini_batch_error_threshold", type=int, default=-1)
    parser.add_argument("--process_count_per_node", type=int, default=0)
    parser.add_argument("--logging_level", default="INFO")
    return parser


def _among() -> argparse.ArgumentParser:
    """The options that Azure ML takes from the entry script's own arguments."""
    parser = argparse.ArgumentParser(prog="program_arguments", allow_abbrev=False, add_help=False)
    parser.add_argument("--error_threshold", type=int)
    parser.add_argument("--allowed_failed_percent", type=float, default=100.0)
    parser.add_argument("--progress_update_timeout", type=float)
    parser.add_argument("--first_task_creation_timeout", type=float, default=600.0)
    return parser
