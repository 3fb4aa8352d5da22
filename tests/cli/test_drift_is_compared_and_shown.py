"""`amlstack drift` reads the engine's events: differences, changes that happen by themselves, and remedies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack import engine
from amlstack.base import home as homes
from amlstack.catalog import resources
from amlstack.catalog.files import rows
from amlstack.cli.main import main
from amlstack.cli.stack import pulumi_stack
from amlstack.cli.stack.drift import report
from amlstack.cli.stack.drift.look import Comparison, look_through
from amlstack.cli.stack.drift.mending import StackMending, differences, value_at
from amlstack.cli.stack.drift.report import Declaring, Look, PropertyDrift, ResourceDrift
from amlstack.cli.stack.pulumi_stack import PulumiStack, lock_file
from amlstack.cli.stack_files import State
from infra.settings import read_file
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER = "azure-native:machinelearningservices/v20250901:Compute"
WORKSPACE = "azure-native:machinelearningservices:Workspace"
SCALE = "properties.properties.scaleSettings"
SETTINGS = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: ws
  amlstack:clusters:
    - {name: first, size: Standard_ND96asr_v4, nodes: {max: 2}}
    - name: busy
      size: Standard_ND96asr_v4
      nodes:
        max: 8
    - include: more.yml
  amlstack:environments:
    - {name: small, image: "img:1"}
"""


@pytest.fixture
def mending(tmp_path: Path) -> StackMending:
    (tmp_path / "more.yml").write_text("- {name: included, size: Standard_ND96asr_v4, nodes: {max: 2}}\n")
    file = tmp_path / "Pulumi.prod.yaml"
    file.write_text(SETTINGS)
    return StackMending("prod", "amlstack up --stack prod", read_file(file), file, plain=True)


def event(
    kind: str,
    name: str,
    *,
    was: dict[str, Any] | None = None,
    now: dict[str, Any] | None = None,
    outputs: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    differ: tuple[str, ...] = (),
    op: str = "update",
) -> dict[str, Any]:
    """One resource as `refresh --preview-only` reports it."""
    urn = f"urn:pulumi:prod::p::{kind}::{name}"
    new = None if op == "delete" else {"id": f"/{name}", "inputs": now or was or {}, "outputs": outputs[1]}
    meta = {"op": op, "urn": urn, "type": kind, "new": new}
    meta["old"] = {"id": f"/{name}", "inputs": was or {}, "outputs": outputs[0]}
    meta["detailedDiff"] = {path: {"diffKind": "update", "inputDiff": True} for path in differ} or None
    return {"resOutputsEvent": {"metadata": meta}}


def looked(mending: StackMending, *events: dict[str, Any]) -> Look:
    look = Look("prod", "Azure")
    comparison = Comparison(look, mending)
    for each in events:
        comparison.take(each)
    comparison.done()
    return look


def scaled(most: int, idle: str = "PT10M") -> dict[str, Any]:
    scale = {"minNodeCount": 0, "maxNodeCount": most, "nodeIdleTimeBeforeScaleDown": idle}
    return {"properties": {"computeType": "AmlCompute", "properties": {"scaleSettings": scale}}}


def cluster(name: str, most: int) -> dict[str, Any]:
    return event(CLUSTER, name, was=scaled(8), now=scaled(most), differ=(f"{SCALE}.maxNodeCount",))


@for_each(
    "old, new, expected",
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, [("a", 1, 2)]),
        ({"a": {}}, {}, []),
        ({}, {"a": {"b": {}, "c": None}}, []),
        ({}, {"a": {"b.c": 1}}, [('a["b.c"]', None, 1)]),
        ({"a": [1, 2]}, {"a": [1]}, [("a", [1, 2], [1])]),
        ({"a": {"b": 1}}, {"a": "text"}, [("a", {"b": 1}, "text")]),
        ({}, {"a": False}, [("a", None, False)]),
    ],
)
def test_differences_name_each_property_once(old: Any, new: Any, expected: Any) -> None:
    assert list(differences(old, new)) == expected


def test_a_path_finds_its_value() -> None:
    values = {"a": {"b.c": [{"d": 1}], 'q"': 2}, "n": None}
    assert value_at(values, 'a["b.c"][0].d') == 1
    assert value_at(values, 'a["q\\""]') == 2
    assert value_at(values, "n") is None
    assert all(value_at(values, path) is None for path in ("a.x", "n.x", 'a["b.c"][1]', "a[0]"))


