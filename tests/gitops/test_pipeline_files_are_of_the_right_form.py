"""The files of deploy/azure-pipelines as a schema sees them, and what all files of deploy have in common.

The small schema here has the keys that the files use, so that a misspelled one is found. Microsoft's own schema is
asked where AMLSTACK_PIPELINES_SCHEMA names it: service-schema.json of microsoft/azure-pipelines-vscode (MIT).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from amlstack.base.paths import PROJECT
from tests.support.rows import for_each

PIPELINES = sorted((PROJECT / "deploy" / "azure-pipelines").glob("*.yml"))
WORKFLOWS = sorted((PROJECT / "deploy" / "github").glob("*.yml"))


def closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def any_of(*options: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": list(options)}


TEXT, NUMBER, TRUTH = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
BRANCHES = closed(["include"], include=TEXTS)
AZURE_CLI = closed(
    ["azureSubscription", "scriptType", "scriptLocation", "inlineScript"],
    azureSubscription=TEXT,
    scriptType={"const": "bash"},
    scriptLocation={"const": "inlineScript"},
    addSpnToEnvironment=TRUTH,
    inlineScript=TEXT,
)
OF_STEP = {"displayName": TEXT, "condition": TEXT, "name": TEXT}
STEP = any_of(
    closed(["checkout"], checkout={"const": "self"}, fetchDepth=NUMBER, persistCredentials=TRUTH),
    closed(["bash", "displayName"], bash=TEXT, env={"type": "object"}, **OF_STEP),
    closed(["task", "inputs"], task={"const": "AzureCLI@2"}, inputs=AZURE_CLI, env={"type": "object"}, **OF_STEP),
    closed(
        ["task", "inputs"],
        task={"const": "Cache@2"},
        inputs=closed(["key", "path"], key=TEXT, restoreKeys=TEXT, path=TEXT),
    ),
    closed(["publish", "artifact"], publish=TEXT, artifact=TEXT, condition=TEXT),
    closed(["download"], download={"const": "current"}, artifact=TEXT),
)
STEPS = {"type": "array", "items": STEP, "minItems": 1}
OF_JOB = {"displayName": TEXT, "condition": TEXT, "timeoutInMinutes": NUMBER, "dependsOn": any_of(TEXT, TEXTS)}
DEPLOY = closed(["runOnce"], runOnce=closed(["deploy"], deploy=closed(["steps"], steps=STEPS)))
JOB = any_of(
    closed(["job", "steps", "timeoutInMinutes"], job=TEXT, steps=STEPS, **OF_JOB),
    closed(["deployment", "environment", "strategy"], deployment=TEXT, environment=TEXT, strategy=DEPLOY, **OF_JOB),
)
VARIABLE = any_of(closed(["group"], group=TEXT), closed(["name", "value"], name=TEXT, value=TEXT))
SCHEDULE = closed(["cron", "branches"], cron=TEXT, displayName=TEXT, branches=BRANCHES, always=TRUTH)
STARTS = any_of({"const": "none"}, closed(["branches"], branches=BRANCHES, batch=TRUTH))
SCHEMA = closed(
    ["trigger", "pr", "pool", "variables", "jobs"],
    trigger=STARTS,
    pr=STARTS,
    schedules={"type": "array", "items": SCHEDULE},
    lockBehavior={"enum": ["sequential", "runLatest"]},
    pool=closed(["vmImage"], vmImage={"const": "ubuntu-24.04"}),
    variables={"type": "array", "items": VARIABLE},
    jobs={"type": "array", "items": JOB, "minItems": 1},
)


def wrong(content: Any, schema: dict[str, Any]) -> list[str]:
    return [
        str(jsonschema.exceptions.best_match([each]))
        for each in jsonschema.Draft7Validator(schema).iter_errors(content)
    ]


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.name)
def test_a_pipeline_has_the_keys_that_the_service_knows(file: Path) -> None:
    assert wrong(yaml.safe_load(file.read_text("utf-8")), SCHEMA) == []


def test_a_misspelled_key_is_found() -> None:
    content = yaml.safe_load(PIPELINES[0].read_text("utf-8"))
    content["jobs"][0]["timeoutInMinute"] = content["jobs"][0].pop("timeoutInMinutes")
    assert wrong(content, SCHEMA)


@pytest.mark.parametrize("file", PIPELINES, ids=lambda file: file.name)
@pytest.mark.skipif(not os.environ.get("AMLSTACK_PIPELINES_SCHEMA"), reason="AMLSTACK_PIPELINES_SCHEMA names no schema")
def test_a_pipeline_is_valid_by_microsofts_schema(file: Path) -> None:
    schema = softened(json.loads(Path(os.environ["AMLSTACK_PIPELINES_SCHEMA"]).read_text("utf-8")))
    assert wrong(yaml.safe_load(file.read_text("utf-8")), schema) == []


def softened(schema: Any) -> Any:
    """The service reads numbers and truth values as text where its schema asks for text."""
    if isinstance(schema, list):
        return [softened(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: softened(each) for name, each in schema.items()}
    return {**found, "type": ["string", "boolean", "integer"]} if found.get("type") == "string" else found


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_actions_are_pinned_by_digest_and_say_their_version(file: Path) -> None:
    used = re.findall(r"uses: (.*)", file.read_text("utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"actions/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


@for_each("file", [*WORKFLOWS, *PIPELINES])
def test_no_file_reads_a_stored_secret_or_puts_words_of_others_into_a_script(file: Path) -> None:
    text = file.read_text("utf-8")
    assert "secrets." not in text
    assert not re.search(r"AZURE_CLIENT_SECRET|ARM_CLIENT_SECRET|AZURE_STORAGE_KEY|PASSPHRASE", text)
    scripts = []
    for job in yaml.safe_load(text)["jobs"].values() if file.parent.name == "github" else ():
        scripts += [step["run"] for step in job["steps"] if "run" in step]
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_every_job_names_its_rights_and_its_limit(file: Path) -> None:
    workflow = yaml.safe_load(file.read_text("utf-8"))
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow or file.stem == "amlstack-main"  # there, each deployment has its stack's own
    for job in workflow["jobs"].values():
        assert job["permissions"]
        assert job["timeout-minutes"]
