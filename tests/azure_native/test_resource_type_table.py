"""The table against the installed azure-native classes and against what the sandbox emulates."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path

import pytest

from amlstack.rpc import ProviderError
from amlstack.sandbox import kinds
from amlstack.sandbox.azure_native import shape
from amlstack.sandbox.protocol import allowances, body_shapes, typecheck
from tests.support.rows import for_each

TOKENS = shape.tokens()

# Inputs whose nested type the installed package names: token → path of the input, Args class, Response class.
NESTED = {
    "machinelearningservices:Compute": {
        "properties": ("AmlComputeArgs", "AmlComputeResponse"),
        "properties.properties": ("AmlComputePropertiesArgs", "AmlComputePropertiesResponse"),
        "identity": ("ManagedServiceIdentityArgs", "ManagedServiceIdentityResponse"),
    },
    "machinelearningservices:Workspace": {"identity": ("ManagedServiceIdentityArgs", "ManagedServiceIdentityResponse")},
    "machinelearningservices:Job": {"properties": ("CommandJobArgs", "CommandJobResponse")},
    "machinelearningservices:EnvironmentVersion": {
        "properties": ("EnvironmentVersionPropertiesArgs", "EnvironmentVersionPropertiesResponse")
    },
    "machinelearningservices:EnvironmentContainer": {
        "properties": ("EnvironmentContainerPropertiesArgs", "EnvironmentContainerPropertiesResponse")
    },
    "machinelearningservices:CodeVersion": {
        "properties": ("CodeVersionPropertiesArgs", "CodeVersionPropertiesResponse")
    },
    "machinelearningservices:CodeContainer": {
        "properties": ("CodeContainerPropertiesArgs", "CodeContainerPropertiesResponse")
    },
    "machinelearningservices:ComponentVersion": {
        "properties": ("ComponentVersionPropertiesArgs", "ComponentVersionPropertiesResponse")
    },
    "machinelearningservices:ComponentContainer": {
        "properties": ("ComponentContainerPropertiesArgs", "ComponentContainerPropertiesResponse")
    },
    "machinelearningservices:ModelVersion": {
        "properties": ("ModelVersionPropertiesArgs", "ModelVersionPropertiesResponse")
    },
    "machinelearningservices:ModelContainer": {
        "properties": ("ModelContainerPropertiesArgs", "ModelContainerPropertiesResponse")
    },
    "machinelearningservices:ManagedNetworkSettingsRule": {
        "properties": ("FqdnOutboundRuleArgs", "FqdnOutboundRuleResponse")
    },
    "network:VirtualNetwork": {"subnets": ("SubnetArgs", "SubnetResponse")},
    "network:PrivateEndpoint": {
        "subnet": ("SubnetArgs", "SubnetResponse"),
        "privateLinkServiceConnections": (
            "PrivateLinkServiceConnectionArgs",
            "PrivateLinkServiceConnectionResponse",
        ),
        "manualPrivateLinkServiceConnections": (
            "PrivateLinkServiceConnectionArgs",
            "PrivateLinkServiceConnectionResponse",
        ),
    },
    "network:PrivateDnsZoneGroup": {
        "privateDnsZoneConfigs": ("PrivateDnsZoneConfigArgs", "PrivateDnsZoneConfigResponse")
    },
    "machinelearningservices:Datastore": {"properties": ("AzureBlobDatastoreArgs", "AzureBlobDatastoreResponse")},
    "machinelearningservices:DataContainer": {
        "properties": ("DataContainerPropertiesArgs", "DataContainerPropertiesResponse")
    },
    "machinelearningservices:Schedule": {"properties": ("SchedulePropertiesArgs", "SchedulePropertiesResponse")},
    "keyvault:Vault": {"properties": ("VaultPropertiesArgs", "VaultPropertiesResponse")},
    "storage:StorageAccount": {"sku": ("SkuArgs", "SkuResponse"), "identity": ("IdentityArgs", "IdentityResponse")},
    "containerregistry:Registry": {
        "sku": ("SkuArgs", "SkuResponse"),
        "identity": ("IdentityPropertiesArgs", "IdentityPropertiesResponse"),
    },
    "authorization:PolicyAssignment": {"identity": ("IdentityArgs", "IdentityResponse")},
    "operationalinsights:Workspace": {
        "sku": ("WorkspaceSkuArgs", "WorkspaceSkuResponse"),
        "workspaceCapping": ("WorkspaceCappingArgs", "WorkspaceCappingResponse"),
        "identity": ("IdentityArgs", "IdentityResponse"),
    },
}


@functools.cache
def text_of(module: str, file: str) -> str:
    """A file of the installed package. To import the classes of all of them takes seconds."""
    package = importlib.util.find_spec("pulumi_azure_native")
    assert package is not None
    assert package.origin is not None
    return (Path(package.origin).parent / module / file).read_text("utf-8")


def source(token: str, name: str, file: str = "") -> str:
    """The source of a generated class, by default in the file of its resource; empty where there is none."""
    module, _, resource = token.partition(":")
    text = text_of(module, file or re.sub(r"\B(?=[A-Z])", "_", resource).lower() + ".py")
    start = max(text.find(f"\nclass {name}{end}") for end in (":", "("))
    if start < 0:
        return ""
    end = re.compile(r"\n(?=\w|@)").search(text, start + 1)
    return text[start : end.start() if end else None]


def names(source: str) -> dict[str, str]:
    """The properties of a generated class, each with its name on the wire."""
    (cls,) = ast.parse(source).body
    assert isinstance(cls, ast.ClassDef)
    found = {}
    for member in cls.body:
        decorators = getattr(member, "decorator_list", [])
        if isinstance(member, ast.FunctionDef) and list(map(ast.unparse, decorators[:1])) == ["_builtins.property"]:
            getter = decorators[1]
            named = getter.keywords if isinstance(getter, ast.Call) else ()
            found[member.name] = next((ast.literal_eval(one.value) for one in named if one.arg == "name"), member.name)
    return found


def args_of(token: str) -> str:
    """The source of the class of a resource's inputs; where a nested type has its name, it is called otherwise."""
    name = token.partition(":")[2]
    return source(token, f"{name}InitArgs") or source(token, f"{name}Args")


