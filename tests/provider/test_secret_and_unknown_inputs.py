"""Every input of every resource, and every part of it, as a secret, as an unknown and as both, in every operation.

The inputs come from the resources' own shapes, so that a new resource or field is covered without a word here. What may
not be seen has a text of its own, ``canary…``, that is looked for in all that the provider answers or logs.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from azure.core.credentials import AccessToken
from google.protobuf.json_format import MessageToDict
from pulumi.runtime.proto import provider_pb2

from amlstack.base.pulumi_wire import SIGNATURE
from amlstack.provider.server import TYPES
from amlstack.rpc import UNKNOWN, Secret, decode, encode, opened
from amlstack.run_identity import canonical, sha256
from tests.support.provider.fake_arm import TOKEN
from tests.support.provider.fake_network import FakeNetwork
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, Resource, Wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amlstack.provider.resource import InputField, InputShape
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Log

Place = tuple[str | int, ...]

OWN_WORKSPACE = WORKSPACE.removesuffix("/w") + "/canary-workspace"
OWN_GROUP = f"/subscriptions/{WORKSPACE.split('/')[2]}/resourceGroups/canary-group"
BODIES: dict[str, dict[str, Any]] = {
    "amlstack:jobs:Job": {
        "properties": {
            "jobType": "Command",
            "command": "python canary-command.py",
            "environmentId": "azureml://registries/azureml/environments/canary-environment/versions/1",
            "experimentName": "canary-experiment",
            "environmentVariables": {"canary_variable": "canary-value", "SHORT": "x7"},
            "resources": {"instanceCount": 2, "dockerArgs": ["canary-argument"]},
            "description": "canary-description",
            "tags": {"canary_tag": "canary-team"},
        }
    },
    "amlstack:schedules:Schedule": {
        "properties": {
            "trigger": {"triggerType": "Cron", "expression": "0 0 * * *", "timeZone": "canary-zone"},
            "action": {"actionType": "CreateJob", "jobDefinition": {"environmentVariables": {"KEY": "canary-key"}}},
            "isEnabled": True,
            "tags": {"canary_tag": "canary-team"},
        }
    },
    "amlstack:data:Version": {
        "dataType": "uri_folder",
        "dataUri": "azureml://datastores/canary_store/paths/canary-folder",
        "description": "canary-description",
        "tags": {"canary_tag": "canary-team"},
    },
    "amlstack:environments:Version": {"image": "canary-image", "condaFile": "canary-conda", "osType": "Linux"},
    "amlstack:components:Version": {"componentSpec": {"command": "canary-command"}, "description": "canary-text"},
}
"""Bodies by resource type: their parts are inputs too."""
NETWORK = "amlstack:network:Managed"
"""It writes rules into the network that its workspace has."""


def shape_of(token: str) -> InputShape:
    kind: Any = TYPES[token]
    shape: InputShape = kind.shape
    return shape


def value_of(name: str, rule: InputField) -> Any:
    """A value that an input takes, made from what its shape says of it."""
    texts = (f"canary-{name}", OWN_WORKSPACE, OWN_GROUP, "0123456789abcdef" * 4)
    if rule.choices:
        return rule.choices[0]
    if issubclass(rule.kind, bool):
        return False
    if issubclass(rule.kind, str):
        return next(text for text in texts if rule.pattern is None or rule.pattern[0].fullmatch(text))
    if issubclass(rule.kind, list | tuple):
        return [f"canary-{name}"]
    number = 10_000_000 + int(sha256(name), 16) % 90_000_000
    return {f"canary_{name}": f"canary-{name}", f"canary_{name}_list": [{f"canary_{name}_inner": number}]}


def inputs_of(token: str, folder: Path) -> dict[str, Any]:
    """A full set of inputs: every property that the shape has."""
    inputs = {name: value_of(name, rule) for name, rule in shape_of(token).fields.items()}
    if token == "amlstack:code:Snapshot":
        (folder / "canary-folder").mkdir(exist_ok=True)
        (folder / "canary-folder" / "train.py").write_text("print(1)\n")
        inputs |= {"path": str(folder / "canary-folder"), "beside": ""}
        del inputs["hash"]  # made from the folder
    if token == "amlstack:data:Upload":
        (folder / "canary-data").mkdir(exist_ok=True)
        (folder / "canary-data" / "word.txt").write_text("hello\n")
        inputs |= {"path": str(folder / "canary-data"), "datastore": "canary_store"}
        del inputs["hash"]  # made from the data
    if token == NETWORK:
        rule = {"type": "FQDN", "destination": "canary-host"}
        inputs |= {"mode": "AllowOnlyApprovedOutbound", "rules": {"canary-rule": rule}}
    if "codeFiles" in inputs:
        inputs["codeFiles"] = {"canary-file.py": "canary-digest"}
    return inputs | ({"body": copy.deepcopy(BODIES[token])} if token in BODIES else {})


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Each input and each part of one."""
    if place:
        yield place
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, item in children:
        yield from places(item, (*place, step))


