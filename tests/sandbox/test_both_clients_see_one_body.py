"""azure-ai-ml reads the resources of Pulumi's providers, and the reverse: the same bodies, byte for byte.

They are those that were sent, but for what the service writes in its own form: `as_answered`.
"""

from __future__ import annotations

import copy
import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from azure.core.pipeline.transport import RequestsTransport

from amlstack.provider.arm import API_VERSION, ArmClient
from amlstack.run_identity import environment_version
from tests.support.azure_ai_ml import told
from tests.support.azure_native.stand_in_wire import StandIn, urn
from tests.support.provider.provider_wire import Wire, job_inputs
from tests.support.running import running_sandbox
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# Two jobs run: one that Pulumi made and one that azure-ai-ml made.
pytestmark = [pytest.mark.training, pytest.mark.timeout(600)]

IMAGE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"
CONDA = "channels:\n- conda-forge\ndependencies:\n- python=3.11\n- pip:\n  - numpy==2.3.5\nname: own\n"
THEIR_ENVIRONMENT = {"image": IMAGE, "condaFile": CONDA}
THEIR_DATA = {
    "dataType": "uri_folder",
    "dataUri": "azureml://datastores/workspaceblobstore/paths/raw/3/",
    "tags": {"team": "a"},
    "description": "Words, ä.",
}

NATIVE: Mapping[str, str] = {
    "computes": "machinelearningservices:Compute",
    "datastores": "machinelearningservices:Datastore",
    "environments": "machinelearningservices:EnvironmentVersion",
    "data": "machinelearningservices:DataVersion",
    "jobs": "machinelearningservices:Job",
    "components": "machinelearningservices:ComponentVersion",
    "schedules": "machinelearningservices:Schedule",
}
OF_THE_RECORD: Mapping[str, set[str]] = {
    kind: {"id", "name", "type"} | ({"systemData"} if kind != "computes" else set()) for kind in NATIVE
} | {"schedules": {"name", "systemData"}}
"""Azure was recorded to answer a cluster without ``systemData``, and a schedule without id and type."""
OF_NODES = {
    *("allocationState", "allocationStateTransitionTime", "currentNodeCount", "targetNodeCount", "nodeStateCounts"),
    *(
        "isolatedNetwork",
        "propertyBag",
        "vmPriority",
        "subnet",
        "errors",
        "virtualMachineImage",
        "enableBatchPrivateLink",
    ),
}
OF_CLUSTERS = {
    *("computeLocation", "createdOn", "modifiedOn", "isAttachedCompute", "provisioningState"),
    *("description", "resourceId", "provisioningErrors", "provisioningWarnings"),
}
ADDED: Mapping[str, set[str]] = {
    "computes": {*OF_CLUSTERS, "tags", *(f"properties.{name}" for name in OF_NODES)},
    "datastores": {
        *("isDefault", "properties", "resourceGroup", "serviceDataAccessAuthIdentity", "subscriptionId"),
    },
    "environments": {
        *("autoDeleteSetting", "autoRebuild", "environmentType", "intellectualProperty", "osType"),
        *("description", "properties", "provisioningState", "stage"),
    },
    "data": {"autoDeleteSetting", "intellectualProperty", "stage"},
    "jobs": {"services", "status", "properties._azureml.ComputeTargetType"},
    "components": {"autoDeleteSetting", "provisioningState", "stage"},
    "schedules": {
        *("isEnabled", "provisioningState", "action.jobDefinition.status"),
        "action.jobDefinition.experimentName",
    },
}
"""By kind, what the service adds to a body in which azure-ai-ml leaves nothing open, most of it in its properties."""
LEFT_OPEN: Mapping[str, set[str]] = {
    "computes": {
        *("location", "disableLocalAuth", "properties.osType"),
        "properties.remoteLoginPortPublicAccess",
    },
    "datastores": {"endpoint", "protocol", "tags"},
    "environments": {"condaFile", "isAnonymous", "isArchived"},
    "data": {"isAnonymous", "isArchived", "properties"},
    "jobs": {"isArchived"},
    "components": {"isArchived", "properties", "tags"},
    "schedules": {"action.jobDefinition.isArchived"},
}
"""By kind, what it fills in beyond that where the program of a stack says nothing."""
KINDS = tuple(ADDED)
OF_RUNS = "jobs", "schedules"
"""Kinds with many nulls."""