def test_a_cluster_changed_outside_names_the_setting_its_place_and_the_command(mending: StackMending) -> None:
    look = looked(mending, cluster("busy", 5))
    (resource,) = look.resources
    (nodes,) = resource.properties
    assert (resource.name, nodes.path, nodes.declared, nodes.there) == ("Compute busy", f"{SCALE}.maxNodeCount", 8, 5)
    assert nodes.adopt == Declaring(
        "write `amlstack:clusters[1].nodes.max: 5` in Pulumi.prod.yaml:9, then `amlstack up --stack prod`",
        "amlstack:clusters[1].nodes.max",
        5,
        "Pulumi.prod.yaml:9",
        "pulumi config set --path 'amlstack:clusters[1].nodes.max' 5 --stack prod",
    )
    assert resource.put_back == "amlstack up --stack prod --refresh"
    assert resource.put_back_alone == f"pulumi up --stack prod --refresh --target {resource.urn}"
    assert look.exit_status == 1


def test_a_setting_of_an_included_file_is_written_there_by_an_editor(mending: StackMending) -> None:
    (resource,) = looked(mending, cluster("included", 5)).resources
    adopt = resource.properties[0].adopt
    assert adopt.words.startswith("write `amlstack:[0].nodes.max: 5` in more.yml:1") or "more.yml:1" in adopt.words
    assert adopt.command == ""


@pytest.mark.parametrize(
    ("path", "there", "setting", "value"),
    [
        ("tags.team", "x", "amlstack:clusters[1].tags.team", "x"),
        ("properties.description", "new", "amlstack:clusters[1].description", "new"),
        ("properties.properties.vmPriority", "LowPriority", "amlstack:clusters[1].priority", "low_priority"),
        ("properties.propertyBag", {"a": 1}, "", None),
    ],
)
def test_each_property_of_a_cluster_finds_its_setting(
    mending: StackMending, path: str, there: Any, setting: str, value: Any
) -> None:
    inputs: dict[str, Any] = scaled(8)
    at = inputs
    *parents, last = path.split(".")
    for parent in parents:
        at = at.setdefault(parent, {})
    at[last] = there
    found = looked(mending, event(CLUSTER, "busy", was=scaled(8), now=inputs, differ=(path,)))
    adopt = found.resources[0].properties[0].adopt
    assert (adopt.setting, adopt.value) == (setting, value)


@pytest.mark.parametrize(
    ("path", "there", "words"),
    [
        ("tags.who", "portal", "write `amlstack:tags.who: \"portal\"` in Pulumi.prod.yaml"),
        ("publicNetworkAccess", "Enabled", "decided by `amlstack:workspace.public_network`"),
        ("friendlyName", "n", "write `amlstack:workspace.display_name: \"n\"`"),
        ("v1LegacyMode", True, "no setting of this project says it"),
    ],
)  # fmt: skip
def test_properties_of_the_workspace_name_what_decides_them(
    mending: StackMending, path: str, there: Any, words: str
) -> None:
    now: dict[str, Any] = {"tags": {"who": there}} if path.startswith("tags") else {path: there}
    found = looked(mending, event(WORKSPACE, "workspace", was={}, now=now, differ=(path,)))
    assert found.resources[0].properties[0].adopt.words.startswith(words)


def test_what_is_gone_is_drift_and_says_which_entry_would_go(mending: StackMending) -> None:
    version = "amlstack:environments:Version"
    look = looked(
        mending,
        event(version, "small-1", was={"name": "small"}, op="delete"),
        event("azure-native:storage:StorageAccount", "storage", op="delete"),
    )
    storage, environment = sorted(look.resources, key=lambda each: each.name)
    assert {each.what for each in look.resources} == {"deleted"}
    assert environment.adopt is not None
    assert environment.adopt.words.startswith("remove `small` from `amlstack:environments` (Pulumi.prod.yaml:12)")
    assert storage.adopt is not None
    assert storage.adopt.words.endswith("put it back")


def nodes(count: int) -> dict[str, Any]:
    return {"properties": {"properties": {"currentNodeCount": count}}}


