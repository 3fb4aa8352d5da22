"""The arguments and the input of a step: files or an MLTable, its rows, and the mini-batches that they make."""

from __future__ import annotations

import argparse
import glob
import importlib
import json
import os
import re
import sys
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


FILE = "MLTable"
FALLBACK = Path(__file__).resolve().parent.parent / "fallback"
"""The place of a YAML reader for environments without one."""
READERS = ("read_delimited", "read_parquet", "read_json_lines")
ENCODINGS = {"utf8": "utf-8", "iso88591": "iso-8859-1", "latin1": "latin-1", "windows1252": "cp1252"}
HEADERS = ("all_files_same_headers", "from_first_file", "no_header", "all_files_different_headers")
_FIELD = re.compile(r"\{([^{}:]+)(?::[^{}]*)?\}")


class TableError(Exception):
    """The MLTable says what the sandbox does not read; the message says what."""


class Table(NamedTuple):
    """An MLTable.

    Attributes:
        folder: Where its file lies.
        files: Paths below the folder.
        readers: Its reader and what follows, each by name with its settings; empty for a list of files.
    """

    folder: str
    files: list[str]
    readers: list[tuple[str, Any]]


def find(place: str) -> Table | None:
    """The MLTable of a folder; None where it has none.

    Raises:
        TableError: It names what the sandbox does not read.
    """
    file = os.path.join(place, FILE)
    if not os.path.isfile(file):
        return None
    with open(file, encoding="utf-8") as opened:
        text = _yaml().safe_load(opened) or {}
    files: list[str] = []
    for entry in text.get("paths") or []:
        files += _files(place, entry)
    steps = [_step(one) for one in text.get("transformations") or []]
    known = [step for step in steps if step[0] in READERS]
    if steps and (len(known) != 1 or steps[0] is not known[0]):
        raise TableError(f"the transformations of an MLTable begin with one of {', '.join(READERS)}")
    return Table(place, list(dict.fromkeys(files)), steps)


