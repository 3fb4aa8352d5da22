"""A job file with what was added to its job: the rest of it stays as it was written."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import jobs
from amlstack.cli.main import main
from jobs.azureml.write import file_of, rewritten
from tests.support import yaml_files
from tests.support.jobs import parity_cases as cases
from tests.support.jobs import pipeline_cases, sweep_cases
from tests.support.jobs.written_files import body, specs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

SIZE = "Standard_ND96asr_v4"
FILE = """\
# Trains.
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json

command: >-
    python train.py
    --epochs ${{inputs.epochs}}
inputs:   # what goes in
    epochs: 0x3
    name: "quoted"   # why
resources:
    # two nodes
    instance_count: 2

# who starts the ranks
distribution: {type: PyTorch, process_count_per_instance: 8}
environment_variables:
    NCCL_DEBUG: INFO  # talkative

environment: azureml:acpt@latest
compute: azureml:gpu   # the big one
tags: {a: 'yes', b: "off"}
# The end.
"""


def enriched(path: Path) -> tuple[str | None, Any]:
    loaded = jobs.load(path)
    target = jobs.Target(SIZE, "gpu", 4)
    plan: Any = jobs.resolve(jobs.with_enrich(loaded.jobs[0], True), lambda job: (target, ()), source=loaded.source)
    text = path.read_bytes().decode()
    return rewritten(text, file_of(plan.job), file_of(plan.enriched)), plan


def test_only_what_is_added_differs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-01-01")
    path = tmp_path / "job.yml"
    path.write_text(FILE)
    assert main(["show", str(path), "--as", "yaml", "--size", SIZE]) == 0
    assert capsys.readouterr().out == FILE
    assert main(["show", str(path), "--as", "yaml", "--size", SIZE, "--enrich"]) == 0
    expected = FILE.replace(
        "    instance_count: 2\n",
        "    instance_count: 2\n    shm_size: 450g\n    docker_args: --ipc=host --ulimit memlock=-1\n",
    ).replace(
        "    NCCL_DEBUG: INFO  # talkative\n",
        "    NCCL_DEBUG: INFO  # talkative\n    NCCL_IB_PCI_RELAXED_ORDERING: '1'\n"
        "    UCX_IB_PCI_RELAXED_ORDERING: 'on'\n"
        "    CUDA_DEVICE_ORDER: PCI_BUS_ID\n    NCCL_SOCKET_IFNAME: eth0\n    NCCL_IGNORE_CPU_AFFINITY: '1'\n",
    )
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff"], ids=["plain", "byte-order-mark"])
def test_line_ends_and_the_byte_order_mark_stay(start: str, ends: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_bytes((start + FILE.replace("\n", ends)).encode())
    text, _ = enriched(path)
    assert text is not None
    assert text.startswith(f"{start}# Trains.{ends}")
    assert text.count("\n") == text.count(ends) == FILE.count("\n") + 7


def test_new_blocks_stand_where_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    path.write_text("command: x\nenvironment: azureml:e:1\n\n# where\ncompute: gpu\n# end\n")
    text, _ = enriched(path)
    assert text is not None
    keys = [line.partition(":")[0] for line in text.splitlines() if line[:1].isalpha()]
    assert keys == ["command", "environment", "environment_variables", "compute", "resources"]
    assert "NCCL_IGNORE_CPU_AFFINITY: '1'\n\n# where\ncompute: gpu\nresources:" in text
    assert text.endswith("# end\n")


@for_each("case", cases.ACCEPTED)
def test_the_rewritten_file_is_the_enriched_job(case: str, tmp_path: Path) -> None:
    cases.folder(tmp_path)
    path = tmp_path / "job.yml"
    path.write_text(cases.text(cases.ACCEPTED[case]), encoding="utf-8")
    text, plan = enriched(path)
    if text is None:
        # An alias shares the value that changes; of a key that stands twice one would have to go.
        assert "*" in path.read_text() or case == "key-twice"
        return
    again = tmp_path / "again.yml"
    again.write_text(text, encoding="utf-8")
    loaded = jobs.load(again)
    assert loaded.ok, loaded.findings
    refs = jobs.Refs(environment="inline" if isinstance(plan.enriched.environment, jobs.Environment) else None)
    assert jobs.body(loaded.jobs[0], refs) == jobs.body(plan.enriched, refs)


@for_each("case", sweep_cases.ACCEPTED)
def test_a_rewritten_sweep_is_the_enriched_sweep(case: str, tmp_path: Path) -> None:
    path = tmp_path / "job.yml"
    result = {**sweep_cases.BASE, **(yaml_files.load(sweep_cases.ACCEPTED[case]) or {})}
    path.write_text(yaml_files.dump({key: value for key, value in result.items() if value is not None}))
    text, plan = enriched(path)
    assert text is not None
    removed = [line for line in difflib.ndiff(path.read_text().splitlines(), text.splitlines()) if line[0] == "-"]
    # ruamel writes nothing for null; a mapping that was empty is filled.
    assert [line for line in removed if not line.endswith((": null", ": {}"))] == []
    again = tmp_path / "again.yml"
    again.write_text(text)
    assert jobs.render(jobs.load(again).jobs[0]).body == jobs.render(plan.enriched).body


@for_each("case", pipeline_cases.ACCEPTED)
def test_a_rewritten_pipeline_is_the_enriched_pipeline(case: str, tmp_path: Path) -> None:
    pipeline_cases.folder(tmp_path)
    path = tmp_path / "job.yml"
    path.write_text(f"# first\ntype: pipeline\n{pipeline_cases.ACCEPTED[case]}", encoding="utf-8")
    text, plan = enriched(path)
    assert text is not None
    assert text.startswith("# first\n")
    again = tmp_path / "again.yml"
    again.write_text(text, encoding="utf-8")
    read = jobs.load(again).jobs[0]
    assert isinstance(read, jobs.Pipeline)
    assert (body(read), specs(read)) == (body(plan.enriched), specs(plan.enriched))


def test_a_value_that_keys_share_is_not_changed_in_place() -> None:
    text = "a: &x {b: 1}\nc: *x\n"
    before = {"a": {"b": 1}, "c": {"b": 1}}
    assert rewritten(text, before, {"a": {"b": 2}, "c": {"b": 1}}) is None


@for_each("value", ["on", "1", "0x1", "1e3", "2024-01-01", "null", "~", "", "a: b", "# x", "two\nlines"])
def test_new_text_is_read_as_text(value: str) -> None:
    text = rewritten("a: 1 # why\n", {"a": 1}, {"a": 1, "b": value, "c": [value, {"d": value}]})
    assert text is not None
    assert text.startswith("a: 1 # why\n")
    assert yaml.safe_load(text) == {"a": 1, "b": value, "c": [value, {"d": value}]}


def test_keys_are_changed_and_removed_with_the_rest_in_place() -> None:
    text = "a: 1 # one\nb: 2 # two\nc:\n  - 3 # three\n"
    result = rewritten(text, {"a": 1, "b": 2, "c": [3]}, {"a": True, "c": [3]})
    assert result is not None
    assert yaml.safe_load(result) == {"a": True, "c": [3]}
    assert "# one" in result
    assert "  - 3 # three\n" in result


def test_a_file_that_is_written_anew_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "job.yml"
    path.write_text(f"{cases.text('environment_variables: &a {A: b}')}\ntags: *a\n")
    assert main(["show", str(path), "--as", "yaml", "--size", SIZE, "--enrich"]) == 0
    result = capsys.readouterr()
    assert yaml.safe_load(result.out)["tags"] == {"A": "b"}
    assert "written anew, without comments" in result.err
