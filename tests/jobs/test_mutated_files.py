"""Good job files, damaged in every way that people damage them: never a traceback, never an accepted nonsense."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from tests.support import yaml_files
from tests.support.jobs import mutations, oracle
from tests.support.jobs.corpus_stubs import stub, stubs
from tests.support.jobs.our_commands import ours
from tests.support.jobs.parity_cases import folder
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Iterable

DISTRIBUTED = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
type: command
# What runs
command: >-
  python train.py --epochs ${{inputs.epochs}} --data ${{inputs.data}} --out ${{outputs.model}}
code: src
environment: azureml:acpt@latest
inputs:
  epochs: 3
  data:
    type: uri_folder
    path: azureml://datastores/d/paths/x
    mode: ro_mount
outputs:
  model: {type: uri_folder, mode: rw_mount}
environment_variables:
  NCCL_DEBUG: INFO
compute: azureml:gpu
distribution:
  type: pytorch
  process_count_per_instance: 8
resources:
  instance_count: 2
  shm_size: 64g
limits:
  timeout: 900
"""
INLINE = """\
command: echo ${{inputs.name}}
environment:
  build:
    path: ctx
    dockerfile_path: Dockerfile
inputs: {name: World, flag: true}
distribution: {type: tensorflow, worker_count: 2, parameter_server_count: 1}
queue_settings: {job_tier: spot, priority: low}
identity: {type: managed, client_id: c}
services:
  board: {type: tensor_board, log_dir: outputs, nodes: all}
tags: {team: a}
"""
STRICTER = {
    "value-empty",
    "value-range",
    "value-kind",
    "environment-incomplete",
    "environment-twice",
    "build-missing",
    "conda-missing",
    "key-missing",
    "binding-name",
}
"""Of what azure-ai-ml sends on and the service, or the run, fails on, the rules that refuse it here."""
SHARE, SHARE_OF_CORPUS = (int(os.environ.get("AMLSTACK_MUTATIONS", default)) for default in ("3", "5"))
"""Every how manyth mutation is tried, of the two files here (of bytes: all) and of a corpus file; 1 tries them all."""


def judge(place: Path, each: mutations.Mutation) -> str:
    """The verdict of both on a damaged file; fails where ours is no answer."""
    place.write_bytes(each.content)
    body, errors = ours(place)
    try:
        theirs: dict[str, Any] | None = oracle.body(place)
    except oracle.RefusedError:
        theirs = None
    if theirs is None:
        assert errors or jobs.load(place).findings, f"{each.name}: azure-ai-ml refuses it, and nothing is reported"
        return "refused by both"
    if errors:
        codes = {error.rpartition("[")[2].rstrip("]") for error in errors}
        assert codes & STRICTER, f"{each.name}: azure-ai-ml takes it: {errors}"
        return "refused here"
    assert body == theirs, each.name
    return "same body"


@for_each("family", [mutations.of_data, mutations.of_lines, mutations.of_bytes])
@for_each("text", [DISTRIBUTED, INLINE])
def test_a_damaged_file_has_findings_or_the_body_that_azure_ai_ml_sends(family: Any, text: str, tmp_path: Path) -> None:
    folder(tmp_path)
    place = tmp_path / "job.yml"
    share = 1 if family is mutations.of_bytes else SHARE  # few, each of another kind
    verdicts = {judge(place, each) for each in itertools.islice(family(text), 0, None, share)}
    assert verdicts >= {"refused by both", "same body"}


ONE_FAULT = [
    ("command: echo", "comand: echo", "key-unknown", "Did you mean `command`?"),
    ("  build:\n    path: ctx", "  buidl:\n    path: ctx", "key-unknown", "Did you mean `build`?"),
    ("    path: ctx", "    Path: ctx", "key-unknown", "Did you mean `path`?"),
    ("    path: ctx\n    dockerfile_path: D", "  path: ctx\n  dockerfile_path: D", "value-missing", "Indent `path`"),
    ("  build:\n    path: ctx\n    dockerfile_path: Dockerfile", "  build: ctx", "value-kind", "a mapping"),
    ("inputs: {name: World, flag: true}", "input: {name: World}", "key-unknown", "Did you mean `inputs`?"),
    ("inputs: {name: World, flag: true}", "inputs: [name]", "value-kind", "a mapping of names"),
    ("inputs: {name: World, flag: true}\n", "", "input-undefined", "Add `name` under `inputs`."),
    ("echo ${{inputs.name}}", "${{inputs.a}} ${{inputs.b}}", "input-undefined", "There are `name`, `flag`."),
    ("services:\n", "  services:\n", "yaml-syntax", "indentation"),
    ("    dockerfile_path: Dockerfile\n", "    limits: {timeout: 1}\n    x: 1\n", "key-unknown", "indent it less"),
]


@for_each("old, new, code, words", ONE_FAULT)
def test_a_mistake_gives_one_finding_with_its_remedy(old: str, new: str, code: str, words: str, tmp_path: Path) -> None:
    folder(tmp_path)
    text = INLINE.replace(old, new)
    assert text != INLINE
    place = tmp_path / "job.yml"
    place.write_text(text)
    _, errors = ours(place)
    faults = 2 if new.count("${{inputs") == 2 else 1
    assert len(errors) == faults, errors
    assert code in errors[0]
    assert words in errors[0]


def corpus() -> list[Path]:
    """Command job files of a folder named by AMLSTACK_CORPUS; none without it."""
    named = os.environ.get("AMLSTACK_CORPUS")
    return sorted(path for path in Path(named).rglob("*.y*ml") if is_command(path)) if named else []


def is_command(path: Path) -> bool:
    data = yaml_files.load(path.read_text(encoding="utf-8"))
    if not isinstance(data, dict) or data.get("type", "command") != "command" or "command" not in data:
        return False
    ports: Iterable[Any] = (data.get("inputs") or {}).values()
    component = "version" in data or any(isinstance(port, dict) and "description" in port for port in ports)
    return not component and "component" not in str(data.get("$schema", "")).lower()


# Asked for by AMLSTACK_CORPUS; without it there is nothing to run, and nothing to skip.
if FILES := corpus():

    @pytest.mark.parametrize("file", FILES, ids=lambda path: path.name)
    def test_a_damaged_file_of_the_corpus_has_an_answer(file: Path, tmp_path: Path, record_property: Any) -> None:
        text = file.read_text(encoding="utf-8")
        place = tmp_path / "a" / "b" / "c" / "job.yml"
        place.parent.mkdir(parents=True)
        for path in stubs(yaml_files.load(text)):
            stub(place.parent / path)
        tried = [judge(place, each) for each in itertools.islice(mutations.mutations(text), 0, None, SHARE_OF_CORPUS)]
        record_property("verdict", f"{len(tried)} mutations answered")
        assert tried