def as_answered(kind: str, workspace: str, sent: Any) -> Any:
    """A body in the form in which Azure was recorded to answer it: addresses, conda files and specifications."""
    body = copy.deepcopy(sent)
    properties = body["properties"]
    if kind == "computes":
        properties["properties"]["vmSize"] = properties["properties"]["vmSize"].upper()
    elif kind == "data":
        _, subscription, _, group, *_, name = workspace.removeprefix("/").split("/")
        place = f"azureml://subscriptions/{subscription}/resourcegroups/{group}/workspaces/{name}/datastores/"
        address = properties["dataUri"].replace("azureml://datastores/", place)
        properties["dataUri"] = f"{address.rstrip('/')}/"
    elif kind == "environments" and properties.get("condaFile"):
        properties["condaFile"] = json.dumps(yaml.safe_load(properties["condaFile"]), indent=2)
    elif kind == "components":
        spec = {key: value for key, value in properties["componentSpec"].items() if key != "_source"}
        inputs = {name: {"optional": "False", **port} for name, port in spec.get("inputs", {}).items()}
        spec |= {"resources": {"instance_count": "1"}} | ({"inputs": inputs} if inputs else {})
        spec |= {"is_deterministic": "True"} if spec.get("is_deterministic") else {}
        properties |= {"componentSpec": spec, "description": None}
    return body


