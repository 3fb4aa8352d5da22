"""The published JSON Schema: current, valid, with every key that is read, right about files right and wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import automl_cases
import jsonschema
import other_step_cases
import parity_cases as cases
import pipeline_cases
import pytest
import sweep_cases
import test_schedules
import transfer_cases
import yaml
from schema_blocks import BLOCKS, KINDS, Block

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from jobs import load
from jobs.azureml import fields, schema, schema_component, schema_readers
from jobs.azureml.read import runtime

if TYPE_CHECKING:
    from pathlib import Path

PAGE = PROJECT / "docs" / "schema" / "job.schema.json"
SCHEMA = schema.job_files()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
EXAMPLES = [
    path
    for path in sorted((PROJECT / "examples").rglob("*.yml"))
    if "command" in (yaml.safe_load(path.read_text()) or {}) or "jobs" in (yaml.safe_load(path.read_text()) or {})
]
COMPONENTS = {
    "command": pipeline_cases.COMPONENT,
    "bare": pipeline_cases.BARE,
    "more": pipeline_cases.MORE,
    "parallel": other_step_cases.PARALLEL,
    "spark": other_step_cases.SPARK,
    "pipeline": other_step_cases.INNER,
    "pipeline-of-pipelines": other_step_cases.DEEP,
}
PIPELINES = {**pipeline_cases.ACCEPTED, **other_step_cases.ACCEPTED}
REFUSED = {
    **{
        f"{kind}-{case}": f"type: pipeline\n{text}" if not text.startswith("type:") else text
        for kind, told in (("pipeline", pipeline_cases.REFUSED), ("other", other_step_cases.REFUSED))
        for case, text in told.items()
    },
    **{f"schedule-{case}": f"name: s\n{text}" for case, text in test_schedules.REFUSED.items()},
}
BEYOND = {
    "pipeline-component-missing",
    "other-pipeline-missing",
    "other-parallel-of-a-command",
    "other-command-of-a-parallel",
    "schedule-file-missing",
    "schedule-time-unquoted",
    *(f"other-{case}" for case in automl_cases.REFUSED if case not in automl_cases.MARKED),
    *(f"other-{case}" for case in transfer_cases.REFUSED if case not in transfer_cases.MARKED),
}
"""What stands in another file, what an editor's YAML does not tell apart, and what is described by name only."""
MARKED = {"pytorch-count-cut", "limits-cut"}
"""Taken with a warning."""


def plain(value: Any) -> Any:
    """A YAML value as an editor has it: text for dates, and keys that are text."""
    return json.loads(json.dumps(value, default=str))


def faults(told: Any) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(plain(told))]


def test_the_published_schema_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, "amlstack schema > docs/schema/job.schema.json"


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(schema.job_files())


@pytest.mark.parametrize("name", BLOCKS)
def test_it_says_what_each_key_is(name: str) -> None:
    def told(each: Any) -> bool:
        ref = each.get("$ref", "").removeprefix("#/definitions/")
        return "description" in each or (bool(ref) and told(SCHEMA["definitions"][ref]))

    keys = described(name, BLOCKS[name])["properties"]
    assert [key for key, each in keys.items() if not told(each) and key != "$schema"] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_examples_are_right(path: Path) -> None:
    assert faults(yaml.safe_load(path.read_text())) == []


@pytest.mark.parametrize("case", sorted({*cases.ACCEPTED} - MARKED))
def test_what_azure_ai_ml_takes_is_not_marked(case: str) -> None:
    assert faults(yaml.safe_load(cases.text(cases.ACCEPTED[case]))) == []


@pytest.mark.parametrize("case", sorted(MARKED))
def test_what_only_warns_is_marked(case: str) -> None:
    assert faults(yaml.safe_load(cases.text(cases.ACCEPTED[case])))


@pytest.mark.parametrize("case", sweep_cases.ACCEPTED)
def test_sweeps_that_azure_ai_ml_takes_are_not_marked(case: str) -> None:
    told = {**sweep_cases.BASE, **(yaml.safe_load(sweep_cases.ACCEPTED[case]) or {})}
    assert faults({key: value for key, value in told.items() if value is not None}) == []


