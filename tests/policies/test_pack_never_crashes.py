"""Whatever stands in a resource, the pack judges it or says that it has to wait: it never fails."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from policies.checks import RULES
from policies.evaluation.facts import Unknown, number_of
from policies.evaluation.subjects import FACTS, OWN, Address, KnownCluster
from policies.pack.server import Pack
from tests.support.examples import examples
from tests.support.policies.showing import TODAY, request, shown

WORDS = (
    "properties", "template", "resources", "type", "computeType", "vmSize", "scaleSettings", "maxNodeCount", "tags",
    "minNodeCount", "nodeIdleTimeBeforeScaleDown", "location", "identity", "subnet", "id", "command", "computeId",
    "environmentId", "environmentVariables", "NCCL_IB_DISABLE", "distribution", "processCountPerInstance", "limits",
    "timeout", "outputs", "mode", "queueSettings", "jobTier", "instanceType", "instanceCount", "shmSize", "dockerArgs",
    "jobs", "trial", "body", "image", "computeName", "addressSpace", "addressPrefixes", "virtualNetworkName",
    "parameters", "variables", "defaultValue", "value", "copy", "count", "name", "input", "condition", "functions",
)  # fmt: skip
TOKENS = (
    "azure-native:machinelearningservices:Compute", "azure:machinelearning/computeCluster:ComputeCluster",
    "azure-native:machinelearningservices:Job", "azure-native:machinelearningservices:Schedule",
    "azure-native:resources:Resource", "azure-native:resources:Deployment", "azure-native:network:VirtualNetwork",
    "azure-native:storage:StorageAccount", "amlstack:jobs:Job", "amlstack:environments:Version",
    "azure-native:resources:TemplateSpecVersion", "azure-native:compute:VirtualMachineScaleSet",
)  # fmt: skip
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 100),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.sampled_from(
        ["", "AmlCompute", "Standard_ND96isr_H100_v5", "Standard_NC24r", "PT1H", "[parameters('value')]",
         "${{parent.x}}",
         "[if(variables('value'), copyIndex(), concat('a', reference('b')))]", "[json('{')]", "[a(",
         "Microsoft.Resources/deployments",
         "172.16.0.0/12", "azureml:a@latest", "Spot", "2g", "1e999", UNKNOWN_STRING_VALUE, UNKNOWN_OBJECT_VALUE,
         "Microsoft.MachineLearningServices/workspaces/computes", "Microsoft.MachineLearningServices/workspaces/jobs"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=6),
    max_leaves=25,
)
PROPS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6)
SAID: dict[str, Any] = {rule.code: {"enforcementLevel": "remediate", **rule.words.sample} for rule in RULES}


def nested(token: str, inner: Any) -> dict[str, Any]:
    """The value where a token's rules look, so that more than the outermost lines are reached."""
    if token == "amlstack:jobs:Job":
        return {"body": {"properties": inner}}
    if token.endswith(":Deployment"):
        return {"properties": {"template": {"resources": inner}}}
    return {"properties": inner, "computeType": "AmlCompute"}


@settings(max_examples=examples(1), deadline=None)
@given(token=st.sampled_from(TOKENS), props=PROPS, deep=st.booleans())
def test_any_properties_are_judged(token: str, props: dict[str, Any], deep: bool) -> None:
    pack = Pack("amlstack", "1.0.0", TODAY, SAID)
    asked = request(token, nested(token, props) if deep else props)

    for level, code, message in shown(pack.Analyze(asked, None)):
        assert level in {"mandatory", "advisory"}
        assert message.endswith(f"[{code}]")
    pack.Remediate(asked, None)


CLUSTER = {fact: path for fact, (path,) in FACTS["cluster"].items() if fact != "size"}
JOB = {path for paths in OWN.values() for path in paths} | {("computeId",)}


def put(props: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        props = props.setdefault(name, {})
    props[path[-1]] = value


@pytest.mark.parametrize("path", sorted(JOB), ids=".".join)
@settings(max_examples=examples(0.15), deadline=None)
@given(value=VALUES, serverless=st.booleans())
def test_any_value_of_a_job_is_judged(path: tuple[str, ...], value: Any, serverless: bool) -> None:
    pack = Pack("amlstack", "1.0.0", TODAY, SAID)
    pack._context.clusters.add(Address(name="c"), KnownCluster("Standard_ND40rs_v2", low_priority=True))
    job: dict[str, Any] = {"command": "x", "resources": {"instanceCount": 2}}
    put(
        job,
        ("resources", "instanceType") if serverless else ("computeId",),
        "Standard_ND40rs_v2" if serverless else "c",
    )
    put(job, path, value)
    asked = request("amlstack:jobs:Job", {"body": {"properties": job}})

    pack.Analyze(asked, None)
    pack.Remediate(asked, None)


@pytest.mark.parametrize("fact", sorted(CLUSTER))
@settings(max_examples=examples(0.15), deadline=None)
@given(value=VALUES)
def test_any_value_of_a_cluster_is_judged(fact: str, value: Any) -> None:
    pack = Pack("amlstack", "1.0.0", TODAY, SAID)
    cluster: dict[str, Any] = {}
    put(cluster, ("properties", "computeType"), "AmlCompute")
    put(cluster, ("properties", "properties", "vmSize"), "Standard_ND40rs_v2")
    put(cluster, CLUSTER[fact], value)
    asked = request(TOKENS[0], cluster)

    pack.Analyze(asked, None)
    pack.Remediate(asked, None)


@pytest.mark.parametrize("value", ["1e999", "-1e999", "nan", "0x10"])
def test_a_number_that_is_none_is_left_open(value: str) -> None:
    assert isinstance(number_of(value, ("a",)), int | Unknown)
    pack = Pack("amlstack", "1.0.0", TODAY, SAID)
    scale = {"maxNodeCount": value, "minNodeCount": value}
    inner = {"vmSize": "Standard_ND40rs_v2", "scaleSettings": scale}
    asked = request(TOKENS[0], {"properties": {"computeType": "AmlCompute", "properties": inner}})

    assert "node-ceiling" in str(shown(pack.Analyze(asked, None)))
