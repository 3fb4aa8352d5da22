"""Programs that mean the same get the same verdict, whatever form they are written in."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from pulumi.runtime.proto import analyzer_pb2_grpc

from amlstack.base.paths import PROJECT
from amlstack.rpc.host import CHANNEL_OPTIONS
from policies import config as configuration
from policies.evaluation.subjects import Context
from policies.evaluation.verdicts import judge_early, judge_resource, weigh
from tests.support.policies import equal_programs
from tests.support.policies.equal_programs import (
    WITH_FABRIC,
    WITHOUT_FABRIC,
    Grammar,
    Meant,
    cluster,
    on_cluster,
    serverless,
)
from tests.support.policies.pack_process import ENGINE, started
from tests.support.policies.showing import SIZE_RULES_ALONE, TODAY, request, shown
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.policies.equal_programs import Program, Resource

CONFIG = configuration.read(SIZE_RULES_ALONE)
FORMS = 2_400


def refusals(program: Program) -> set[str]:
    """Codes of what refuses a program: resource by resource, then the stack."""
    context, found = Context(TODAY), []
    for number, (token, props) in enumerate(program):
        name = f"r{number}"
        found += [(one, name) for one in judge_resource(token, props, CONFIG, context, name=name).findings]
    found += [(one, early.name) for one, early in judge_early(CONFIG, context)]
    return {one.code for one, name in found if weigh(one, CONFIG, TODAY, name=name).level == "mandatory"}


VIOLATING = [(WITHOUT_FABRIC, 4), ("Standard_NC24rs_v3", 1), (WITHOUT_FABRIC, "4"), ("standard_nc24R", 1)]


def meant(dice: Random, *, violating: bool) -> list[Meant]:
    """The request of a program; a violating one differs in one value."""
    which = dice.randrange(4)
    size, nodes = dice.choice(VIOLATING)
    if not violating:
        size, nodes = dice.choice([(WITH_FABRIC, 8), (WITHOUT_FABRIC, 1), (WITH_FABRIC.upper(), "2")])
    if which == 0:
        return [cluster(size, nodes)]
    if which == 1:
        return [serverless(size, nodes, grows=dice.randrange(2) == 0)]
    # A job on one of two clusters of one name: the one without a fabric is kept for jobs of one node.
    promised = cluster(WITHOUT_FABRIC, 4, promised=True, workspace="west")
    other = cluster(WITH_FABRIC, 8, workspace="east")
    on = promised if violating else other
    reference = dice.choice(
        [
            on.id,
            f"azureml:{on.id}",
            on.id.upper(),
            f"{on.id}/",
            f"{on.id} ",
            on.id.replace("train", "t%72ain"),
            on.id.replace("/computes", "//computes"),
            "train",
        ]
    )
    clusters = [promised, other]
    dice.shuffle(clusters)
    job = on_cluster(reference, 8, workspace=on.workspace)
    if which == 3 and not reference.endswith("train"):  # jobs before their clusters
        return [job, *clusters]
    return [*clusters, job]


def described(program: Program, grammar: Grammar, seed: str) -> str:
    return f"seed {seed}, forms {grammar.taken}: {program}"


@pytest.mark.parametrize("seed", ["the same", "fresh"])
def test_every_form_of_a_program_gets_the_verdict_of_the_honest_one(seed: str) -> None:
    fresh = str(Random().getrandbits(64)) if seed == "fresh" else seed
    wrong = []
    for number in range(FORMS // 2):
        dice, violating = Random(f"{fresh} {number}"), number % 2 == 0
        grammar = Grammar(dice)
        program = [grammar.written(one) for one in meant(dice, violating=violating)]
        if bool(refusals(program)) is not violating:
            wrong.append(described(program, grammar, f"{fresh} {number}"))

    assert wrong == [], f"{len(wrong)} of {FORMS // 2}, the first: {wrong[0]}"


BAD = cluster(WITHOUT_FABRIC, 4)
GOOD = cluster(WITH_FABRIC, 4)
GENERIC, DEPLOYMENT = "azure-native:resources:Resource", "azure-native:resources:Deployment"
COMPUTE = "azure-native:machinelearningservices:Compute"
ML = equal_programs.ML


def generic(namespace: str, parent: str, kind: str, name: str, body: dict[str, Any]) -> Resource:
    cut = {
        "resourceProviderNamespace": namespace,
        "parentResourcePath": parent,
        "resourceType": kind,
        "resourceName": name,
    }
    return GENERIC, {**cut, **body}


def deployed(template: Any, **beside: Any) -> Resource:
    return DEPLOYMENT, {"properties": {"mode": "Incremental", "template": template, **beside}}


def one(body: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": BAD.type, "name": "west/train", "apiVersion": "2024-04-01", **body, **more}


@for_each(
    "namespace, parent, kind, name",
    [
        (ML, "workspaces", "west/computes", "train"),
        (ML, "", "workspaces/west/computes", "train"),
        (f"{ML}/workspaces/west", "", "computes", "train"),
        (ML, "", "workspaces", "west/computes/train"),
        (ML, "workspaces/west/", "/computes/", "train/"),
        (ML, "workspaces/west/environments/../", "computes", "train"),
        ("Microsoft%2EMachineLearningServices", "workspaces/west", "compute%73", "train"),
        (f"{ML}\\workspaces", "west", "computes", "train?api-version=1"),
        ("Microsoft.Storage/storageAccounts/x/providers/" + ML, "workspaces/west", "computes", "train"),
    ],
)
def test_a_generic_resource_is_read_from_its_address(namespace: str, parent: str, kind: str, name: str) -> None:
    assert refusals([generic(namespace, parent, kind, name, BAD.body)]) == {"sriov-fabric"}
    assert refusals([generic(namespace, parent, kind, name, GOOD.body)]) == set()


INNER = {"vmSize": WITH_FABRIC}
TWICE = [
    (COMPUTE, {**GOOD.body, "Properties": BAD.body["properties"]}),
    (COMPUTE, {"properties": {"computeType": "AmlCompute", "properties": {**INNER, "VMSIZE": WITHOUT_FABRIC}}}),
    (COMPUTE, {"properties": {"computeType": "AmlCompute", "properties": {**INNER, "vm\u017fize": None}}}),
    deployed({"resources": [one(GOOD.body)], "Resources": [one(BAD.body)]}),
    deployed('{"resources": [], "resources": []}'),
    deployed({"resources": [one(GOOD.body)]}, Template={"resources": [one(BAD.body)]}),
    deployed({"resources": [one({"properties": '[json(\'{"a": 1, "A": 2}\')]'})]}),
    ("azapi:index/resource:Resource", {"type": f"{BAD.type}@2024-04-01", "name": "train", "body": '{"a": 1, "a": 2}'}),
]


@for_each("resource", TWICE)
def test_a_name_that_stands_twice_is_refused(resource: Resource) -> None:
    assert refusals([resource]) == {"template-unresolved"}


def test_variables_of_a_job_may_differ_by_letter_case() -> None:
    job = serverless(WITH_FABRIC, 2)
    job.body["properties"]["environmentVariables"] = {"http_proxy": "a", "HTTP_PROXY": "a", "Type": "x", "type": "y"}

    assert refusals([("amlstack:jobs:Job", {"body": job.body})]) == set()


@for_each(
    "whole, refused",
    [
        ({"languageVersion": "2.0", "resources": {"a": one(BAD.body, existing=True)}}, set()),
        (
            {
                "languageVersion": "2.0",
                "resources": {
                    "w": {
                        "type": f"{ML}/workspaces",
                        "name": "west",
                        "existing": True,
                        "resources": {"c": {"type": "computes", "name": "train", **BAD.body}},
                    }
                },
            },
            {"sriov-fabric"},
        ),
        ({"resources": {"a": one(BAD.body, existing=True)}}, {"sriov-fabric"}),
        ({"languageVersion": "1.0", "resources": {"a": one(BAD.body, existing=True)}}, {"sriov-fabric"}),
        ({"languageVersion": "2.0", "resources": [one(BAD.body, existing=True)]}, {"sriov-fabric"}),
        ({"languageVersion": "2.0", "resources": {"a": one(BAD.body, existing="true")}}, {"sriov-fabric"}),
    ],
)
def test_only_a_symbolic_resource_of_language_version_2_can_exist_already(whole: Any, refused: set[str]) -> None:
    assert refusals([deployed(whole)]) == refused


def test_a_null_beside_a_default_and_an_unclear_scope_are_refused() -> None:
    size = one(cluster("[parameters('size')]", 4).body)
    whole = {"parameters": {"size": {"defaultValue": WITHOUT_FABRIC}}, "resources": [size]}
    scope = {"expressionEvaluationOptions": {"scope": "[parameters('scope')]"}}
    inner = {"type": "Microsoft.Resources/deployments", "name": "i", "properties": {"template": whole, **scope}}

    assert refusals([deployed(whole, parameters={"size": {"value": None}})])
    assert refusals([deployed({"resources": [inner], "parameters": {"size": {"defaultValue": WITH_FABRIC}}})])


JOB = "amlstack:jobs:Job"


def job(**more: Any) -> Resource:
    return JOB, {"body": {"properties": {"jobType": "Command", "command": "x", **more}}}


@for_each(
    "resource",
    [
        job(resources={"instanceType": WITHOUT_FABRIC, "instanceCount": 1, "maxInstanceCount": 8}),
        job(resources={"instanceType": WITHOUT_FABRIC, "instanceCount": 1, "instance_count": 8}),
        job(resources={"instanceType": [WITHOUT_FABRIC], "instanceCount": 8}),
        job(resources={"instanceType": WITHOUT_FABRIC, "instanceCount": "8 nodes"}),
        job(type="spark", resources={"instanceType": WITHOUT_FABRIC, "instanceCount": 8}),
        job(computeId=" serverless/", resources={"instanceType": WITHOUT_FABRIC, "instanceCount": 8}),
        job(jobType="AutoML", command=None, taskDetails={"limitSettings": {"maxNodes": 8}}, computeId=BAD.id),
        job(
            jobType="AutoML",
            command=None,
            taskDetails={"limitSettings": {"maxNodes": 8}},
            resources={"instanceType": WITHOUT_FABRIC},
        ),
        job(
            jobType="Pipeline",
            command=None,
            jobs={"a": {"type": "parallel", "computeId": BAD.id, "resources": {"instance_count": 8}}},
        ),
        job(computeId=f"{BAD.id}/", resources={"instanceCount": 1, "maxInstanceCount": 8}),
    ],
)
def test_every_way_to_ask_for_nodes_counts(resource: Resource) -> None:
    promised = (
        COMPUTE,
        {"computeName": "train", "workspaceName": "west", **cluster(WITHOUT_FABRIC, 4, promised=True).body},
    )

    assert refusals([promised]) == set()
    assert refusals([promised, resource])


def test_a_job_is_held_to_the_cluster_of_its_own_workspace() -> None:
    west, east = (
        (COMPUTE, {"computeName": "train", "workspaceName": each.workspace, **each.body})
        for each in (cluster(WITHOUT_FABRIC, 4, promised=True), cluster(WITH_FABRIC, 8, workspace="east"))
    )
    eight = {"instanceCount": 8}

    for order in ([west, east], [east, west]):
        assert refusals([*order, job(computeId=BAD.id, resources=eight)]) == {"sriov-fabric"}
        assert refusals([*order, job(computeId=BAD.id.replace("west", "east"), resources=eight)]) == set()

    somewhere = (COMPUTE, {"computeName": "train", **cluster(WITH_FABRIC, 8).body})
    for order in ([west, somewhere], [somewhere, west]):
        assert refusals([*order, job(computeId=BAD.id, resources=eight)]) == {"sriov-fabric"}


def test_a_promise_of_a_cluster_whose_name_only_azure_knows_is_not_lost() -> None:
    name = "[concat('west/', uniqueString('x'))]"
    promised = deployed({"resources": [one(cluster(WITHOUT_FABRIC, 4, promised=True).body, name=name)]})

    assert refusals([promised]) == set()
    assert refusals([promised, job(computeId=BAD.id, resources={"instanceCount": 8})]) == {"template-unresolved"}


def test_a_job_on_a_cluster_declared_elsewhere_is_named_with_the_stack() -> None:
    context = Context(TODAY)
    token, props = job(computeId=BAD.id, resources={"instanceCount": 8})
    assert judge_resource(token, props, CONFIG, context).findings == ()
    ((note, _),) = judge_early(CONFIG, context)

    assert note.code == "checked-at-up"
    assert "names a cluster that is declared elsewhere" in note.message


def test_an_update_that_grows_a_cluster_has_to_say_its_size() -> None:
    grows = {"properties": {"properties": {"scaleSettings": {"maxNodeCount": 40}}}}
    update = {"type": f"{BAD.type}@2024-04-01", "resourceId": BAD.id, "body": grows}

    assert refusals([("azapi:index/updateResource:UpdateResource", update)]) == {"template-unresolved"}


def test_the_process_that_the_engine_asks_gives_the_same_verdicts(tmp_path: Path) -> None:
    command = [str(PROJECT / "policies" / "analyzer"), ENGINE]
    with (
        started(command, tmp_path, {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}) as address,
        grpc.insecure_channel(address, options=CHANNEL_OPTIONS) as channel,
    ):
        asked = analyzer_pb2_grpc.AnalyzerStub(channel)
        for number in range(12):
            dice, violating = Random(f"served {number}"), number % 2 == 0
            size, nodes = (WITHOUT_FABRIC, 4) if violating else (WITH_FABRIC, 8)
            token, props = Grammar(dice).written(dice.choice([cluster(size, nodes), serverless(size, nodes)]))
            found = shown(asked.Analyze(request(token, props), timeout=300))

            assert any(level == "mandatory" for level, _, _ in found) is violating, (token, props)


BAD_TEMPLATE: dict[str, Any] = {"resources": [one(BAD.body)]}
OPEN_SIZE = {"parameters": {"size": {"type": "string"}}, "resources": [one(cluster("[parameters('size')]", 4).body)]}
NESTED = {"type": "Microsoft.Resources/deployments", "name": "inner"}
EMPTY_TEMPLATE: dict[str, Any] = {"resources": []}
ELSEWHERE = {"template": EMPTY_TEMPLATE, "templateLink": {"uri": "https://example.org/t.json"}}
AZAPI = "azapi:index/resource:Resource"
BRIDGED = "azure:machinelearning/computeCluster:ComputeCluster"


@for_each("resource", [
        (COMPUTE, cluster(WITHOUT_FABRIC, nodes=True).body),
        (COMPUTE, cluster([WITHOUT_FABRIC], 4).body),
        (COMPUTE, {"properties": {**BAD.body["properties"], "computeType": "AmlCompute "}}),
        (BRIDGED, {"vmSize": WITHOUT_FABRIC, "scaleSettings": [{"maxNodeCount": 4}, {"maxNodeCount": 1}]}),
        deployed({"text": "an asset", "hash": "x"}),
        deployed("\ufeff{}"),
        (DEPLOYMENT, {"properties": ELSEWHERE}),
        deployed({"resources": [{**NESTED, "properties": ELSEWHERE}]}),
        deployed({"resources": ["[variables('r')]"], "variables": {"r": one(BAD.body)}}),
        deployed(OPEN_SIZE, parameters={"size": {"value": WITH_FABRIC, "expression": "[externalInputs('a')]"}}),
        deployed(OPEN_SIZE, parameters={"size": {"value": WITH_FABRIC, "reference": {"secretName": "s"}}}),
        deployed({"resources": [one({"properties": "[json('{\"a\": 1, \"a\": 2}')]"})]}),
        deployed({"resources": [one({"properties": "[createObject('a', 1, 'a', 2)]"})]}),
        deployed({"resources": [one({"properties": "[map(createArray(1), lambda('a', 1))]"})]}),
        deployed({"resources": [one({"properties": "[createObject('computeType', 'AmlCompute', 'PROPERTIES', "
            f"createObject('VMSIZE', '{WITHOUT_FABRIC}', 'ScaleSettings', createObject('MaxNodeCount', 4)))]"})]}),
        (AZAPI, {"type": f"{BAD.type}@2024-04-01", "name": "train", "body": [BAD.body]}),
        (AZAPI, {"type": f"{BAD.type}@2024-04-01", "name": "train", "body": GOOD.body,
            "sensitiveBody": {"Properties": {"properties": {"VMSIZE": WITHOUT_FABRIC}}}}),
        ("azapi:index/resourceAction:ResourceAction", {"type": "Microsoft.Resources/resourceGroups@2024-03-01",
            "resourceId": equal_programs.GROUP, "action": "providers/Microsoft.Resources/deployments/d",
            "method": "PUT", "body": {"properties": {"template": BAD_TEMPLATE}}}),
        ("azure-native:authorization:PolicyDefinition", {"policyRule": {"then": {"details": {
            "deployment": {"properties": {"template": BAD_TEMPLATE}}}}}}),
        job(jobType="Pipeline", command=None, jobs=[{"type": "command", "command": "x"}]),
        (COMPUTE, {"properties": json.loads('{"a":' * 900 + "1" + "}" * 900)}),
])  # fmt: skip
def test_what_cannot_be_read_plainly_is_refused(resource: Resource) -> None:
    assert refusals([resource])


SPEC = {"componentSpec": {"type": "command", "command": "x", "resources": {"instance_count": 8}}}
PARENT = f"{equal_programs.GROUP}/providers/{ML}/workspaces/west"
REGISTERED: list[Resource] = [
    ("azure-native:machinelearningservices:ComponentVersion", {"name": "c", "version": "1", "properties": SPEC}),
    generic(ML, "workspaces/west/components/c", "versions", "1", {"properties": SPEC}),
    (AZAPI, {"type": f"{ML}/workspaces/components/versions@2024-04-01", "parentId": f"{PARENT}/components/c",
             "name": "1", "body": {"properties": SPEC}}),
]  # fmt: skip


@pytest.mark.parametrize("registered", REGISTERED)
def test_a_step_is_completed_by_its_component_in_whatever_form_both_are_written(registered: Resource) -> None:
    promised = (COMPUTE, {"computeName": "train", **cluster(WITHOUT_FABRIC, 4, promised=True).body})
    steps = {"a": {"type": "command", "componentId": f"{PARENT}/components/c/versions/1", "computeId": BAD.id}}
    pipeline = {"properties": {"jobType": "Pipeline", "jobs": steps}}

    for token, props in (
        (JOB, {"body": pipeline}),
        generic(ML, "workspaces/west", "jobs", "run", pipeline),
        (AZAPI, {"type": f"{ML}/workspaces/jobs@2024-04-01", "parentId": PARENT, "name": "run", "body": pipeline}),
    ):
        assert refusals([promised, registered, (token, json.loads(json.dumps(props)))]) == {"sriov-fabric"}