def written(folder: Path, text: str) -> tuple[Any, list[str]]:
    """A file's content as an editor sees it, and the errors that its reader finds in it."""
    pipeline_cases.folder(folder)
    other_step_cases.folder(folder)
    (folder / "pipeline.yml").write_text(test_schedules.PIPELINE)
    path = folder / "file.yml"
    path.write_text(text)
    return yaml.safe_load(text), [str(each) for each in load(path).findings if each.level == "error"]


@pytest.mark.parametrize("case", PIPELINES)
def test_pipelines_that_azure_ai_ml_takes_are_not_marked(case: str, tmp_path: Path) -> None:
    told, errors = written(tmp_path, f"type: pipeline\n{PIPELINES[case]}")
    assert (errors, faults(told)) == ([], [])


@pytest.mark.parametrize("case", test_schedules.ACCEPTED)
def test_schedules_that_azure_ai_ml_takes_are_not_marked(case: str, tmp_path: Path) -> None:
    told, errors = written(tmp_path, f"name: s\n{test_schedules.ACCEPTED[case]}")
    assert (errors, faults(told)) == ([], [])


@pytest.mark.parametrize("name", COMPONENTS)
def test_component_files_are_not_marked(name: str) -> None:
    assert faults(yaml.safe_load(COMPONENTS[name])) == []


@pytest.mark.parametrize("case", sorted({*REFUSED} - BEYOND))
def test_a_pipeline_or_schedule_is_marked_when_it_is_refused(case: str, tmp_path: Path) -> None:
    told, errors = written(tmp_path, REFUSED[case])
    assert bool(faults(told)) == bool(errors)


@pytest.mark.parametrize("case", sorted({*sweep_cases.REFUSED} - {"input-unbound"}))
def test_a_sweep_is_marked_when_it_is_refused(case: str) -> None:
    told = {**sweep_cases.BASE, **(yaml.safe_load(sweep_cases.REFUSED[case]) or {})}
    assert faults({key: value for key, value in told.items() if value is not None})


def test_what_a_choice_varies_in_turn_is_marked_when_it_is_refused() -> None:
    def space(values: list[Any]) -> dict[str, Any]:
        return {**sweep_cases.BASE, "search_space": {"lr": {"type": "choice", "values": values}}}

    assert faults(space([{"x": {"type": "randint", "upper": 3}}, 1])) == []
    assert faults(space([{"x": {"type": "randit", "upper": 3}}]))
    assert faults(space([{"x": {"type": "choice", "values": [{"y": {"type": "uniform", "min_value": 1}}]}}]))


def described(name: str, block: Block) -> dict[str, Any]:
    told = SCHEMA["definitions"]
    for step in block.definition or (name,):
        told = told[step]
    return told


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_has_the_keys_that_are_read_and_no_others(name: str) -> None:
    block = BLOCKS[name]
    assert set(described(name, block)["properties"]) == {*block.known, *block.ignored}


@pytest.mark.parametrize("name", BLOCKS)
def test_the_reader_knows_the_keys_of_a_block(name: str, tmp_path: Path) -> None:
    block = BLOCKS[name]
    keys = [
        key
        for key, each in described(name, block)["properties"].items()
        if each.get("not") != {} and each != schema_component.REFUSED  # named in order to be refused
    ]
    file = block.filled({**dict.fromkeys(keys), **block.example})
    (tmp_path / "file.yml").write_text(yaml.safe_dump(file))
    assert [each for each in load(tmp_path / "file.yml").findings if each.code == "key-unknown"] == []


def test_kinds_of_distributions_and_the_like_have_the_keys_that_are_read() -> None:
    told = SCHEMA["definitions"]
    seen = [set(each["properties"]) for each in told["distribution"]["anyOf"]]
    assert seen == [set(table) for _, table in runtime._KINDS.values()]
    assert set(told["queue_settings"]["properties"]) == set(runtime._QUEUE)
    assert set(told["identity"]["properties"]) == set(runtime._IDS)
    assert set(told["services"]["additionalProperties"]["properties"]) >= set(runtime._SERVICE)