@for_each("token", TOKENS)
def test_inputs_are_those_of_the_installed_class(token: str) -> None:
    kind, _ = shape.find(f"azure-native:{token}")
    args = args_of(token)
    wired = names(args)
    # The id that some classes take is ARM's own, and never sent.
    assert kind.inputs - {"id"} == {*wired.values()} - {"id"}
    start = next(member for member in ast.walk(ast.parse(args)) if getattr(member, "name", "") == "__init__")
    assert isinstance(start, ast.FunctionDef)
    asked = zip(start.args.kwonlyargs, start.args.kw_defaults, strict=True)
    wire = {wired[one.arg] for one, default in asked if default is None}
    # What the class asks for, the table asks for; the table adds the location, which azure-native fills in.
    ours = {*kind.required, *kind.parameters} - {kind.autonamed}
    assert wire - {kind.autonamed} <= ours
    assert ours - wire <= {"location"}


@for_each("token", TOKENS)
def test_outputs_are_those_of_the_installed_class(token: str) -> None:
    kind, version = shape.find(f"azure-native:{token}")
    cls = source(token, token.partition(":")[2])
    outputs = {*names(cls).values()}
    ours = {*kind.top, *kind.flat, *kind.outputs_top, *kind.outputs_flat, shape.API_VERSION}
    ours -= set(kind.write_only)
    # Names of versions are inputs too, and ``name`` comes back as the last of the path.
    assert outputs - {"id"} - ours <= {"name"}
    assert ours <= outputs
    assert re.search(rf"API version {version}\b", cls)


