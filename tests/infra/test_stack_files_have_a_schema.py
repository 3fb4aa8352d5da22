"""Editors find what is wrong in a stack file by a schema that is made from the models."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.cli.commands.catalogue import schema
from infra.settings.model.stack import stack_file_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = PROJECT / "docs" / "schema" / "stack.schema.json"
CLUSTER = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}


@cache
def validator() -> jsonschema.Draft7Validator:
    return jsonschema.Draft7Validator(stack_file_schema())


def marked(**settings: Any) -> set[str]:
    """The places that the schema marks, as dotted paths below ``config``."""
    errors = validator().iter_errors({"config": {f"amlstack:{name}": value for name, value in settings.items()}})
    return {".".join(map(str, list(error.absolute_path)[1:])) for error in errors}


def test_the_file_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema.Draft7Validator.check_schema(stack_file_schema())
    schema(settings=True)
    assert PAGE.read_text(encoding="utf-8") == capsys.readouterr().out, (
        "amlstack schema --settings > docs/schema/stack.schema.json"
    )


def test_the_sandboxs_stack_file_names_the_schema_and_has_no_mark() -> None:
    text = (PROJECT / "Pulumi.sandbox.yaml").read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=docs/schema/stack.schema.json\n")
    assert list(validator().iter_errors(yaml.safe_load(text))) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"clusters": [{**CLUSTER, "identity": "system"}]},
        {"environments": ["acpt-pytorch-2.8-cuda12.6", {"name": "mine", "image": "ubuntu:24.04"}]},
        {"jobs": ["job.yml", {"file": "job.py", "rerun": "again"}]},
        {"protect": True, "workspace": {"name": "aml-team"}},
    ],
)
def test_the_schema_marks_nothing_in_what_is_right(settings: Mapping[str, Any]) -> None:
    assert marked(**settings) == set()


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"clusers": []}, ""),
        ({"clusters": [{**CLUSTER, "name": "a b"}]}, "amlstack:clusters.0.name"),
        ({"clusters": [{**CLUSTER, "nodes": {"max": "two"}}]}, "amlstack:clusters.0.nodes.max"),
        ({"jobs": [{"file": "job.py", "on_edit": "canel"}]}, "amlstack:jobs.0"),
    ],
)
def test_the_schema_marks_what_is_wrong(settings: Mapping[str, Any], where: str) -> None:
    assert marked(**settings) == {where}
