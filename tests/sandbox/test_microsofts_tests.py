"""Microsoft's own end-to-end tests of azure-ai-ml: where they come from, how outcomes are read, and the quick ones."""

from __future__ import annotations

import contextlib
import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support.microsoft import examples, source
from tests.support.microsoft.__main__ import REASONS, Verdict, run, table

if TYPE_CHECKING:
    from pathlib import Path


def verdict(test: str, outcome: str, text: str = "") -> Verdict:
    return REASONS.verdict({"test": f"tests/{test}", "outcome": outcome, "text": text, "seconds": 0})


def test_what_the_sandbox_refuses_by_name_is_not_emulated() -> None:
    words = "E   a.HttpResponseError: (SandboxNotEmulated) …\nE   Message: The sandbox does not emulate x."
    found = verdict("spark/e2etests/test_a.py::test_b", "failed", words)
    assert (found.folder, found.column, found.reason) == ("spark", "not emulated", "The sandbox does not emulate x.")


def test_a_failure_without_a_row_is_a_failure_with_its_first_words() -> None:
    found = verdict("dsl/e2etests/test_a.py::test_b", "failed", "a.py:1: in f\nE   AssertionError: 1 == 2\nE   more")
    assert (found.column, found.reason) == ("failed", "AssertionError: 1 == 2")


def test_the_share_counts_passed_and_failed_alone() -> None:
    rows = [verdict(f"dsl/e2etests/a.py::t{number}", "passed") for number in range(3)]
    rows += [verdict("dsl/e2etests/a.py::u", "failed"), verdict("dsl/e2etests/a.py::v", "skipped")]
    lines = table(rows).splitlines()
    assert lines[2:] == [
        "| dsl | 3 | 1 | 0 | 0 | 1 |",
        "| all | 3 | 1 | 0 | 0 | 1 |",
        "",
        "3 of 4 tests of emulated kinds passed.",
    ]


def test_every_row_of_reasons_names_a_column_and_a_reason() -> None:
    for row in REASONS.rows:
        assert row["column"] in {"failed", "not emulated", "not here"}, row
        assert row["why"], row
        assert row.keys() & {"test", "text"}, row


def test_a_folder_that_has_no_job_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(source.SourceError, match="is no folder test_configs"):
        source.configs(str(tmp_path))


def test_job_files_are_cloned_once_by_the_tag_of_the_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    there, kept = tmp_path / "there", "sdk/ml/azure-ai-ml/tests/test_configs/command_job/job.yml"
    for name in (kept, "sdk/other/large.bin"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text("words")
    git = ["git", "-C", str(there), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", f"azure-ai-ml_{source.locked()[0]}"]):
        subprocess.run([*git, *words], check=True)
    found = source.configs(address=there.as_uri())
    assert [path.name for path in found.rglob("*") if path.is_file()] == ["job.yml"]
    assert source.configs(address="file:///nowhere") == found


def test_a_repository_that_cannot_be_reached_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path))
    with pytest.raises(source.SourceError, match="git did not get Microsoft's tests"):
        source.configs(address=(tmp_path / "nowhere").as_uri())


def test_a_notebook_becomes_a_script_for_the_workspace_of_the_sandbox(tmp_path: Path) -> None:
    code = ["%pip install x\n", "ids = ['<SUBSCRIPTION_ID>', '<AML_WORKSPACE_NAME>']\n", "folder = 'f'"]
    cells = [
        {"cell_type": "markdown", "source": ["words"]},
        {"cell_type": "code", "source": code},
        {"cell_type": "code", "source": ["%%writefile {folder}.txt\n", "it's text"]},
        {"cell_type": "code", "source": ["%%bash\n", "exit 1"]},
    ]  # fmt: skip
    notebook = tmp_path / "a.ipynb"
    notebook.write_text(json.dumps({"cells": cells}))
    text = examples.script(notebook, "sub").removeprefix(examples.PRELUDE)
    names: dict[str, object] = {}
    with contextlib.chdir(tmp_path):
        exec(compile(text, "a.py", "exec"), names)
    assert names["ids"] == ["sub", "sdkv2tests"]
    assert (tmp_path / "f.txt").read_text() == "it's text"


@pytest.mark.tools
def test_those_that_need_no_job_file_pass() -> None:
    try:
        source.sdist()
        source.packages()
    except source.SourceError as error:
        pytest.skip(str(error))
    rows = run(REASONS.quick, None)
    assert [REASONS.verdict(row) for row in rows if row["outcome"] != "passed"] == []
    assert len(rows) == len(REASONS.quick)
