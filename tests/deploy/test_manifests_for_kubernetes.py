"""Manifests of deploy/kubernetes: fields that there are, what is safe for training, and Argo CD's eye on a Stack."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import lupa
import pytest
import yaml

from amlstack.cli.gitops import files
from tests.support.deploy import operator_fields, operator_pod
from tests.support.rows import for_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FILES = ("stack.yaml", "argocd/application.yaml")


@pytest.mark.parametrize("file", FILES)
def test_every_object_has_fields_that_there_are(file: str) -> None:
    for one in operator_pod.documents(file):
        jsonschema.validate(one, operator_fields.KINDS[one["apiVersion"], one["kind"]])


def _misspelt(spec: dict[str, Any]) -> None:
    spec["continueResyncOnCommitMatches"] = spec.pop("continueResyncOnCommitMatch")


def _text_for_a_flag(spec: dict[str, Any]) -> None:
    spec["destroyOnFinalize"] = "false"


def _too_often(spec: dict[str, Any]) -> None:
    spec["resyncFrequencySeconds"] = 10


def _no_containers(spec: dict[str, Any]) -> None:
    del spec["workspaceTemplate"]["spec"]["podTemplate"]["spec"]["containers"]


@pytest.mark.parametrize("spoil", [_misspelt, _text_for_a_flag, _too_often, _no_containers])
def test_a_mistake_in_a_stack_is_found(spoil: Callable[[dict[str, Any]], None]) -> None:
    stack = copy.deepcopy(operator_pod.stack_object())
    spoil(stack["spec"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(stack, operator_fields.KINDS["pulumi.com/v1", "Stack"])


def test_the_stack_and_our_statement_of_its_fields_agree_with_the_operators_own() -> None:
    folder = os.environ.get("AMLSTACK_OPERATOR_CRDS")
    if not folder:
        pytest.skip("AMLSTACK_OPERATOR_CRDS names no folder with the operator's pulumi.com_stacks.yaml (v2.9.0)")
    crd = yaml.safe_load((Path(folder) / "pulumi.com_stacks.yaml").read_text("utf-8"))
    (schema,) = (one["schema"]["openAPIV3Schema"] for one in crd["spec"]["versions"] if one["name"] == "v1")
    _close(schema)
    schema["properties"]["metadata"] = {"type": "object"}
    jsonschema.validate(operator_pod.stack_object(), schema)
    for path, ours in _leaves(operator_fields.STACK_SPEC):
        theirs = schema["properties"]["spec"]
        for word in path:
            theirs = theirs["items"] if word == "[]" else theirs["properties"][word]
        assert ours.get("type", theirs["type"]) == theirs["type"], path


@pytest.mark.parametrize(("stack", "taken"), [("a" * 38, True), ("a" * 39, False)])
def test_a_stack_whose_name_the_operator_would_refuse_is_not_filled_in(stack: str, taken: bool) -> None:
    if not taken:
        with pytest.raises(files.NoFilesError, match="38 at most"):
            files.files_of("kubernetes", stack)
        return
    (manifest,) = (one for one in files.files_of("kubernetes", stack) if one.path.name == "stack.yaml")
    for one in yaml.safe_load_all(manifest.content):
        jsonschema.validate(one, operator_fields.KINDS[one["apiVersion"], one["kind"]])


def test_no_end_of_an_object_ends_a_training_run() -> None:
    stack = operator_pod.stack_object()
    assert stack["spec"]["destroyOnFinalize"] is False
    options = stack["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    assert set(options.split(",")) == {"Prune=false", "Delete=false"}
    (application,) = operator_pod.documents("argocd/application.yaml")
    assert application["spec"]["syncPolicy"]["automated"]["prune"] is False
    assert "finalizers" not in application["metadata"]


def test_the_pod_signs_in_as_its_service_account_with_no_secret() -> None:
    account, binding, stack = operator_pod.documents("stack.yaml")
    template = stack["spec"]["workspaceTemplate"]["spec"]
    assert account["metadata"]["name"] == stack["spec"]["serviceAccountName"] == binding["subjects"][0]["name"]
    assert "azure.workload.identity/client-id" in account["metadata"]["annotations"]
    assert template["podTemplate"]["metadata"]["labels"] == {"azure.workload.identity/use": "true"}
    assert not {"envRefs", "gitAuth"} & set(stack["spec"])
    assert all(set(variable) == {"name", "value"} for variable in template["env"])


def health(status: Any, generation: int = 3) -> tuple[str, str]:
    """The values that Argo CD's interpreter gets from the lines of the patch."""
    patch = yaml.safe_load((operator_pod.FILES / "argocd" / "health-patch.yaml").read_text("utf-8"))
    lua = lupa.LuaRuntime(register_eval=False, attribute_filter=_none)
    found: Any = {"metadata": {"generation": generation}} | ({} if status is None else {"status": status})
    lua.globals()["obj"] = _table(lua, found)
    result = lua.execute(patch["data"]["resource.customizations.health.pulumi.com_Stack"])
    return str(result["status"]), str(result["message"])


