"""Bodies are held against azure-native's generated classes: names, required properties, enums, types."""

# ruff: noqa: E501 - one line per row of a table reads best

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlstack.sandbox import kinds
from amlstack.sandbox.protocol import body_shapes, typecheck
from amlstack.sandbox.protocol.refusals import Refused
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import CURATED, ML, cluster, job

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import ResourceKind

STORAGE = {"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}}


def checked(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    found = kinds.find(kind)
    assert found is not None
    return typecheck.check(found, body)


def with_cluster(**more: Any) -> dict[str, Any]:
    body = cluster()
    body["properties"]["properties"] |= more
    return body


WRONG = [
    (f"{ML}/computes", with_cluster(vmSzie="x"), "properties.properties.vmSzie", "'AmlComputeProperties' has no property 'vmSzie'. Did you mean 'vmSize'?"),
    (f"{ML}/computes", with_cluster(vmPriority="lowPriorty"), "properties.properties.vmPriority", "'lowPriorty' is not allowed. Did you mean 'LowPriority'?"),
    (f"{ML}/computes", with_cluster(scaleSettings={}), "properties.properties.scaleSettings.maxNodeCount", "the required property 'maxNodeCount' of 'ScaleSettings' is missing."),
    (f"{ML}/computes", with_cluster(scaleSettings={"maxNodeCount": "2"}), "properties.properties.scaleSettings.maxNodeCount", "expected an integer, got a string."),
    (f"{ML}/computes", with_cluster(scaleSettings={"maxNodeCount": True}), "properties.properties.scaleSettings.maxNodeCount", "expected an integer, got true or false."),
    (f"{ML}/jobs", job("c", distribution={"distributionType": "Pytorsh"}), "properties.distribution.distributionType", "'Pytorsh' is not allowed. Did you mean 'PyTorch'?"),
    (f"{ML}/jobs", job("c", distribution={"processCountPerInstance": 2}), "properties.distribution.distributionType", "the required property 'distributionType' is missing."),
    (f"{ML}/jobs", job("c", distribution=[]), "properties.distribution", "expected an object, got a list."),
    (f"{ML}/jobs", job("c", environmentVariables={"A": 1}), "properties.environmentVariables.A", "expected a string, got an integer."),
    (f"{ML}/jobs", job("c", inputs={"a": {"jobInputType": "literal"}}), "properties.inputs.a.value", "the required property 'value' of 'LiteralJobInput' is missing."),
    (f"{ML}/jobs", job("c", resources={"dockerArgsList": ["a", 1]}), "properties.resources.dockerArgsList[1]", "expected a string, got an integer."),
    (f"{ML}/jobs", {"properties": {"jobType": "Command", "command": "c"}}, "properties.environmentId", "the required property 'environmentId' of 'CommandJob' is missing."),
    (f"{ML}/jobs", {}, "properties", "the required property 'properties' of a job is missing."),
    (f"{ML}/environments/versions", {"properties": {"image": "x", "condaFiel": "y"}}, "properties.condaFiel", "'EnvironmentVersionProperties' has no property 'condaFiel'. Did you mean 'condaFile'?"),
    ("Microsoft.Storage/storageAccounts", {**STORAGE, "allowSharedKeyAccess": False}, "allowSharedKeyAccess", "a storage account has no property 'allowSharedKeyAccess'. It belongs under 'properties'."),
    ("Microsoft.Storage/storageAccounts", {"location": "e", "kind": "StorageV2", "properties": {"sku": {}}}, "properties.sku", "a storage account has no property 'sku'. 'sku' belongs at the top of the body, beside 'properties'."),
    ("Microsoft.Storage/storageAccounts", {**STORAGE, "sku": {"name": "Standard_LSR"}}, "sku.name", "'Standard_LSR' is not allowed. Did you mean 'Standard_LRS' or 'StandardV2_LRS' or 'Standard_ZRS'?"),
    ("Microsoft.Storage/storageAccounts", {**STORAGE, "properties": {"enableHttpsTrafficOnly": True}}, "properties.enableHttpsTrafficOnly", "a storage account has no property 'enableHttpsTrafficOnly'. Did you mean 'supportsHttpsTrafficOnly'?"),
    ("Microsoft.Storage/storageAccounts", {**STORAGE, "properties": []}, "properties", "expected an object, got a list."),
    ("Microsoft.Insights/components", {"location": "e", "kind": "web", "properties": {"applicationType": "web"}}, "properties.applicationType", "an Application Insights component has no property 'applicationType'. Did you mean 'Application_Type'?"),
]  # fmt: skip


@for_each("kind, body, path, message", WRONG)
def test_what_is_wrong_is_named_with_its_path_and_what_was_meant(
    kind: str, body: dict[str, Any], path: str, message: str
) -> None:
    with pytest.raises(Refused) as refused:
        checked(kind, body)

    assert (refused.value.status, refused.value.code) == (400, "InvalidRequestContent")
    assert refused.value.message == f"The request content was invalid at '{path}': {message}"


RIGHT = [
    job("c", distribution={"distributionType": "PyTorch", "processCountPerInstance": 8}),
    job("c", distribution={"distributionType": "Ray", "port": 6379, "includeDashboard": True}),
    job("c", queueSettings={"jobTier": "Null", "priority": 1}, resources={"locations": ["westus"], "instanceCount": 2}),
    job("c", inputs={"a": {"jobInputType": "literal", "value": "1"}, "b": {"jobInputType": "uri_folder", "uri": "u"}}),
    job("c", outputs={"o": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount", "assetVersion": "3"}}),
    job("c", limits={"jobLimitsType": "Command", "timeout": "PT5M"}, identity={"identityType": "AMLToken"}),
    job(
        "c", properties={"amlstack.run_identity": "x"}, tags={"team": "a"}, environmentVariables={"NCCL_DEBUG": "INFO"}
    ),
]


@for_each("body", RIGHT)
def test_jobs_that_the_service_takes_pass_unchanged(body: dict[str, Any]) -> None:
    assert checked(f"{ML}/jobs", body) == body


def test_null_is_absent_and_a_whole_number_is_an_integer() -> None:
    """Protobuf knows only doubles and clients write null for what is unset."""
    body = job(None, description=None, resources={"instanceCount": 2.0}, tags={"a": None, "b": "c"})

    assert checked(f"{ML}/jobs", body)["properties"] == {
        "jobType": "Command",
        "command": "python train.py",
        "environmentId": CURATED,
        "resources": {"instanceCount": 2},
        "tags": {"b": "c"},
    }


def test_a_number_among_an_assets_properties_is_its_digits() -> None:
    body = {"properties": {"codeUri": "https://x", "properties": {"hash_version": 202208}}}

    assert checked(f"{ML}/codes/versions", body)["properties"]["properties"] == {"hash_version": "202208"}


def test_what_a_get_answered_may_be_put_back() -> None:
    envelope = {"id": "/x", "name": "x", "type": "t", "etag": "e", "systemData": {}}
    body = {**STORAGE, **envelope, "properties": {"provisioningState": "Succeeded", "accessTier": "Hot"}}

    assert checked("Microsoft.Storage/storageAccounts", body) == {**STORAGE, "properties": {"accessTier": "Hot"}}


@for_each("kind", [kind for kind in kinds.ALL if body_shapes.schema_of(kind.type)])
def test_every_kind_finds_its_generated_class(kind: ResourceKind) -> None:
    """A newer azure-native that renames a property must not pass unnoticed."""
    schema = body_shapes.schema_of(kind.type)
    assert schema is not None
    names = set(body_shapes.body_shape(schema).fields)

    assert schema.path - {"subscriptionId"} <= names
    assert set(schema.wire) <= names


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["jobType", "command", "environmentId", "distribution", "resources", "inputs", "tags", "x"]),
        values,
    )
)
def test_any_json_is_taken_or_refused_never_a_fault(properties: dict[str, Any]) -> None:
    with contextlib.suppress(Refused):
        assert checked(f"{ML}/jobs", {"properties": properties})["properties"]["jobType"] in {"Command", "Spark"}