@for_each(
    "token, path, args, response",
    [(token, path, *classes) for token, paths in NESTED.items() for path, classes in paths.items()],
)
def test_only_an_answer_has_the_hidden_parts(token: str, path: str, args: str, response: str) -> None:
    kind, _ = shape.find(f"azure-native:{token}")
    given, answered = source(token, args, "_inputs.py"), source(token, response, "outputs.py")
    read_only = {*names(answered).values()} - {*names(given).values()}
    hidden = {name.rpartition(".")[2] for name in kind.hidden if name.rpartition(".")[0] == path}
    # azure-native drops from an import what its classes do not have.
    assert hidden == read_only | allowances.ANSWERED_ONLY.get(args, frozenset())


def test_every_hidden_part_is_accounted_for() -> None:
    for token in TOKENS:
        kind, _ = shape.find(f"azure-native:{token}")
        assert {path.rpartition(".")[0] for path in kind.hidden} <= set(NESTED.get(token, {})), token


@for_each("token", TOKENS)
def test_every_row_is_of_a_kind_whose_bodies_are_checked_by_it(token: str) -> None:
    kind, _ = shape.find(f"azure-native:{token}")
    emulated = kinds.find(_type(kind.path))
    assert emulated is not None
    schema = body_shapes.schema_of(emulated.type)
    assert schema is not None
    assert schema.token == token
    top, inner = typecheck.fields_of_body(schema)
    taken = body_shapes.body_shape(schema).fields
    assert {*kind.parameters, *kind.put_query} == taken.keys() - top.keys() - inner.keys() - schema.wire.keys()


def test_a_versioned_token_is_the_same_row_at_its_own_version() -> None:
    plain = shape.find("azure-native:machinelearningservices:Compute")
    versioned = shape.find("azure-native:machinelearningservices/v20250901:Compute")
    preview = shape.find("azure-native:machinelearningservices/v20250101preview:Compute")
    assert plain[0] == versioned[0] == preview[0]
    assert (plain[1], versioned[1], preview[1]) == ("2025-12-01", "2025-09-01", "2025-01-01-preview")


@pytest.mark.parametrize(
    ("token", "hint"),
    [
        ("azure-native:machinelearningservices:Computes", "Did you mean `machinelearningservices:Compute`"),
        ("azure-native:machinelearningservices/v20250901:Computes", "Did you mean `machinelearningservices:Compute`"),
        ("azure-native:sql:Server", "It does for: resources:ResourceGroup, storage:StorageAccount"),
        ("azure:machinelearning/computeCluster:ComputeCluster", "Did you mean `machinelearningservices:Compute`"),
    ],
)
def test_an_unknown_token_is_refused_by_name(token: str, hint: str) -> None:
    with pytest.raises(ProviderError) as refused:
        shape.find(token)
    assert refused.value.message.startswith(f"the sandbox does not stand in for {token}.")
    assert hint in refused.value.message


def test_the_token_is_the_last_of_the_chain_of_parents() -> None:
    urn = "urn:pulumi:s::p::amlstack:infra:Workspace$azure-native:resources:ResourceGroup::a::b"
    assert shape.token_of(urn) == "azure-native:resources:ResourceGroup"


def test_ids_are_made_and_read_back_in_any_letter_case() -> None:
    kind, _ = shape.find("azure-native:machinelearningservices:EnvironmentVersion")
    parts = {"resourceGroupName": "g", "workspaceName": "w", "name": "torch", "version": "7"}
    made = kind.id_of("sub", parts)
    assert made == (
        "/subscriptions/sub/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
        "/environments/torch/versions/7"
    )
    assert kind.parse(made.replace("resourceGroups", "resourcegroups")) == parts
    with pytest.raises(ProviderError, match="no id of machinelearningservices:EnvironmentVersion"):
        kind.parse(made.rpartition("/versions")[0])


def _type(path: str) -> str:
    if "/providers/" not in path:
        return "Microsoft.Resources/resourceGroups"
    namespace, *rest = path.rpartition("/providers/")[2].split("/")
    return "/".join([namespace, *rest[0::2]])
