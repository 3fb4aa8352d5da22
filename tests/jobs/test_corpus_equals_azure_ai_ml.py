"""Every job file of a folder (AMLSTACK_CORPUS) becomes what azure-ai-ml would send, of whichever kind it is.

The verdict on each file stands in the test report as a property of its test.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from jobs.azureml.read import kinds
from tests.support import yaml_files
from tests.support.jobs import oracle
from tests.support.jobs import our_commands as of_commands
from tests.support.jobs import our_pipelines as of_pipelines
from tests.support.jobs import our_sweeps as of_sweeps
from tests.support.jobs.corpus_stubs import stub, stubs

if TYPE_CHECKING:
    from collections.abc import Callable

PIPELINE = "type: pipeline\njobs: {{it: {{component: ./{name}}}}}\n"


def corpus() -> list[Path]:
    """Job files of the folder; none without it."""
    folder = os.environ.get("AMLSTACK_CORPUS")
    return sorted(path for path in Path(folder).rglob("*.y*ml")) if folder else []


def kind(data: dict[str, Any]) -> str:
    return "component" if kinds.is_command_component(data) else str(data.get("type", "command"))


def command(file: Path) -> tuple[Any, Callable[[], Any], list[str]]:
    body, errors = of_commands.ours(file)
    return body, lambda: oracle.body(file), errors


def sweep(file: Path) -> tuple[Any, Callable[[], Any], list[str]]:
    body, errors = of_sweeps.ours(file)
    return body, lambda: oracle.sweep(file), errors


def pipeline(file: Path) -> tuple[Any, Callable[[], Any], list[str]]:
    plan, errors = of_pipelines.planned(file)
    return plan and of_pipelines.ours(file)[:2], lambda: oracle.pipeline(file), errors


def component(file: Path) -> tuple[Any, Callable[[], Any], list[str]]:
    """As the one step of a pipeline; its inputs are not given, which is reported and is no fault of the file."""
    whole = file.parent / "pipeline-of-one.yml"
    whole.write_text(PIPELINE.format(name=file.name))
    result, theirs, errors = pipeline(whole)
    return result, theirs, [error for error in errors if "[input-missing]" not in error]


KINDS = {"command": command, "sweep": sweep, "pipeline": pipeline, "component": component}


# Asked for by AMLSTACK_CORPUS; without it there is nothing to run, and nothing to skip.
if FILES := corpus():

    @pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
    def test_a_file_of_the_corpus_becomes_the_same(file: Path, tmp_path: Path, record_property: Any) -> None:
        written = file.read_text(encoding="utf-8")
        data = yaml_files.load(written)
        place = tmp_path / "a" / "b" / "c" / file.name  # deep enough for paths like ../../src
        place.parent.mkdir(parents=True)
        place.write_text(written, encoding="utf-8")
        for path in sorted(stubs(data)):
            stub(place.parent / path)
        record_property("kind", kind(data))
        ours, theirs, errors = KINDS.get(kind(data), command)(place)
        try:
            expected = theirs()
        except oracle.RefusedError:
            expected = None
        if expected is None:
            assert errors
            record_property("verdict", "refused by both")
            return
        assert errors == []
        assert ours == expected
        record_property("verdict", "the same")