def test_blocks_are_all_that_the_schema_describes() -> None:
    told = {name for name, each in SCHEMA["definitions"].items() if "properties" in each}
    seen = {*BLOCKS, *(block.definition[0] for block in BLOCKS.values() if block.definition)}
    assert told - seen == {"pipeline_component", "identity", "queue_settings", "automl_step", "transfer_step"}, (
        "held by name, or below by kind"
    )


def cases_of_keys() -> list[Any]:
    made = []
    for name, block in BLOCKS.items():
        made += [
            pytest.param(block.filled({**block.example, f"{key}x": "x"}), id=f"{name}-{key}") for key in block.known
        ]
    for name, (file, example) in KINDS.items():
        block = Block(file, example, ())
        made += [pytest.param(block.filled({**example, f"{key}x": "x"}), id=f"{name}-{key}") for key in (*example, "a")]
    return made


@pytest.mark.parametrize("file", cases_of_keys())
def test_a_misspelt_key_is_marked_when_it_is_refused(file: dict[str, Any], tmp_path: Path) -> None:
    told, errors = written(tmp_path, yaml.safe_dump(file))
    assert bool(faults(told)) == bool(errors), errors


@pytest.mark.parametrize("name", [*BLOCKS, *KINDS])
def test_examples_of_blocks_are_taken(name: str, tmp_path: Path) -> None:
    block = BLOCKS[name] if name in BLOCKS else Block(*KINDS[name], ())
    told, errors = written(tmp_path, yaml.safe_dump(block.filled(block.example)))
    assert (errors, faults(told)) == ([], [])


def test_a_reader_that_nobody_described_is_refused() -> None:
    with pytest.raises(KeyError):
        schema_readers.of(lambda cursor: cursor.value)
    assert schema_readers.of(fields.listed(fields.text)) == {"type": "array", "items": {"type": "string"}}


@pytest.mark.parametrize(
    "lines",
    [
        "comand: x\n",
        "command: 3\n",
        "type: pipelin\n",
        "environment: acpt\n",
        "environment: {}\n",
        "environment: {image: x, build: {path: y}}\n",
        "environment: {image: x, imgae: y}\n",
        "inputs: {a: {tpye: uri_file}}\n",
        "inputs: {a: {type: uri_fil}}\n",
        "inputs: {a: [1]}\n",
        "inputs: {a-b: 1}\n",
        "outputs: {a: x}\n",
        "distribution: {type: pytorhc}\n",
        "distribution: {type: mpi, worker_count: 1}\n",
        "distribution: {type: mpi, process_count_per_instance: 0}\n",
        "distribution: {process_count_per_instance: 1}\n",
        "resources: {instance_cout: 2}\n",
        "resources: {instance_count: two}\n",
        "limits: {timeout: -1}\n",
        "limits: {timeout: soon}\n",
        "tags: {a: 1}\n",
        "tags: a\n",
        "identity: {type: me}\n",
        "identity: {type: user_identity, client_id: a}\n",
        "queue_settings: {job_tier: gold}\n",
        "services: {a: {type: ssh, nodes: '0'}}\n",
        "services: {a: {type: vs_code, log_dir: x}}\n",
        "inputs: {a: {type: uri_folder, path: x, mode: eval_mount}}\n",
        "outputs: {a: {name: a.b}}\n",
        "outputs: {a: {version: 1}}\n",
        "environment: {image: x, conda_file: 'file:conda.yml'}\n",
        "compute:\n",
    ],
)
def test_what_is_wrong_is_marked(lines: str) -> None:
    assert faults(yaml.safe_load(cases.text(lines)))


def test_a_file_without_a_command_is_marked() -> None:
    assert "'command' is a required property" in faults({"environment": "azureml:e:1"})
    assert "'trial' is a required property" in faults({"type": "sweep"})