def canonical(value: Any) -> bytes:
    """JSON of one spelling: neither the order of keys nor the escapes of a writer are part of a body."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()


def within(answer: Any, sent: Any) -> Any:
    """An answer without the keys that were not sent."""
    if not (isinstance(answer, dict) and isinstance(sent, dict)):
        return answer
    return {key: within(value, sent[key]) for key, value in answer.items() if key in sent}


def added(answer: Any, sent: Any, path: str = "") -> Iterator[str]:
    """The paths of an answer that were not sent, those of its properties without that word."""
    for key, value in answer.items():
        if key not in sent:
            yield f"{path}{key}".removeprefix("properties.")
        elif isinstance(value, dict) and isinstance(sent[key], dict):
            yield from added(value, sent[key], f"{path}{key}.")


def filled(value: Any) -> Any:
    """A body without nulls, and without empty lists, maps and texts."""
    if not isinstance(value, dict):
        return value
    kept = {key: filled(inner) for key, inner in value.items()}
    return {key: inner for key, inner in kept.items() if inner not in ({}, [], None, "")}


class Both:
    """A workspace in which the providers of Pulumi and azure-ai-ml have made one resource of each kind."""

    def __init__(self, arm: ArmClient, workspace: str, native: StandIn, wire: Wire) -> None:
        self.arm, self.workspace, self.native, self.wire = arm, workspace, native, wire
        self.name = workspace.rpartition("/")[2]
        self.sent: dict[str, Any] = {}
        self.client: dict[str, dict[str, Any]] = {}
        self.puts: list[tuple[str, Any]] = []
        self.answers: dict[str, bytes] = {}

    def where(self, **more: Any) -> dict[str, Any]:
        return {"resourceGroupName": self.name, "workspaceName": self.name, **more}

    def make(self) -> dict[str, list[str]]:
        """By the providers; what is to be read of each kind."""
        cluster = {
            "computeType": "AmlCompute",
            "properties": {
                "vmSize": "Standard_ND96asr_v4",
                "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT4M"},
            },
        }
        store = {
            "datastoreType": "AzureBlob",
            "accountName": "stelsewhere",
            "containerName": "c",
            "credentials": {"credentialsType": "None"},
            "description": "Words, ä.",
        }
        for name in ("ours", "trains"):  # the jobs' own, so that the counts of nodes of the other one stay
            self.native.create(urn(NATIVE["computes"], name), self.where(computeName=name, properties=cluster))
        self.native.create(urn(NATIVE["datastores"], "d"), self.where(name="ours", properties=store))
        environment, job = self.wire.environment(), self.wire.job()
        environment.up({"workspace": self.workspace, "name": "ours", "body": {"image": IMAGE, "tags": {"a": "ä"}}})
        data = {**THEIR_DATA, "dataUri": "azureml://datastores/workspaceblobstore/paths/raw"}
        self.wire.data_version().up({"workspace": self.workspace, "name": "ours", "version": "1", "body": data})
        properties = {
            "command": "echo ${{inputs.rate}} > ${{outputs.kept}}/rate.txt",
            "environmentId": environment.id,
            "computeId": f"{self.workspace}/computes/trains",
            "inputs": {"rate": {"jobInputType": "literal", "value": "0.1"}},
            "outputs": {"kept": {"jobOutputType": "uri_folder", "mode": "ReadWriteMount"}},
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
            "resources": {"instanceCount": 2, "shmSize": "2g"},
            "tags": {"team": "ä"},
            "displayName": "Ours",
        }
        job.up(job_inputs(properties=properties, workspace=self.workspace, wait="completed"))
        self.sent = {"computes": {"properties": cluster}, "datastores": {"properties": store}}
        spec = {
            "name": "ours",
            "version": "1",
            "type": "command",
            "command": "echo ${{inputs.rate}}",
            "environment": f"azureml:{environment.id}",
            "inputs": {"rate": {"type": "number", "default": "0.1"}},
        }
        component = self.wire.component()
        body = {"componentSpec": spec, "isAnonymous": False, "description": "Words, ä."}
        component.up({"workspace": self.workspace, "name": "ours", "version": "1", "body": body})
        nightly = {
            "trigger": {
                "triggerType": "Cron",
                "expression": "0 2 * * *",
                "startTime": "2126-07-01 00:00:00",
                "timeZone": "UTC",
            },
            "action": {
                "actionType": "CreateJob",
                "jobDefinition": {
                    "jobType": "Pipeline",
                    "jobs": {"only": {"type": "command", "componentId": component.id, "inputs": {}}},
                    "settings": {"default_compute": f"{self.workspace}/computes/trains"},
                },
            },
            "displayName": "Ours, ä",
        }
        schedule = {"workspace": self.workspace, "name": "ours", "body": {"properties": nightly}}
        self.wire.schedule().up(schedule)
        for path, body in self.puts:
            self.sent.setdefault(path.removeprefix(self.workspace).split("/")[1], body)
        return {
            "computes": ["ours"],
            "datastores": ["ours"],
            "environments": ["ours", environment.outputs["version"]],
            "data": ["ours", "1"],
            "jobs": [job.id],
            "components": ["ours", "1"],
            "schedules": ["ours"],
        }

    def lead(self, reads: dict[str, list[str]], folder: Any, environ: Mapping[str, str]) -> None:
        """Azure-ai-ml, in a process of its own, reads those and makes its own."""
        given = json.dumps({"reads": reads, "version": environment_version(THEIR_ENVIRONMENT)})
        self.client = told("azure_ai_ml_bodies", self.name, folder, environ=environ, given=given)

    def answer(self, address: str, version: str = "") -> bytes:
        """The bytes that the provider's client gets for an address of azure-ai-ml, by its api-version or another."""
        parts = urlsplit(address)
        self.arm.get(parts.path, version or parse_qs(parts.query)["api-version"][0])
        return self.answers[parts.path]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with running_sandbox(tmp_path_factory.mktemp("home")) as sandbox, pytest.MonkeyPatch.context() as patch:
        for name, value in sandbox.environ.items():
            patch.setenv(name, value)
        workspace = Arm(sandbox.endpoint).make_workspace("bothclients")
        native = StandIn(os.environ).configure()
        wire = Wire()
        made = Both(ArmClient(sandbox.endpoint.url), workspace, native, wire)
        real = RequestsTransport.send

        def send(self: RequestsTransport, request: Any, **options: Any) -> Any:
            answer, path = real(self, request, **options), urlsplit(request.url).path
            if request.method == "PUT" and path.startswith(workspace):
                made.puts.append((path, json.loads(request.content)))
            elif request.method == "GET":
                made.answers[path] = answer.content if hasattr(answer, "content") else answer.body()
            return answer

        patch.setattr(RequestsTransport, "send", send)
        made.lead(made.make(), tmp_path_factory.mktemp("client"), sandbox.environ)
        yield made
        wire.stop()
        native.stop()