def conditions(**true: tuple[str, str]) -> dict[str, Any]:
    """A status as the operator writes it: Ready always, and at most one other condition."""
    listed = [{"type": kind, "status": "True", "reason": why, "message": text} for kind, (why, text) in true.items()]
    if "Ready" not in true:
        listed.insert(0, {"type": "Ready", "status": "False", "reason": "NotReadyInProgress", "message": "…"})
    return {"observedGeneration": 3, "conditions": listed}


DONE = conditions(Ready=("ProcessingCompleted", "the stack has been processed and is up to date"))
STATUSES = {
    "never seen": (None, "Progressing", "The operator has not looked at this stack yet"),
    "no conditions": ({}, "Progressing", "The operator has not looked at this stack yet"),
    "running": (
        conditions(Reconciling=("StackProcessing", "stack is being processed")),
        "Progressing",
        "StackProcessing: stack is being processed",
    ),
    "waits for another": (
        conditions(Reconciling=("PrerequisiteNotSatisfied", "network")),
        "Progressing",
        "PrerequisiteNotSatisfied: network",
    ),
    "failed": (
        conditions(Reconciling=("RetryingAfterFailure", "1 policy violation")),
        "Degraded",
        "RetryingAfterFailure: 1 policy violation",
    ),
    "preview failed": (conditions(Reconciling=("PreviewFailed", "no")), "Degraded", "PreviewFailed: no"),
    "stalled": (conditions(Stalled=("UpdateFailed", "again")), "Degraded", "UpdateFailed: again"),
    "succeeded": (
        {**DONE, "lastUpdate": {"state": "succeeded", "lastSuccessfulCommit": "0025fc3"}},
        "Healthy",
        "As declared at 0025fc3",
    ),
    "succeeded, commit unknown": (DONE, "Healthy", "As declared at an unknown commit"),
    "succeeded, then edited": (
        {**DONE, "observedGeneration": 2},
        "Progressing",
        "The operator has not looked at the last change yet",
    ),
}


@for_each("name", STATUSES)
def test_argo_cd_sees_a_stack_as_it_is(name: str) -> None:
    status, *expected = STATUSES[name]
    assert list(health(status)) == expected


def _close(schema: Any) -> None:
    """As a server with strict validation: no field that is not declared."""
    if isinstance(schema, dict):
        if schema.get("type") == "object" and "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        if schema.get("x-kubernetes-int-or-string"):
            schema.pop("type", None)
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _close(inner)


def _leaves(schema: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    if schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from _leaves(inner, (*path, name))
    elif schema.get("items", {}).get("properties"):
        yield from _leaves(schema["items"], (*path, "[]"))
    else:
        yield path, schema


def _table(lua: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return lua.table_from({key: _table(lua, inner) for key, inner in value.items()})
    return lua.table_from([_table(lua, inner) for inner in value]) if isinstance(value, list) else value


def _none(owner: Any, name: str, setting: bool) -> str:
    del owner, setting
    raise AttributeError(name)