def frame(table: Table, files: Sequence[str], part: int = 0, parts: int = 1) -> Any:
    """The rows of files of a table, of one file a share of them.

    Raises:
        TableError: A transformation is not known, or pandas is not there.
    """
    pandas = _pandas()
    one = [_transformed(table, _read(table, file), file) for file in files]
    found = pandas.concat(one, ignore_index=True) if len(one) != 1 else one[0]
    if parts > 1:
        found = found.iloc[len(found) * part // parts : len(found) * (part + 1) // parts].reset_index(drop=True)
    return found


def column_groups(table: Table, keys: Sequence[str]) -> list[tuple[dict[str, str], list[str]]]:
    """The values that columns have together, as text, each with the files in which they occur.

    Raises:
        TableError: The table has no such column.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    for file in table.files:
        rows = frame(table, [file])
        missing = [key for key in keys if key not in rows.columns]
        if missing:
            raise TableError(f"`partition_keys` names {', '.join(missing)}; the table has {', '.join(rows.columns)}")
        for values in rows[list(keys)].astype(str).drop_duplicates().itertuples(index=False, name=None):
            found.setdefault(values, []).append(file)
    return [(dict(zip(keys, values)), files) for values, files in found.items()]


def of_group(rows: Any, keys: dict[str, str]) -> Any:
    """The rows whose columns have these values as text."""
    for key, value in keys.items():
        rows = rows[rows[key].astype(str) == value]
    return rows.reset_index(drop=True)


def _files(folder: str, entry: dict[str, str]) -> list[str]:
    kind, path = next(iter(entry.items()))
    if "://" in path or os.path.isabs(path):
        raise TableError(f"the MLTable names {path}; the sandbox reads paths below the MLTable's own folder")
    if kind == "pattern":
        names = glob.glob(os.path.join(glob.escape(folder), path), recursive=True)
    else:
        names = [os.path.join(folder, path)]
    found: list[str] = []
    for name in sorted(names):
        if os.path.isdir(name):
            found += sorted(str(one) for one in Path(name).rglob("*") if one.is_file())
        elif os.path.isfile(name):
            found.append(name)
        else:
            raise TableError(f"the MLTable names {path}, which is not there")
    inside = os.path.realpath(folder)
    if any(os.path.commonpath([inside, os.path.realpath(name)]) != inside for name in found):
        raise TableError(f"the MLTable names {path}, which lies outside of its folder")
    return [os.path.relpath(name, folder) for name in found]


def _step(one: Any) -> tuple[str, Any]:
    if isinstance(one, str):
        return one, {}
    name, value = next(iter(one.items()))
    return str(name), {} if value is None else value


def _read(table: Table, file: str) -> Any:
    pandas = _pandas()
    kind, options = table.readers[0]
    path = os.path.join(table.folder, file)
    if kind == "read_parquet":
        rows = pandas.read_parquet(path)
    elif kind == "read_json_lines":
        rows = pandas.read_json(path, lines=True)
    else:
        header = str(options.get("header") or HEADERS[0])
        if header not in HEADERS:
            raise TableError(f"the MLTable's header is {header}; known are {', '.join(HEADERS)}")
        encoding = str(options.get("encoding") or "utf8")
        named: dict[str, Any] = {"header": 0}
        if header == "no_header":
            named = {"header": None}
        elif header == "from_first_file" and file != table.files[0]:
            first = os.path.join(table.folder, table.files[0])
            columns = pandas.read_csv(first, sep=options.get("delimiter") or ",", nrows=0).columns
            named = {"header": None, "names": columns}
        rows = pandas.read_csv(
            path,
            sep=options.get("delimiter") or ",",
            encoding=ENCODINGS.get(encoding, encoding),
            keep_default_na=not options.get("empty_as_string"),
            dtype=None if options.get("infer_column_types", True) else str,
            **named,
        )
        if header == "no_header":
            rows.columns = [f"Column{number + 1}" for number in range(len(rows.columns))]
    if isinstance(options, dict) and options.get("include_path_column"):
        rows.insert(0, "Path", path)
    return rows


def _transformed(table: Table, rows: Any, file: str) -> Any:
    for name, value in table.readers[1:]:
        if name == "extract_columns_from_partition_format":
            for column, text in _from_path(str(value["partition_format"]), file).items():
                rows[column] = text
        elif name == "drop_columns":
            rows = rows.drop(columns=[column for column in _names(value) if column in rows.columns])
        elif name == "keep_columns":
            rows = rows[_names(value)]
        elif name == "take":
            rows = rows.head(int(value))
        elif name == "skip":
            rows = rows.iloc[int(value) :]
        else:
            raise TableError(f"the sandbox does not know the MLTable's transformation `{name}`")
    return rows


def _names(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else [str(value)]


def _from_path(form: str, file: str) -> dict[str, str]:
    """The columns that a path has by its form: ``{Store}/{Brand}/{name}.csv``."""
    pattern, at, names = "", 0, []
    for found in _FIELD.finditer(form):
        names.append(found[1])
        pattern += re.escape(form[at : found.start()]) + r"([^/]+?)"
        at = found.end()
    pattern += re.escape(form[at:])
    match = re.search(f"(?:^|/){pattern.lstrip('/')}$", file.replace(os.sep, "/"))
    if match is None:
        raise TableError(f"the path {file} is not of the MLTable's form {form}")
    return dict(zip(names, match.groups()))


def _pandas() -> Any:
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise TableError("the input is a table, for which the step's environment needs pandas") from None


def _yaml() -> Any:
    try:
        return importlib.import_module("yaml")
    except ImportError:
        sys.path.append(str(FALLBACK))
        return importlib.import_module("yaml")


FILES = 1
"""Files of a mini-batch where the step does not say."""
BYTES = 1 << 20
"""Bytes of a table in a mini-batch where the step does not say."""


class InputError(Exception):
    """The input cannot be split as the step asks; the message says why."""


class MiniBatch(NamedTuple):
    """One mini-batch, as it goes to a worker.

    Attributes:
        number: Its number, from 0.
        files: Paths below the input; of a table its files.
        part, parts: Of one file of a table, which share of its rows.
        keys: Of a table that is split by columns, their values as text.
        table: It is a table: ``run()`` gets a pandas DataFrame.
    """

    number: int
    files: list[str]
    part: int = 0
    parts: int = 1
    keys: dict[str, str] | None = None
    table: bool = False

    def wire(self) -> dict[str, Any]:
        """As JSON holds it."""
        return dict(self._asdict())


def split(settings: StepSettings) -> list[MiniBatch]:
    """The mini-batches of a step, in a fixed order.

    Raises:
        InputError: There is nothing, or it cannot be split so.
    """
    table = find(settings.input_data)
    if table is None:
        if settings.partition_keys:
            raise InputError("`partition_keys` splits a table: `input_data` must be an mltable that reads one")
        files = below(settings.input_data)
        size = settings.mini_batch_size or FILES
        found = [MiniBatch(0, files[at : at + size]) for at in range(0, len(files), size)]
    elif not table.readers:
        if settings.partition_keys:
            raise InputError("`partition_keys` needs an mltable that reads a table (a transformation such as "
                             "read_delimited); this one lists files")  # fmt: skip
        size = settings.mini_batch_size or FILES
        found = [MiniBatch(0, table.files[at : at + size]) for at in range(0, len(table.files), size)]
    elif settings.partition_keys:
        groups = column_groups(table, settings.partition_keys)
        found = [MiniBatch(0, files, keys=keys, table=True) for keys, files in groups]
    else:
        found = _by_size(table, settings.mini_batch_size or BYTES)
    if not found:
        raise InputError("the input has no file: there is nothing to split into mini-batches")
    return [batch._replace(number=number) for number, batch in enumerate(found)]


def below(place: str) -> list[str]:
    """Files at or below a place, as paths relative to it (empty for the place itself), in order."""
    if os.path.isfile(place):
        return [""]
    found = []
    for folder, _, names in os.walk(place):
        found += [os.path.relpath(os.path.join(folder, name), place) for name in names]
    return sorted(found)


def _by_size(table: Table, size: int) -> list[MiniBatch]:
    """Small files together, the rows of a large one in shares of about the size."""
    found: list[MiniBatch] = []
    together: list[str] = []
    held = 0
    for file in table.files:
        of_it = os.path.getsize(os.path.join(table.folder, file))
        if together and held + of_it > size:
            found.append(MiniBatch(0, together, table=True))
            together, held = [], 0
        if of_it > size:
            parts = -(-of_it // size)
            found += [MiniBatch(0, [file], part, parts, table=True) for part in range(parts)]
        else:
            together.append(file)
            held += of_it
    if together:
        found.append(MiniBatch(0, together, table=True))
    return found
