"""Job files as an editor sees them: signatures, docstrings, and what pyright and mypy find without plugins of ours."""

from __future__ import annotations

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import jobs
from amlstack.base.models import described, reached
from amlstack.base.paths import PROJECT, cache
from jobs.launchers import TYPED, Custom
from jobs.model import job as job_module

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import BaseModel

FILES = PROJECT / "tests" / "jobs" / "editor_files"
DECLARED = (jobs.Job, jobs.Sweep, jobs.Pipeline, jobs.Schedule, jobs.Component, Custom, *TYPED)
MODELS = sorted(reached(DECLARED), key=lambda model: model.__name__)


def test_models_show_their_fields_in_their_signatures_before_any_is_built() -> None:
    names = [(model.__module__, model.__name__) for model in MODELS]
    code = f"""
import importlib, inspect, json
for module, name in {names!r}:
    shown = inspect.signature(getattr(importlib.import_module(module), name)).parameters
    required = [each for each in shown if shown[each].default is inspect.Parameter.empty]
    print(json.dumps([name, sorted(required), sorted(shown)]))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    shown = [json.loads(line) for line in ran.stdout.splitlines()]
    for model, seen in zip(MODELS, shown, strict=True):
        fields = {name: field for name, field in model.model_fields.items() if not field.exclude}
        required = sorted(name for name, field in fields.items() if field.is_required())
        assert seen == [model.__name__, required, sorted(fields)]


def test_every_field_has_a_docstring_of_its_own() -> None:
    bare = [
        f"{model.__name__}.{name}"
        for model in MODELS
        for name in model.model_fields
        if name not in {"type", "source", *described(model)}
    ]
    assert not bare


@pytest.mark.parametrize(
    "model", [jobs.Job, jobs.Component, jobs.Limits, jobs.SweepLimits], ids=lambda one: one.__name__
)
def test_signature_for_type_checkers_has_the_fields_of_the_model(model: type[BaseModel]) -> None:
    arguments = _typed_init(model).args
    given = {
        each.arg: default is not None for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    }
    if arguments.kwarg is not None:
        assert ast.unparse(arguments.kwarg.annotation) == "Unpack[ResourceArguments]"
        given |= dict.fromkeys(_resource_arguments(), True)
    assert given == {name: not field.is_required() for name, field in model.model_fields.items()}


def test_wide_values_are_converted_to_what_a_field_holds() -> None:
    job = jobs.Job(
        command="x", environment="e", code="src", outputs={"ckpt": "uri_file"}, limits=jobs.Limits(timeout="1h30m")
    )
    assert job.code == jobs.Code(path="src")
    assert job.outputs == {"ckpt": jobs.Output(type="uri_file")}
    assert job.limits == jobs.Limits(timeout=5400)


@pytest.mark.editor
def test_pyright_finds_every_wrong_use_and_nothing_in_right_files(tmp_path: Path) -> None:
    settings = {
        "include": [
            str(FILES),
            *(str(file) for file in (PROJECT / "examples").glob("*/*.py") if file.stem in _JOB_FILES),
        ],
        "extraPaths": [str(PROJECT)],
        "typeCheckingMode": "standard",
        "pythonVersion": "3.11",
    }
    chosen = tmp_path / "pyrightconfig.json"
    chosen.write_text(json.dumps(settings))
    words = [str(_editor_tools() / "basedpyright"), "-p", str(chosen), "--pythonpath", sys.executable, "--outputjson"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    report = json.loads(ran.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(_JOB_FILES)
    found = {(Path(each["file"]), each["range"]["start"]["line"] + 1) for each in report["generalDiagnostics"]}
    assert found == {(FILES / "wrong.py", line) for line in _wrong_lines()}


@pytest.mark.editor
def test_mypy_finds_every_wrong_use_and_nothing_in_right_files_without_plugins(tmp_path: Path) -> None:
    empty = tmp_path / "mypy.ini"
    empty.write_text("[mypy]\n")
    words = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(empty),
        "--cache-dir",
        str(cache() / "mypy-of-editors"),  # what it holds is judged by its content
    ]
    files = [str(FILES / name) for name in ("right.py", "wrong.py")]
    environ = {**os.environ, "MYPYPATH": str(PROJECT)}
    ran = subprocess.run([*words, *files], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    found = re.findall(r"^.*?(\w+\.py):(\d+): error", ran.stdout, re.MULTILINE)
    assert {(name, int(line)) for name, line in found} == {("wrong.py", line) for line in _wrong_lines()}


_JOB_FILES = frozenset({"job", "sweep", "schedule", "pipeline"})


def _wrong_lines() -> Iterator[int]:
    for number, line in enumerate((FILES / "wrong.py").read_text().splitlines(), 1):
        if re.match(r"a\d\d = ", line):
            yield number


def _typed_init(model: type[BaseModel]) -> ast.FunctionDef:
    tree = ast.parse(inspect.getsource(model))
    (found,) = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and each.name == "__init__")
    return found


def _resource_arguments() -> list[str]:
    tree = ast.parse(inspect.getsource(job_module))
    (found,) = (each for each in ast.walk(tree) if isinstance(each, ast.ClassDef) and each.name == "ResourceArguments")
    return [str(ast.unparse(each.target)) for each in found.body if isinstance(each, ast.AnnAssign)]


def _editor_tools() -> Path:
    """The folder of pyright's command, installed from uv.lock into the cache the first time."""
    place = cache() / "editor"
    environ = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(place)}
    environ.pop("VIRTUAL_ENV", None)
    words = [str(Path(sys.executable).with_name("uv")), "sync", "--quiet", "--frozen", "--only-group", "editor"]
    subprocess.run([*words, "--python", sys.executable], cwd=PROJECT, env=environ, check=True)
    return place / "bin"
