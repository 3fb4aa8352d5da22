"""A stack registered by azure-native's generated classes, and as the program does it: the engine sees no difference."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import MakeStack, Sandbox

PROGRAM = """\
import json
import os
import re
from importlib import import_module

import pulumi
from google.protobuf import json_format
from pulumi.runtime import settings

from infra import program
from infra.components import registration

DEFAULTS = {
    "flow_type", "request_source", "public_network_access_for_ingestion", "public_network_access_for_query",
    "anonymous_pull_enabled", "network_rule_bypass_options", "zone_redundancy",
}  # what the classes add by themselves
monitor = settings.get_monitor()
register, requests = monitor.RegisterResource, open(os.environ["REQUESTS"], "a")


def recorded(request, *args, **kwargs):
    requests.write(json_format.MessageToJson(request, indent=None) + "\\n")
    requests.flush()
    return register(request, *args, **kwargs)


def pythonic(name):
    word = re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)
    return "resource_name_" if word == "resource_name" else word


def typed(token, name, properties, opts):
    _, module, kind = token.split(":")
    words = {pythonic(key): value for key, value in properties.items() if value is not None}
    for default in DEFAULTS & words.keys():
        del words[default]
    return getattr(import_module(f"pulumi_azure_native.{module}"), kind)(name, **words, opts=opts)


def output(resource, name):
    value = getattr(resource, pythonic(name))
    return value.apply(lambda own: {"principalId": own.principal_id} if own else None) if name == "identity" else value


def behind(value, *resources):
    return pulumi.Output.all(*(each.urn for each in resources)).apply(lambda _: value)


monitor.RegisterResource = recorded
if os.environ["WAY"] == "typed":
    registration.register, registration.output = typed, output
    registration.behind, registration.after = behind, lambda *resources: behind(None, *resources)
program.main()
"""
JOB = """\
name: train
command: python train.py
code: src
environment: azureml:mine
compute: azureml:gpu2
limits: {timeout: 3600}
"""
CLUSTER = {"size": "Standard_ND96asr_v4", "nodes": {"max": 2}}
SUBNET = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/default"
SETTINGS: dict[str, Any] = {
    "location": "westeurope",
    "workspace": "ws-seen",
    "clusters": [
        {"name": "gpu1", **CLUSTER},
        {"name": "gpu2", **CLUSTER, "identity": "system", "description": "text", "tags": {"Some_Key": "a"}},
        {"name": "gpu3", **CLUSTER, "identity": "none", "node_public_ip": False, "subnet": SUBNET},
    ],
    "environments": [{"name": "mine", "image": "ubuntu:24.04"}],
}


def requests_of(way: str, stack: MakeStack, sandbox: Sandbox, folder: Path) -> dict[str, dict[str, Any]]:
    seen = folder / f"{way}.jsonl"
    one = stack(PROGRAM, sandbox=sandbox, env={"REQUESTS": str(seen), "WAY": way})
    for key, value in SETTINGS.items():
        one.set(f"amlstack:{key}", value)
    one.set("amlstack:jobs", [str(folder / "train.yml")])
    one.pulumi("config", "set", "--secret", "--path", "amlstack:tags.team", "kept-secret", "--stack", one.name).ok()
    one.preview().ok()
    found = {}
    for line in seen.read_text().splitlines():
        request = json.loads(line)
        request["dependencies"] = sorted(request.get("dependencies", ()))
        request.pop("aliases", None)  # a generated class names each older API version
        for dependencies in request.get("propertyDependencies", {}).values():
            dependencies["urns"] = sorted(dependencies.get("urns", ()))
        found[f"{request['type']}::{request['name']}"] = request
    return found


def test_the_engine_sees_no_difference(stack: MakeStack, sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print('trained')\n")
    (tmp_path / "train.yml").write_text(JOB)
    quick, typed = (requests_of(way, stack, sandbox, tmp_path) for way in ("quick", "typed"))
    assert quick.keys() == typed.keys()
    for name, request in typed.items():
        assert quick[name] == request, name

    gpu2 = quick["azure-native:machinelearningservices:Compute::gpu2"]
    # Group, workspace and its network, which the rest of the group comes before.
    assert len(gpu2["dependencies"]) == 3
    assert gpu2["propertyDependencies"]["workspaceName"]["urns"]
    assert "4dabf18193072939515e22adb298388d" in json.dumps(gpu2["object"]["tags"])  # the mark of a secret
    assert {"version", "parent", "replaceOnChanges", "deleteBeforeReplace"} <= gpu2.keys()
    assert not gpu2["stackTrace"]  # a third of the state, written after every step
    assert "sourcePosition" not in gpu2
    role = quick["azure-native:authorization:RoleAssignment::gpu2-acrpull"]
    assert role["object"]["principalId"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"  # not known yet
