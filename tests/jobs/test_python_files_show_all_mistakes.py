"""A Python job file with several mistakes shows all of them in one run, each at its own line, with its whole path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import jobs

if TYPE_CHECKING:
    from pathlib import Path

WRONG = """\
from jobs import Input, Job, Limits, TorchRun

longest = Limits(timeout="2 hours or so")
job = Job(
    command="python train.py",
    environment="e",
    nodes="two",
    node_count=2,
    launcher=TorchRun(
        processes=2,
    ),
    limits=Limits(timeout=-1),
    inputs={"d": Input(mode="mounted")},
    on_edit="cancle",
    outputs={"a": "uri_foldr"},
)
"""


def written(folder: Path, text: str) -> jobs.Loaded:
    file = folder / "job.py"
    file.write_text(text)
    return jobs.load(file)


def test_all_mistakes_of_a_file_come_together_at_their_own_lines(tmp_path: Path) -> None:
    loaded = written(tmp_path, WRONG)
    assert sorted((each.line, each.column, each.where, each.code) for each in loaded.findings) == [
        (3, 18, "Limits.timeout", "value-kind"),
        (7, 5, "nodes", "value-kind"),
        (8, 5, "node_count", "key-unknown"),
        (10, 9, "launcher.processes", "key-unknown"),
        (12, 19, "limits.timeout", "value-kind"),
        (13, 24, "inputs.d.mode", "value-kind"),
        (14, 5, "on_edit", "value-kind"),
        (15, 14, "outputs.a.type", "value-kind"),
    ]
    assert all(each.file == str(tmp_path / "job.py") for each in loaded.findings)
    assert loaded.jobs == ()


def test_an_unknown_field_names_the_one_that_was_meant(tmp_path: Path) -> None:
    remedies = {each.where: each.remedy for each in written(tmp_path, WRONG).findings}
    assert remedies["node_count"] == "Did you mean `nodes`?"
    assert remedies["launcher.processes"].startswith("Did you mean `processes_per_node`")


def test_what_only_follows_from_a_mistake_is_not_shown(tmp_path: Path) -> None:
    text = "from jobs import Job\njob = Job(command='x', enviroment='e')\nprint(job.environment.upper())\n"
    assert {each.code for each in written(tmp_path, text).findings} == {"key-unknown", "key-missing"}


def test_a_mistake_made_in_a_loop_is_shown_once(tmp_path: Path) -> None:
    text = "from jobs import Job\njobs = [Job(command='x', environment='e', nodes=0) for _ in range(3)]\n"
    assert [(each.line, each.where) for each in written(tmp_path, text).findings] == [(2, "Job.nodes")]


@pytest.mark.parametrize("caught", ["ValueError", "Exception"])
def test_a_mistake_that_the_file_would_catch_is_shown_all_the_same(caught: str, tmp_path: Path) -> None:
    text = f"from jobs import Limits\ntry:\n    Limits(timeout=-1)\nexcept {caught}:\n    pass\n"
    assert [each.where for each in written(tmp_path, text).findings] == ["Limits.timeout"]


def test_a_mistake_in_a_module_beside_the_file_has_the_line_that_imports_it(tmp_path: Path) -> None:
    (tmp_path / "beside_the_job.py").write_text("from jobs import Limits\nLONGEST = Limits(timeout=-1)\n")
    loaded = written(tmp_path, "\nimport beside_the_job\n")
    assert [(each.where, each.line) for each in loaded.findings] == [("Limits.timeout", 2)]


def test_models_raise_again_after_a_file_was_read(tmp_path: Path) -> None:
    written(tmp_path, WRONG)
    with pytest.raises(ValueError, match="timeout"):
        jobs.Limits(timeout=-1)


@pytest.mark.parametrize(
    ("text", "code"),
    [("job = " + "-" * 100_000 + "1", "python-raised"), ("job = " + "[" * 10_000, "python-syntax")],
    ids=["minus", "brackets"],
)
def test_a_file_nested_deeper_than_python_reads_is_a_finding(text: str, code: str, tmp_path: Path) -> None:
    (found,) = written(tmp_path, text).findings
    assert found.code == code