@pytest.mark.parametrize("kind", KINDS)
def test_azure_ai_ml_gets_the_body_that_pulumi_sent(both: Both, kind: str) -> None:
    exchange = both.client["read"][kind]
    sent, answer = as_answered(kind, both.workspace, both.sent[kind]), json.loads(exchange["answer"])
    assert canonical(within(answer, sent)) == canonical(sent)
    assert (
        set(added(filled(answer) if kind in OF_RUNS else answer, sent))
        == OF_THE_RECORD[kind] | ADDED[kind] | LEFT_OPEN[kind]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_both_clients_get_the_same_bytes_for_one_address(both: Both, kind: str) -> None:
    exchange = both.client["read"][kind]
    ours = both.answer(exchange["address"])
    if (
        kind == "jobs"
    ):  # of which azure-ai-ml does not see the output of the run's own files (docs/reference/sandbox.md)
        whole = json.loads(ours)
        del whole["properties"]["outputs"]["default"]
        assert canonical(whole) == canonical(json.loads(exchange["answer"]))
        return
    assert ours == exchange["answer"].encode()


@pytest.mark.parametrize("kind", KINDS)
def test_pulumi_gets_the_body_that_azure_ai_ml_sent(both: Both, kind: str) -> None:
    exchange = both.client["made"][kind]
    sent = as_answered(kind, both.workspace, json.loads(exchange["sent"]))
    answer = json.loads(both.answer(exchange["address"], API_VERSION))
    assert canonical(within(answer, sent)) == canonical(sent)
    own = {"outputs.default", "properties.ContentSnapshotId"} if kind == "jobs" else set()
    assert set(added(filled(answer) if kind in OF_RUNS else answer, sent)) == OF_THE_RECORD[kind] | ADDED[kind] | own


@pytest.mark.parametrize("kind", KINDS)
def test_what_azure_ai_ml_made_is_imported_as_it_is_and_plans_no_change(both: Both, kind: str) -> None:
    exchange, name = both.client["made"][kind], urn(NATIVE[kind], "theirs")
    there = urlsplit(exchange["address"]).path
    sent = as_answered(kind, both.workspace, json.loads(exchange["sent"]))["properties"]
    found = json.loads(both.answer(exchange["address"], API_VERSION))
    id_, inputs, state = both.native.read(name, there)
    assert id_ == there
    assert canonical(filled(state["properties"])) == canonical(filled(found["properties"]))
    # An import leaves out what is empty: it says nothing to the service.
    declared = inputs["properties"]
    assert canonical(filled(within(declared, sent))) == canonical(filled(sent))
    planned = both.native.diff(name, there, inputs, both.native.inputs(name, inputs))
    assert planned.changes == planned.DIFF_NONE


@pytest.mark.parametrize("kind", ["environments", "data"])
def test_a_version_of_azure_ai_ml_is_adopted_without_a_write_and_plans_no_change(both: Both, kind: str) -> None:
    address = both.client["made"][kind]["address"]
    before = both.answer(address)
    both.puts.clear()
    inputs: dict[str, Any] = {"workspace": both.workspace, "name": "theirs"}
    if kind == "data":
        taken, inputs = both.wire.data_version(), {**inputs, "version": "3", "body": THEIR_DATA}
    else:
        taken, inputs = both.wire.environment(), {**inputs, "body": THEIR_ENVIRONMENT}
    assert taken.up(inputs) == "create"
    taken.refresh()
    assert (taken.id, taken.up(inputs)) == (urlsplit(address).path, "same")
    assert (both.puts, both.answer(address)) == ([], before)
