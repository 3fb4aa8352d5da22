"""ARM templates: whatever is deployed inside one is judged as if it stood in the program."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_OBJECT_VALUE, UNKNOWN_STRING_VALUE

from tests.support.policies.pack_subjects import COMPUTE, cluster, command, pack, seen
from tests.support.policies.showing import SIZE_RULES_ALONE, request, shown
from tests.support.rows import for_each

DEPLOYMENT = "azure-native:resources:Deployment"
GOOD, RETIRED_SIZE, NO_FABRIC = "Standard_ND96isr_H100_v5", "Standard_NC24rs_v3", "Standard_NC96ads_A100_v4"
REFUSED, OPEN = ["mandatory size-retired"], ["mandatory template-unresolved"]


def arm(kind: str, props: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "name": "w/train", "apiVersion": "2025-12-01", **props, **more}


ML = "Microsoft.MachineLearningServices/workspaces"
RETIRED = cluster(vmSize=RETIRED_SIZE)


def template(*resources: Any, **sections: Any) -> dict[str, Any]:
    return {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#",
            "contentVersion": "1.0.0.0", "resources": list(resources), **sections}  # fmt: skip


def sized(size: Any, **more: Any) -> dict[str, Any]:
    return arm(f"{ML}/computes", cluster(vmSize=size), **more)


def deployed(whole: Any, **beside: Any) -> dict[str, Any]:
    return {"resourceGroupName": "g", "properties": {"mode": "Incremental", "template": whole, **beside}}


def verdict(whole: Any, config: dict[str, Any] | None = None, **beside: Any) -> list[str]:
    return seen(pack(SIZE_RULES_ALONE if config is None else config), DEPLOYMENT, deployed(whole, **beside))


def nested(inner: Any, scope: str | None = None, **more: Any) -> dict[str, Any]:
    options = {} if scope is None else {"expressionEvaluationOptions": {"scope": scope}}
    return {"type": "Microsoft.Resources/deployments", "name": "inner", "apiVersion": "2024-03-01",
            "properties": {"mode": "Incremental", "template": inner, **options, **more}}  # fmt: skip


@for_each("resources", [
        [arm(f"{ML}/computes", RETIRED)],
        {"symbolic": arm(f"{ML}/computes", RETIRED)},
        [arm(ML, {}, resources=[arm("computes", RETIRED)])],
        [nested({"resources": [arm(f"{ML}/computes", RETIRED)]})],
        [nested(template(arm(f"{ML}/computes", RETIRED)), "inner")],
        [nested(template(nested(template(sized("[parameters('s')]"), parameters={"s": {}}), "inner",
                                parameters={"s": {"value": RETIRED_SIZE}})))],
        [{"type": "Microsoft.Storage/storageAccounts", "name": "s"}, arm(f"{ML}/computes", RETIRED)],
])  # fmt: skip
def test_an_arm_template_hides_nothing(resources: Any) -> None:
    found = seen(pack(), DEPLOYMENT, {"properties": {"template": {"resources": resources}}})

    assert found == REFUSED


def held(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for name in reversed(path):
        value = {name: value}
    return dict(value)


POLICY = ("policyRule", "then", "details", "deployment", "properties", "template")
HOLDERS: list[tuple[str, tuple[str, ...]]] = [
    *((f"resources:Deployment{scope}", ("properties", "template"))
      for scope in ("", "AtScope", "AtSubscriptionScope", "AtManagementGroupScope", "AtTenantScope")),
    *((f"resources:DeploymentStack{scope}", ("template",))
      for scope in ("AtResourceGroup", "AtSubscription", "AtManagementGroup")),
    ("resources:DeploymentStacksWhatIfResultsAtResourceGroup", ("properties", "template")),
    ("resources:TemplateSpecVersion", ("mainTemplate",)),
    ("blueprint:TemplateArtifact", ("template",)),
    ("solutions:Application", ("mainTemplate",)),
    ("solutions:ApplicationDefinition", ("mainTemplate",)),
    ("securityinsights:ContentTemplate", ("mainTemplate",)),
    ("hybridnetwork:VendorSkus", ("managedApplicationTemplate",)),
    ("operationsmanagement:ManagementConfiguration", ("properties", "template")),
    *((f"authorization:PolicyDefinition{scope}", POLICY)
      for scope in ("", "AtManagementGroup", "Version", "VersionAtManagementGroup")),
    ("resources/v20240301:DeploymentAtSubscriptionScope", ("properties", "template")),
    ("blueprint/v20181101preview:TemplateArtifact", ("template",)),
]  # fmt: skip


@for_each("token, path", HOLDERS)
@for_each("written", [lambda value: value, json.dumps])
def test_a_template_is_judged_in_every_resource_that_can_hold_one(
    token: str, path: tuple[str, ...], written: Any
) -> None:
    asked = f"azure-native:{token}"

    assert seen(pack(), asked, held(path, written(template(sized(RETIRED_SIZE))))) == REFUSED
    assert seen(pack(), asked, held(path, written(template(sized(GOOD))))) == []
    assert seen(pack(), asked, held(path, UNKNOWN_OBJECT_VALUE)) == ["advisory checked-at-up"]
    link = held((*path[:-1], "templateLink"), {"uri": "https://example.org/t.json"})
    assert seen(pack(), asked, link) == OPEN


@for_each(
    "token, at",
    [
        ("azure:core/resourceGroupTemplateDeployment:ResourceGroupTemplateDeployment", "templateContent"),
        ("azure:core/subscriptionTemplateDeployment:SubscriptionTemplateDeployment", "templateContent"),
        ("azure:core/tenantTemplateDeployment:TenantTemplateDeployment", "templateContent"),
        ("azure:management/groupTemplateDeployment:GroupTemplateDeployment", "templateContent"),
        ("azure:core/templateDeployment:TemplateDeployment", "templateBody"),
    ],
)
def test_a_template_of_the_classic_provider_is_judged_with_its_parameters(token: str, at: str) -> None:
    whole = json.dumps(template(sized("[parameters('size')]"), parameters={"size": {"type": "string"}}))
    given = json.dumps({"size": {"value": RETIRED_SIZE}})
    beside: dict[str, Any] = {"parametersContent": given}
    if at == "templateBody":
        beside = {"parameters": {"size": RETIRED_SIZE}}

    assert seen(pack(), token, {at: whole, **beside}) == REFUSED
    assert seen(pack(), token, {at: whole}) == OPEN
    if at == "templateContent":
        assert seen(pack(), token, {"templateSpecVersionId": "/subscriptions/s/…/versions/1"}) == OPEN
    else:
        assert seen(pack(), token, {at: whole, "parametersBody": given}) == REFUSED


def test_a_job_in_a_template_is_judged_by_the_cluster_beside_it_whatever_their_order() -> None:
    job = arm(f"{ML}/jobs", {"properties": command(computeId=f"[resourceId('{ML}/computes', 'w', 'train')]")})
    promised = sized(NO_FABRIC, tags={"amlstack:single_node_jobs": "true"})

    assert verdict(template(job, promised)) == ["mandatory sriov-fabric"]
    assert verdict(template(promised, job)) == ["mandatory sriov-fabric"]


PARAMETERS: list[tuple[Any, dict[str, Any], list[str]]] = [
    # (declared, given, verdict)
    ({"size": {"type": "string"}}, {"size": {"value": RETIRED_SIZE}}, REFUSED),
    ({"Size": {"type": "string"}}, {"SIZE": {"value": RETIRED_SIZE}}, REFUSED),
    ({"size": {"type": "string"}}, {"size": {"value": GOOD}}, []),
    ({"size": {"defaultValue": RETIRED_SIZE}}, {}, REFUSED),
    ({"size": {"defaultValue": RETIRED_SIZE}}, {"size": {"value": GOOD}}, []),
    ({"size": {"defaultValue": "[parameters('other')]"}, "other": {"defaultValue": RETIRED_SIZE}}, {}, REFUSED),
    ({"size": {"type": "string"}}, {}, OPEN),
    ({}, {}, OPEN),
    ({"size": {"type": "securestring"}}, {"size": {"reference": {"keyVault": {"id": "k"}, "secretName": "s"}}}, OPEN),
    ({"size": {"defaultValue": "[parameters('size')]"}}, {}, OPEN),
    ({"size": {"type": "string"}}, {"size": {"value": UNKNOWN_STRING_VALUE}}, ["advisory checked-at-up"]),
    ({"size": {"type": "string"}}, {"size": UNKNOWN_OBJECT_VALUE}, ["advisory checked-at-up"]),
]  # fmt: skip


@for_each("declared, given, expected", PARAMETERS)
def test_a_parameter_has_the_value_beside_the_template_or_its_default(
    declared: Any, given: dict[str, Any], expected: list[str]
) -> None:
    whole = template(sized("[parameters('size')]"), parameters=declared)

    assert verdict(whole, parameters=given) == expected


def test_parameters_unknown_as_a_whole_are_judged_at_up() -> None:
    whole = template(sized("[parameters('size')]"), parameters={"size": {"type": "string"}})

    assert verdict(whole, parameters=UNKNOWN_OBJECT_VALUE) == ["advisory checked-at-up"]
    assert verdict(UNKNOWN_OBJECT_VALUE) == ["advisory checked-at-up"]


def test_a_parameters_file_kept_elsewhere_leaves_every_value_open() -> None:
    whole = template(sized("[parameters('size')]"), parameters={"size": {"defaultValue": GOOD}})
    link = {"uri": "https://example.org/p.json"}

    assert verdict(whole, parametersLink=link) == OPEN
    assert verdict(whole, parametersLink=link, parameters={"size": {"value": RETIRED_SIZE}}) == REFUSED


def test_a_whole_parameters_file_may_stand_beside_the_template() -> None:
    whole = template(sized("[parameters('size')]"), parameters={"size": {}})
    file = {"$schema": "…/deploymentParameters.json#", "parameters": {"size": {"value": RETIRED_SIZE}}}

    assert verdict(whole, parameters=file) == REFUSED
    assert verdict(whole, parameters=json.dumps(file)) == REFUSED


@pytest.mark.parametrize(("scope", "expected"), [(None, REFUSED), ("outer", REFUSED), ("inner", []), ("Inner", [])])
def test_a_nested_deployment_reads_the_outer_names_unless_it_says_inner(scope: str | None, expected: list[str]) -> None:
    inner = template(sized("[variables('size')]"), variables={"size": GOOD})
    whole = template(nested(inner, scope), variables={"size": RETIRED_SIZE})

    assert verdict(whole) == expected


def test_a_nested_deployment_s_parameters_are_values_of_the_template_around_it() -> None:
    inner = template(sized("[parameters('size')]"), parameters={"size": {"type": "string"}})
    given = {"size": {"value": "[concat('Standard_NC', variables('n'), 'rs_v3')]"}}
    whole = template(nested(inner, "inner", parameters=given), variables={"n": 24})

    assert verdict(whole) == REFUSED


def test_a_linked_template_is_refused_and_one_kept_beside_is_judged() -> None:
    elsewhere = {"type": "Microsoft.Resources/deployments", "name": "x",
                 "properties": {"templateLink": {"relativePath": "a/b.json"}}}  # fmt: skip
    version = {"mainTemplate": template(), "linkedTemplates": [{"template": template(sized(RETIRED_SIZE))}]}

    assert verdict(template(elsewhere)) == OPEN
    assert seen(pack(), "azure-native:resources:TemplateSpecVersion", version) == REFUSED


def test_what_is_open_in_a_template_that_is_only_kept_is_refused() -> None:
    open_ = template(sized("[parameters('size')]"), parameters={"size": {"type": "string"}})
    default = template(sized("[parameters('size')]"), parameters={"size": {"defaultValue": RETIRED_SIZE}})
    of_a_blueprint = {"template": open_, "parameters": {"size": {"value": "[parameters('blueprintSize')]"}}}

    for token in ("resources:TemplateSpecVersion", "solutions:ApplicationDefinition"):
        assert seen(pack(), f"azure-native:{token}", {"mainTemplate": open_}) == OPEN
        assert seen(pack(), f"azure-native:{token}", {"mainTemplate": default}) == REFUSED
    assert seen(pack(), "azure-native:blueprint:TemplateArtifact", of_a_blueprint) == OPEN


APPLICATIONS = "Microsoft.Solutions/applications"
USED = {"parameters": {"size": {"value": NO_FABRIC}}, "applicationDefinitionId": "/x/definition"}
ASSIGNED = {"parameters": {"size": {"value": NO_FABRIC}}, "blueprintId": "/x/blueprint"}


@for_each("token, props", [
        ("azure-native:solutions:Application", USED),
        ("azure-native:solutions/v20210701:Application", {"plan": {"name": "p", "publisher": "x"}}),
        ("azure:managedapplication/application:Application", USED),
        ("azurerm:index/managedApplication:ManagedApplication", USED),
        ("azure-native:blueprint:Assignment", ASSIGNED),
        ("azure:blueprint/assignment:Assignment", {"versionId": "/x/blueprint/versions/1"}),
        ("azure-native:resources:Resource", {
            "resourceProviderNamespace": "Microsoft.Solutions", "parentResourcePath": "",
            "resourceType": "applications", "resourceName": "a", "properties": USED}),
        ("azapi:index/resource:Resource", {"type": "Microsoft.Blueprint/blueprintAssignments@2018-11-01-preview",
                                           "name": "a", "body": {"properties": ASSIGNED}}),
        (DEPLOYMENT, deployed(template(arm(APPLICATIONS, {"properties": USED})))),
        (DEPLOYMENT, deployed(template(arm(APPLICATIONS, {"properties": {}, "plan": {"name": "p"}})))),
])  # fmt: skip
def test_what_deploys_a_template_kept_elsewhere_is_refused(token: str, props: dict[str, Any]) -> None:
    assert seen(pack(), token, props) == OPEN


def test_a_size_that_the_assignment_of_a_policy_gives_is_refused() -> None:
    open_ = template(sized("[parameters('size')]"), parameters={"size": {"type": "string"}})

    def policy(size: str) -> dict[str, Any]:
        properties = {"mode": "Incremental", "template": open_, "parameters": {"size": {"value": size}}}
        return held(("policyRule", "then", "details", "deployment", "properties"), properties)

    for token in ("PolicyDefinition", "PolicyDefinitionAtManagementGroup"):
        assert seen(pack(), f"azure-native:authorization:{token}", policy("[parameters('size')]")) == OPEN
        assert seen(pack(), f"azure-native:authorization:{token}", policy(GOOD)) == []


def renamed(value: Any, name: str, expression: str) -> Any:
    """The same, with one of its names made by an expression."""
    if isinstance(value, list):
        return [renamed(one, name, expression) for one in value]
    if not isinstance(value, dict):
        return value
    return {expression if key == name else key: renamed(one, name, expression) for key, one in value.items()}


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("vmSize", "[concat('vm', 'Size')]"),
        ("scaleSettings", "[reference('x').name]"),
        ("properties", "[concat('prop', 'erties')]"),
        ("type", "[toLower('TYPE')]"),
    ],
)
def test_a_name_that_an_expression_makes_hides_nothing(name: str, expression: str) -> None:
    hidden = renamed(sized(RETIRED_SIZE), name, expression)

    assert verdict(template(hidden)) == OPEN
    assert verdict(template(nested(template(hidden), "inner"))) == OPEN


def test_a_nested_template_under_a_name_that_an_expression_makes_is_refused() -> None:
    hidden = nested(template(sized(RETIRED_SIZE)))
    hidden["properties"]["[concat('tem', 'plate')]"] = hidden["properties"].pop("template")

    assert verdict(template(hidden)) == OPEN


def test_ids_that_are_names_leave_the_rest_to_be_judged() -> None:
    identity: dict[str, Any] = {"[resourceId('Microsoft.ManagedIdentity/userAssignedIdentities', 'i')]": {}}
    tags = {"amlstack:single_node_jobs": "true"}
    ours = sized(NO_FABRIC, identity={"type": "UserAssigned", "userAssignedIdentities": identity}, tags=tags)

    assert verdict(template(ours)) == []
    assert verdict(template({**ours, "tags": {}})) == ["mandatory sriov-fabric"]
    assert verdict(template({**ours, "tags": {"[resourceGroup().id]": "x"}})) == OPEN


@for_each(
    "resource, expected",
    [
        (sized(RETIRED_SIZE, condition=False), []),
        (sized(RETIRED_SIZE, condition="[equals(1, 2)]"), []),
        # Each resource has a condition of its own.
        (arm(ML, {}, name="w", condition=False, resources=[arm("computes", RETIRED, name="c")]), REFUSED),
        (arm(ML, {}, name="w", condition=False, resources=[arm("computes", RETIRED, name="c", condition=False)]), []),
        (sized(RETIRED_SIZE, condition="[equals(1, 1)]"), REFUSED),
        # Whether it is deployed is not known: it may be, so it is judged.
        (sized(RETIRED_SIZE, condition="[empty(reference('x'))]"), REFUSED),
        (sized(GOOD, condition="[empty(reference('x'))]"), []),
        (sized(RETIRED_SIZE, condition=UNKNOWN_STRING_VALUE), ["advisory checked-at-up"]),
        (sized(RETIRED_SIZE, existing=True), REFUSED),
        (sized("[variables('sizes')[copyIndex()]]", copy={"name": "l", "count": 2}), REFUSED),
        (sized("[variables('sizes')[copyIndex('l', 1)]]", copy={"name": "l", "count": 1}), REFUSED),
        (sized("[variables('sizes')[copyIndex()]]", copy={"name": "l", "count": 1}), []),
        (sized(RETIRED_SIZE, copy={"name": "l", "count": 0}), []),
        (sized(RETIRED_SIZE, copy={"name": "l", "count": "[length(reference('x'))]"}), REFUSED),
        (sized("[variables('sizes')[copyIndex()]]", copy={"name": "l", "count": "[length(reference('x'))]"}), OPEN),
        ({"type": "[parameters('kind')]", "name": "n"}, OPEN),
        (UNKNOWN_OBJECT_VALUE, ["advisory checked-at-up"]),
    ],
)
def test_conditions_and_loops_decide_what_is_deployed(resource: Any, expected: list[str]) -> None:
    assert verdict(template(resource, variables={"sizes": [GOOD, RETIRED_SIZE]})) == expected


def test_a_loop_of_equal_resources_is_refused_in_one_finding() -> None:
    assert verdict(template(sized(RETIRED_SIZE, copy={"name": "l", "count": 50}))) == REFUSED


def test_properties_and_variables_made_in_a_loop_are_refused() -> None:
    loop = {"name": "properties", "count": 1, "input": RETIRED["properties"]["properties"]}
    whole = arm(f"{ML}/computes", {"properties": {"computeType": "AmlCompute", "copy": [loop]}})
    sizes = {"copy": [{"name": "sizes", "count": 1, "input": GOOD}]}

    assert verdict(template(whole)) == OPEN
    assert verdict(template(sized("[variables('sizes')[0]]"), variables=sizes)) == OPEN


def test_the_refusal_names_the_expression_and_the_reason() -> None:
    whole = template(sized("[reference('x').size]"))
    ((level, code, message),) = shown(pack(SIZE_RULES_ALONE).Analyze(request(DEPLOYMENT, deployed(whole)), None))

    assert (level, code) == ("mandatory", "template-unresolved")
    assert message == (
        "properties.template.resources.0.properties.properties.vmSize: properties.template.resources.0.properties."
        "properties.vmSize is `[reference('x').size]`: the function `reference` is not worked out here. What is "
        "deployed is judged before it is deployed, and sriov-fabric, size-unknown and size-retired are open here. "
        "Write the value out, once, or give it in the deployment's parameters. [template-unresolved]"
    )


def test_a_team_may_turn_the_refusal_into_advice_or_off() -> None:
    whole = template(sized("[reference('x').size]"))
    quiet = {**SIZE_RULES_ALONE, "template-unresolved": "disabled"}

    assert verdict(whole, {**SIZE_RULES_ALONE, "template-unresolved": "advisory"}) == ["advisory template-unresolved"]
    assert verdict(whole, quiet) == ["advisory checked-at-up"]


def test_only_open_mandatory_rules_refuse_a_template() -> None:
    idle = {"minNodeCount": 0, "maxNodeCount": 4, "nodeIdleTimeBeforeScaleDown": "[reference('x').idle]"}
    whole = template(arm(f"{ML}/computes", cluster(scaleSettings=idle)))

    assert verdict(whole, {}) == ["advisory checked-at-up"]
    assert verdict(whole, {"idle-time": "mandatory"}) == OPEN
    assert verdict(template(sized("[reference('x')]")), dict.fromkeys(
        ("sriov-fabric", "size-unknown", "size-retired"), "disabled") | SIZE_RULES_ALONE) == []  # fmt: skip


def test_a_region_is_that_of_the_stack_s_resource_group() -> None:
    judge = pack({"region-approved": {"regions": ["westeurope"]}, **SIZE_RULES_ALONE})
    whole = template(sized(GOOD, location="[resourceGroup().location]"))
    asked = deployed(whole)

    assert seen(judge, DEPLOYMENT, asked) == OPEN
    judge.Analyze(
        request("azure-native:resources:ResourceGroup", {"resourceGroupName": "G", "location": "westeurope"}), None
    )
    assert seen(judge, DEPLOYMENT, asked) == []
    other = {**asked, "location": "eastus"}
    other["properties"] = {"template": template(sized(GOOD, location="[deployment().location]"))}
    assert seen(judge, DEPLOYMENT, other) == ["mandatory region-approved"]


def test_a_network_in_a_template_is_known_to_the_clusters_in_it() -> None:
    network = {"type": "Microsoft.Network/virtualNetworks", "name": "net",
               "properties": {"addressSpace": {"addressPrefixes": ["[variables('range')]"]}}}  # fmt: skip
    subnet = {"id": "[resourceId('Microsoft.Network/virtualNetworks/subnets', 'net', 'nodes')]"}
    compute = arm(f"{ML}/computes", cluster(vmSize=GOOD, subnet=subnet))
    whole = template(network, compute, variables={"range": "172.16.0.0/12"})

    assert verdict(whole, {}) == ["mandatory subnet-overlap"]


def test_a_network_whose_name_only_azure_knows_leaves_the_rule_open() -> None:
    subnet = {"id": "[resourceId('Microsoft.Network/virtualNetworks/subnets', variables('net'), 'nodes')]"}
    joined = {"id": "[concat('/x/virtualNetworks/', uniqueString('a'), '/subnets/n')]"}
    for one in (subnet, joined):
        compute = arm(f"{ML}/computes", cluster(vmSize=GOOD, subnet=one))
        whole = template(compute, variables={"net": "[reference('x')]"})

        assert verdict(whole, {}) == OPEN


def test_a_cluster_of_which_only_the_workspace_is_not_known_is_remembered() -> None:
    judge = pack(SIZE_RULES_ALONE)
    name = "[concat('ml', uniqueString(resourceGroup().id), '/train')]"
    promised = sized(GOOD, tags={"amlstack:single_node_jobs": "true"}) | {"name": name}
    job = {"properties": command(resources={"instanceCount": 2})}

    assert seen(judge, DEPLOYMENT, deployed(template(promised))) == []
    assert seen(judge, "azure-native:machinelearningservices:Job", job) == ["mandatory sriov-fabric"]
    assert seen(judge, COMPUTE, cluster()) == []


def test_a_template_that_grows_beyond_all_bounds_is_refused_in_time() -> None:
    doubling = {f"v{n}": f"[createArray(variables('v{n - 1}'), variables('v{n - 1}'))]" for n in range(1, 60)}
    grown = template(sized("[string(variables('v59'))]"), variables={"v0": "x", **doubling})
    computes = arm("computes", cluster(vmSize=GOOD), copy={"name": "b", "count": 800})
    loops = template(arm(ML, {}, copy={"name": "a", "count": 800}, resources=[computes]))
    before, after = json.dumps({"resources": [nested("@")]}).split('"@"')
    deep = before * 400 + "{}" + after * 400
    long = json.dumps(template(sized(GOOD, tags="@"))).replace('"@"', '{"a":' * 450 + "1" + "}" * 450)

    assert verdict(grown) == OPEN
    assert set(verdict(json.dumps(loops))) == set(OPEN)
    assert verdict(deep) == OPEN
    assert verdict(long) in (OPEN, [])
    assert verdict("[" * 100_000) == OPEN
