"""The driver of a parallel step as a process: it splits the input and decides when the step fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlparallel import inputs, messages
from amlparallel.inputs import StepSettings, read
from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Sequence

SCORE = """\
import os, time

def run(mini_batch):
    first = os.path.basename(mini_batch[0])
    if first == "a.txt":
        time.sleep(600)
    return mini_batch[1:] if first == "c.txt" else mini_batch
"""
TABLE = """\
paths: [{pattern: "./**/*.csv"}]
transformations:
- read_delimited: {delimiter: ",", encoding: utf8, header: all_files_same_headers, include_path_column: true}
- extract_columns_from_partition_format: {partition_format: "{Store}/{name}.csv"}
- drop_columns: [Path, name]
"""


def settings(place: Path, *words: str) -> StepSettings:
    return read(["--entry_script", "score.py", "--input_data", str(place), *words])


def drive(folder: Path, words: Sequence[str], python: Sequence[str] = (sys.executable,)) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of the one node of a step."""
    named = ["--entry_script", "score.py", "--process_count_per_node", "2"]
    done = subprocess.run(
        [*python, "-m", "amlparallel", *named, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The step's code, and four files to read."""
    (tmp_path / "score.py").write_text(SCORE)
    (tmp_path / "in").mkdir()
    for name in "abcd":
        (tmp_path / "in" / f"{name}.txt").write_text(name)
    return tmp_path


def test_a_call_that_lasts_too_long_is_ended_and_counts_as_failed(folder: Path) -> None:
    words = ["--input_data", "in", "--mini_batch_size", "2", "--timeout", "1", "--max_retries", "0"]

    code, out, _ = drive(folder, [*words, "--append_row_to", "rows.txt"])

    assert code == 0
    assert "run() lasted longer than 1 s (retry_settings.timeout)" in out
    assert (folder / "rows.txt").read_text() == "in/d.txt\n"


@pytest.mark.parametrize(
    ("words", "own", "says"),
    [
        (["--error_threshold", "0"], [], "1 items failed, more than `error_threshold` 0 allows"),
        ([], ["--error_threshold", "0"], "1 items failed, more than `error_threshold` 0 allows"),
        ([], ["--allowed_failed_percent", "20"], "1 of 2 mini-batches failed, more than the 20 %"),
        (
            ["--mini_batch_error_threshold", "0"],
            [],
            "1 of 2 mini-batches failed, more than `mini_batch_error_threshold`",
        ),
    ],
    ids=["items", "items among the arguments", "percent", "mini-batches"],
)
def test_items_that_do_not_come_back_count_as_failed(folder: Path, words: list[str], own: list[str], says: str) -> None:
    (folder / "in" / "a.txt").unlink()
    given = ["--input_data", "in", "--mini_batch_size", "2", *words]
    (folder / "in" / "b.txt").rename(folder / "in" / "e.txt")  # c and d, then e

    code, _, errors = drive(folder, [*given, *(["--", *own] if own else [])])

    assert (code, says in errors) == (1, True), errors


def test_an_input_without_files_is_named(folder: Path) -> None:
    (folder / "none").mkdir()
    code, _, errors = drive(folder, ["--input_data", "none"])
    assert (code, "InputError: the input has no file" in errors) == (2, True)


def test_a_table_is_split_by_size_and_small_files_go_together(tmp_path: Path) -> None:
    (tmp_path / "MLTable").write_text("paths: [{file: ./a.csv}, {file: ./b.csv}, {file: ./c.csv}]\n"
                                      "transformations: [read_delimited]\n")  # fmt: skip
    for name, size in (("a", 10), ("b", 10), ("c", 25)):
        (tmp_path / f"{name}.csv").write_text("x" * size)

    found = inputs.split(settings(tmp_path, "--mini_batch_size", "20"))

    assert [(each.files, each.part, each.parts) for each in found] == [
        (["a.csv", "b.csv"], 0, 1),
        (["c.csv"], 0, 2),
        (["c.csv"], 1, 2),
    ]


def test_an_mltable_without_a_reader_lists_files(tmp_path: Path) -> None:
    (tmp_path / "MLTable").write_text("paths: [{folder: ./images}]\n")
    (tmp_path / "images").mkdir()
    for number in range(3):
        (tmp_path / "images" / f"{number}.png").touch()
    found = inputs.split(settings(tmp_path, "--mini_batch_size", "2"))
    assert [(each.files, each.table) for each in found] == [
        (["images/0.png", "images/1.png"], False),
        (["images/2.png"], False),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("paths: [{file: 'azureml://datastores/d/paths/x'}]", "the sandbox reads paths below the MLTable's own folder"),
        ("paths: [{file: ../x.csv}]", "which is not there"),
        ("paths: []\ntransformations: [{filter: x}]", "begin with one of read_delimited"),
    ],
)
def test_an_mltable_that_is_not_read_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "MLTable").write_text(text)
    with pytest.raises(inputs.TableError, match=says):
        inputs.split(settings(tmp_path))


@pytest.mark.parametrize("returned", [None, "text", 3])
def test_what_has_no_items_is_no_answer(returned: object) -> None:
    with pytest.raises(TypeError, match="must return a DataFrame, a list or a tuple"):
        messages.items_of(returned)


@pytest.mark.training
@pytest.mark.timeout(600)
def test_run_gets_a_dataframe_for_each_value_of_the_partition_keys(tmp_path: Path) -> None:
    (tmp_path / "score.py").write_text(
        "def run(rows, context):\n"
        "    rows['total'] = rows['sold'].sum()\n"
        "    print(list(rows.columns), context.partition_key_value)\n"
        "    return rows\n"
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "MLTable").write_text(TABLE)
    for store, rows in (("1", "a,1\nb,2\n"), ("2", "a,5\n")):
        (tmp_path / "in" / store).mkdir()
        (tmp_path / "in" / store / "part.csv").write_text(f"brand,sold\n{rows}")
    uv = str(Path(sys.executable).with_name("uv"))
    python = [uv, "run", "--no-project", "--quiet", "--python", sys.executable, "--with", "pandas==2.3.3"]

    words = ["--input_data", "in", "--partition_keys", '["Store", "brand"]', "--append_row_to", "rows.txt"]
    code, out, errors = drive(tmp_path, words, [*python, "--with", "pyyaml", "python"])

    assert code == 0, errors
    assert "3 mini-batches" in out
    assert sorted((tmp_path / "rows.txt").read_text().splitlines()) == ["a 1 1 1", "a 5 2 5", "b 2 1 2"]
    printed = "".join(file.read_text() for file in (tmp_path / "logs" / "user" / "stdout").rglob("*.txt"))
    assert "['brand', 'sold', 'Store', 'total'] {'Store': '2', 'brand': 'a'}" in printed