def test_what_azure_changes_by_itself_is_left_out_with_who_does_it(mending: StackMending) -> None:
    rules = {
        "system": {"category": "Required", "type": "FQDN"},
        "ours": {"category": "UserDefined", "type": "FQDN"},
        "theirs": {"category": "UserDefined", "type": "FQDN"},
    }
    now = {"managedNetwork": {"status": {"status": "Active"}, "outboundRules": rules}, "tags": {"hidden-link: x": "1"}}
    look = looked(
        mending,
        event(WORKSPACE, "workspace", now=now, differ=("managedNetwork", "tags")),
        event("amlstack:network:Managed", "network", was={"rules": {"ours": {}}}, op="same"),
        event(CLUSTER, "busy", op="same", outputs=(nodes(0), {**nodes(2), "etag": "1"})),
    )
    (resource,) = look.resources
    assert [each.path for each in resource.properties] == ["managedNetwork.outboundRules.theirs"]
    who = {each.path: each.who for each in look.left_out}
    assert who["managedNetwork.status.status"].startswith("Azure ML")
    assert who["managedNetwork.outboundRules.system"].startswith("Azure ML")
    assert who["managedNetwork.outboundRules.ours"].startswith("the stack itself")
    assert who["tags.hidden-link: x"].startswith("the Azure portal")
    assert who["properties.properties.currentNodeCount"] == "the cluster's autoscaling"
    assert who["etag"].startswith("the service")


def test_a_schedule_changed_outside_is_drift_and_a_paused_one_is_not(mending: StackMending) -> None:
    kind, body = "amlstack:schedules:Schedule", {"body": {"properties": {"trigger": {"expression": "0 1 * * *"}}}}
    path = "body.properties.trigger.expression"
    changed = looked(mending, event(kind, "s", was=body, op="same", outputs=({"drifted": []}, {"drifted": [path]})))
    (resource,) = changed.resources
    assert [(each.path, each.declared) for each in resource.properties] == [(path, "0 1 * * *")]
    paused = looked(mending, event(kind, "s", was=body, op="same", outputs=({"enabled": True}, {"enabled": False})))
    assert paused.resources == []
    assert paused.left_out[0].who.startswith("a person who paused the schedule")


@pytest.mark.parametrize(
    ("recorded", "now", "words"),
    [
        ({"status": "Running"}, {"status": "Completed"}, "Completed (recorded: Running)"),
        ({"status": "Running"}, {"status": "Canceled"}, "Canceled (recorded: Running)"),
        ({"status": "Running"}, {"status": "Running", "gone": True},
         "its record is gone from the workspace (last seen Running)"),
        ({"status": "Completed"}, {"status": "Completed"}, "Completed"),
    ],
)  # fmt: skip
def test_runs_are_what_they_are_and_no_drift(
    mending: StackMending, recorded: dict[str, Any], now: dict[str, Any], words: str
) -> None:
    look = looked(mending, event("amlstack:jobs:Job", "train", op="same", outputs=(recorded, now)))
    assert (look.resources, look.exit_status) == ([], 0)
    assert [run.words for run in look.runs] == [words]


def test_groups_and_notes_of_the_project_are_no_resources(mending: StackMending) -> None:
    look = looked(mending, event("pulumi:pulumi:Stack", "s"), event("amlstack:infra:Clusters", "c"))
    assert look.looked_at == 0


def test_secrets_are_not_shown(mending: StackMending) -> None:
    secret = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "v1:x"}
    now = {"description": secret}
    (resource,) = looked(mending, event(WORKSPACE, "w", now=now, differ=("description",))).resources
    assert resource.properties[0].there == "[secret]"


def test_the_text_tells_both_ways_and_lists_the_rest_only_when_asked(mending: StackMending) -> None:
    look = looked(
        mending,
        cluster("busy", 5),
        event("amlstack:jobs:Job", "train", op="same", outputs=({"status": "Running"}, {"status": "Failed"})),
        event(WORKSPACE, "w", op="same", outputs=({}, {"etag": "1"})),
    )
    short, long = ("\n".join(report.lines(look, everything=each)) for each in (False, True))
    assert short.startswith("drift: 1 changed of 3 resources of `prod` on Azure\nCompute busy was changed\n")
    assert f"    {SCALE}.maxNodeCount: declared 8, there 5\n" in short
    assert "train, /train: Failed (recorded: Running)" in short
    assert "1 property changed by itself and is left out" in short
    assert short.endswith("put everything back: amlstack up --stack prod --refresh")
    assert "Workspace w, etag: - → 1; by the service" in long
    assert "etag" not in short