def at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def put(values: dict[str, Any], place: Place, value: Any) -> dict[str, Any]:
    """A copy of ``values`` with another value at a place."""
    changed = copy.deepcopy(values)
    at(changed, place[:-1])[place[-1]] = value
    return changed


def canaries(value: Any) -> set[str]:
    """All that identifies a value: its texts, and the keys in it."""
    return set(re.findall(r"canary[\w-]*|\b\d{8}\b", json.dumps(value)))


class Seen:
    """The provider's answers, secrets left out: the engine shows, logs and keeps them in clear text."""

    def __init__(self, wire: Wire, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[Any] = []
        self.log = log
        call = wire.call

        def recorded(method: str, request: Any) -> Any:
            try:
                answer = call(method, request)
            except Refused as error:
                self.answers.append({"error": str(error), **_visible(error.partial)})
                raise
            self.answers.append(_visible(answer))
            return answer

        monkeypatch.setattr(wire, "call", recorded)

    def text(self, *, ids: bool) -> str:
        answers = self.answers if ids else [{k: v for k, v in one.items() if k != "id"} for one in self.answers]
        return json.dumps([answers, self.log.entries])

    def forget(self) -> None:
        self.answers.clear()
        self.log.entries.clear()


def _visible(message: Any) -> dict[str, Any]:
    def stripped(value: Any) -> Any:
        if isinstance(value, dict):
            return "(secret)" if SIGNATURE in value else {key: stripped(item) for key, item in value.items()}
        return [stripped(item) for item in value] if isinstance(value, list) else value

    return {} if message is None else stripped(MessageToDict(message))


class OneToken:
    """A credential that has its token already: a sign-in for each of a thousand deployments takes the most time."""

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(TOKEN, 2**40)


@pytest.fixture
def own(arm: FakeArm, wire: Wire) -> FakeArm:
    arm.workspaces.add(OWN_WORKSPACE)
    wire.plugin._credential = OneToken()
    return arm


@pytest.fixture
def seen(wire: Wire, log: Log, monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(wire, log, monkeypatch)


def forget(arm: FakeArm) -> None:
    arm.network = FakeNetwork(arm.network.mode)
    for kept in (arm.jobs, arm.schedules, arm.resources, arm.asked, arm.cancelled):
        kept.clear()


def edited(token: str, inputs: dict[str, Any]) -> dict[str, Any]:
    """Inputs with an edit that is made in place, where there is such an edit."""
    body = opened(inputs)[0].get("body")
    if token != "amlstack:jobs:Job":
        return inputs
    changed = put({"body": body}, ("body", "properties", "displayName"), "another")
    return {**inputs, **opened(inputs)[1].seal(changed, ("body",))}


def life(wire: Wire, arm: FakeArm, token: str, inputs: dict[str, Any]) -> list[Any]:
    """The answers to a resource from its preview to its end, and the records that it wrote into the workspace."""
    resource = Resource(wire, token, "a")
    arm.network.mode = "AllowOnlyApprovedOutbound" if token == NETWORK else ""
    steps: list[Any] = [sorted(resource.preview(inputs)), resource.up(inputs), resource.up(inputs)]
    resource.refresh()
    after = edited(token, inputs)
    steps += [resource.up(after, same_deployment=True), resource.up(after, same_deployment=True)]
    state = opened(resource.outputs)[0]
    resource.remove()
    sent = [(asked.method, _without_marks(asked.body)) for asked in arm.asked if asked.method != "GET"]
    return [*steps, {name: state.get(name) for name in shape_of(token).fields}, sent]


def _without_marks(body: Any) -> Any:
    """A body as it is sent, without the digests in it: theirs are other ones for secrets."""
    if isinstance(body, dict):
        return {key: _without_marks(item) for key, item in body.items() if not key.startswith("amlstack.")}
    return body


@pytest.mark.parametrize("token", TYPES)
def test_shapes_and_schema_name_the_same_inputs(token: str, wire: Wire) -> None:
    schema = json.loads(wire.call("GetSchema", provider_pb2.GetSchemaRequest()).schema)
    assert set(schema["resources"][token]["inputProperties"]) == set(shape_of(token).fields)
    outputs = schema["resources"][token]["properties"]
    assert set(shape_of(token).digests) <= set(outputs)


@pytest.mark.tools
@pytest.mark.parametrize("token", TYPES)
def test_a_secret_input_changes_nothing_and_is_seen_nowhere(
    token: str, wire: Wire, own: FakeArm, seen: Seen, tmp_path: Path
) -> None:
    plain = inputs_of(token, tmp_path)
    expected = life(wire, own, token, plain)
    wrong = []
    for place in places(plain):
        forget(own)
        seen.forget()
        inputs = put(plain, place, Secret(at(plain, place)))
        try:
            happened = life(wire, own, token, inputs)
        except (Refused, AssertionError) as error:
            wrong.append(f"{place}: {error}")
            continue
        rule = shape_of(token).fields[str(place[0])]
        shown = seen.text(ids=not (rule.in_id and len(place) == 1))
        wrong += [f"{place} does {now}, not {was}" for was, now in zip(expected, happened, strict=True) if was != now]
        wrong += [f"{place} shows {canary}" for canary in canaries(at(plain, place)) if canary in shown]
        for part in places(at(plain, place), place):
            value = at(plain, part)
            fast = (sha256(value)[:12], sha256({"body": value})[:12])
            wrong += [f"{place} shows a fast digest of {part}" for one in fast if one in shown]
    assert wrong == []


@pytest.mark.parametrize("kind", [UNKNOWN, Secret(UNKNOWN)], ids=["unknown", "secret unknown"])
@pytest.mark.parametrize("token", TYPES)
def test_an_unknown_input_passes_every_preview(token: str, kind: Any, wire: Wire, own: FakeArm, tmp_path: Path) -> None:
    plain = inputs_of(token, tmp_path)
    own.script = ("Completed",)  # that what an active run lives on is replaced is refused, and another test's subject
    resource = Resource(wire, token, "a")
    own.network.mode = "AllowOnlyApprovedOutbound" if token == NETWORK else ""
    resource.up(plain)
    own.asked.clear()
    wrong = []
    for place in places(plain):
        inputs = put(plain, place, kind)
        try:
            checked = resource.check(inputs)
            assert at(checked, place) == kind, "the mark is lost"
            Resource(wire, token, "b").preview(inputs)
            wire.configure()
            if not resource.diff(checked).replaces:
                request = provider_pb2.UpdateRequest(
                    id=resource.id, urn=resource.urn, preview=True, olds=encode(resource.outputs),
                    old_inputs=encode(resource.inputs), news=encode(checked, keep_unknowns=True),
                )  # fmt: skip
                decode(wire.call("Update", request).properties)
        except (Refused, AssertionError) as error:
            wrong.append(f"{place}: {error}")
    assert wrong == []
    assert {asked.method for asked in own.asked} <= {"GET"}, "a preview changes nothing"


@pytest.mark.parametrize("name", ["onEdit", "wait"])
def test_an_edit_of_an_active_run_whose_treatment_is_unknown_passes_the_preview(
    name: str, wire: Wire, own: FakeArm, tmp_path: Path
) -> None:
    token = "amlstack:jobs:Job"
    plain = inputs_of(token, tmp_path)
    job = Resource(wire, token, "a")
    job.up({**plain, "onEdit": "keep"})
    wire.configure()
    job.diff(job.check({**plain, "onEdit": "keep", "rerun": "another", name: UNKNOWN}))
    assert own.cancelled == []


@pytest.mark.parametrize("mode", ["refuse", "cancel"])
def test_an_unchanged_up_with_a_secret_workspace_leaves_the_live_run_alone(
    wire: Wire, own: FakeArm, mode: str, tmp_path: Path
) -> None:
    token = "amlstack:jobs:Job"
    inputs = {**inputs_of(token, tmp_path), "workspace": Secret(OWN_WORKSPACE), "onEdit": mode}
    job = Resource(wire, token, "a")
    job.up(inputs)
    assert job.up(inputs) == "same"
    assert own.cancelled == []
    assert own.runs_started() == 1


def test_marking_an_input_as_secret_writes_the_state_anew_and_runs_nothing(
    wire: Wire, own: FakeArm, seen: Seen, tmp_path: Path
) -> None:
    token = "amlstack:jobs:Job"
    plain = inputs_of(token, tmp_path)
    job = Resource(wire, token, "a")
    job.up(plain)
    marked = put(plain, ("body", "properties", "environmentVariables"), Secret({"canary_variable": "canary-value"}))
    marked["declaration"] = Secret(plain["declaration"])
    seen.forget()
    assert job.up(marked) == "update"
    assert job.up(marked) == "same"
    assert own.runs_started() == 1
    assert not [one for one in ("canary-value", "canary-declaration") if one in seen.text(ids=True)]


def test_what_is_secret_in_a_declaration_is_in_no_fast_digest_of_the_record(
    wire: Wire, own: FakeArm, tmp_path: Path
) -> None:
    token = "amlstack:jobs:Job"
    plain = inputs_of(token, tmp_path)
    secret = put(plain, ("declaration", "canary_declaration"), Secret("canary-declaration"))
    job = Resource(wire, token, "a")
    job.up(secret)
    again = Resource(wire, token, "a")
    again.up(secret)
    assert again.id == job.id, "an id is the same with nothing left of the state"
    names = [plain["name"], plain["declaration"], plain["codeHash"], plain["rerun"]]
    record = canonical(next(iter(own.jobs.values())))
    assert sha256(names) not in record
    assert sha256([*names, "train/dev"])[:10] not in f"{record} {job.id}"


def test_refusals_and_service_errors_quote_no_secret(wire: Wire, own: FakeArm, seen: Seen, tmp_path: Path) -> None:
    token = "amlstack:jobs:Job"
    plain = inputs_of(token, tmp_path)
    job = Resource(wire, token, "a")
    failures = job.failures({**plain, "wait": Secret("canary-wait"), "name": Secret("canary name"), "onEdit": "x"})
    assert set(failures) == {"wait", "name", "onEdit"}
    assert not [one for one in ("canary-wait", "canary name") if one in str(failures)]
    seen.forget()
    secret = put(plain, ("body", "properties", "command"), Secret("python canary-command.py"))
    own.fail("PUT", "/jobs/", 400, message="the command `python canary-command.py` is wrong")
    with pytest.raises(Refused, match=r"the command `\[secret\]` is wrong"):
        job.up(secret)
    assert "canary-command" not in seen.text(ids=True)


def test_a_secret_name_is_warned_of_since_ids_are_kept_in_clear_text(
    wire: Wire, own: FakeArm, log: Log, tmp_path: Path
) -> None:
    inputs = inputs_of("amlstack:jobs:Job", tmp_path)
    Resource(wire, "amlstack:jobs:Job", "a").check({**inputs, "name": Secret(inputs["name"])})
    (warning,) = log.messages("warning")
    assert warning.startswith("name is a secret, and it becomes part of the resource's id")