def test_the_issue_is_the_same_text_while_the_drift_is(mending: StackMending) -> None:
    def body(count: int, status: str) -> str:
        runs = event("amlstack:jobs:Job", "train", op="same", outputs=({"status": "Running"}, {"status": status}))
        service = event(WORKSPACE, "w", op="same", outputs=({}, {"etag": str(count)}))
        events = [cluster("busy", 5), runs, service]
        return report.issue_body(looked(mending, *(events if count % 2 else reversed(events))))

    assert body(1, "Running") == body(2, "Completed")
    assert report.issue_body(looked(mending)) == "The stack `prod` is as it was deployed.\n\n"
    assert report.issue_title("prod") == "Drift of the stack prod"


def test_an_issue_is_printed_alone_and_ends_as_the_look_does(
    mending: StackMending, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = ({"status": "Completed"}, {"status": "Completed", "gone": True})
    lost = event("amlstack:jobs:Job", "lost", op="same", outputs=gone)
    service = event(WORKSPACE, "w", op="same", outputs=({}, {"etag": "1"}))
    look = looked(mending, cluster("busy", 5), lost, service)
    monkeypatch.setattr("amlstack.cli.stack.drift.look.look_at", lambda *_, **__: look)
    assert main(["drift", "--stack", "prod", "--format", "github"]) == 1
    text = capsys.readouterr().out
    assert text == report.issue_body(look)
    assert f"| `{SCALE}.maxNodeCount` | `8` | `5` |" in text
    assert "Records of runs that are gone" in text
    assert "etag" not in text


def test_an_issue_survives_whatever_values_there_are(mending: StackMending) -> None:
    assert report.code("a`b|c\nd") == "``a`b\\|c d``"
    assert report.code("`x`") == "`` `x` ``"
    many = PropertyDrift("p", "x" * 100, "y" * 100, Declaring("no"))
    look = Look("prod", "Azure", 1)
    look.resources = [ResourceDrift(f"u{n}", "t", f"n{n}", "i", "changed", (many,) * 10) for n in range(200)]
    shown = report.issue_body(look)
    assert len(shown) < 65_536
    assert "more parts: `amlstack drift --stack prod`" in shown


def test_every_row_of_what_changes_by_itself_has_a_source() -> None:
    for row in rows("own_changes"):
        assert row["who"]
        assert row["source"]
    assert resources.change_of("azure-native:storage:StorageAccount", 'tags["hidden-title"]', "x") is not None
    assert resources.change_of("azure-native:storage:StorageAccount", "tags.team", "x") is None


def test_a_look_that_cannot_be_trusted_is_refused(
    mending: StackMending, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = [State(({"urn": "a"},)), State(({"urn": "b"},))]
    monkeypatch.setattr(PulumiStack, "state", lambda _: states.pop(0))
    monkeypatch.setattr(engine, "run", lambda *_, **__: engine.Outcome())
    place = PulumiStack("prod", {}, tmp_path)
    with pytest.raises(pulumi_stack.BusyError, match="changed the state of `prod` while it was looked at"):
        look_through(place, mending)
    states[:] = [State()]
    with pytest.raises(engine.EngineError, match="has no resources"):
        look_through(place, mending)
    states[:] = [State(({"urn": "a"},), ("a",))] * 2
    urns = [f"urn:pulumi:p::p::t::{name}" for name in "nmo"]
    errors = [("error", urn, "Preview failed: no credential") for urn in urns]
    failed = engine.Outcome(code=255, diagnostics=[*errors, ("error", "", "preview failed")])
    monkeypatch.setattr(engine, "run", lambda *_, **__: failed)
    look = look_through(place, mending)
    assert look.exit_status == 2
    assert look.errors[0] == "t m (and 2 more): no credential"
    assert report.headline(look) == "nothing of `prod` on Azure could be looked at"
    assert "1 operation was cut off" in look.errors[1]


def test_what_cannot_be_looked_at_ends_with_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    assert main(["drift", "--stack", "nowhere", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["exit_status"] == 2
    assert main(["drift"]) == 2
    assert "is not on this machine's sandbox" in capsys.readouterr().err
    homes.claim(tmp_path / "home")
    backend = tmp_path / "home" / "pulumi" / ".pulumi" / "stacks" / "amlstack"
    backend.mkdir(parents=True)
    (backend / "sandbox.json").write_text("{}")
    with pulumi_stack.hold(lock_file("sandbox", sandbox=True), "sandbox", "amlstack up"):
        assert main(["drift"]) == 2
    assert "another `amlstack up` works on the stack" in capsys.readouterr().err
    assert main(["drift", "--stack", "prod", "--title"]) == 0
    assert capsys.readouterr().out == "Drift of the stack prod\n"
