"""``cluster_defaults``: each cluster is completed, and a finding points at the line where the value was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from amlstack.base.findings import Level
from amlstack.catalog import clock
from infra.declaration import declare
from infra.settings import parse, read_file
from infra.settings.model.cluster import Cluster
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

BASE = {"location": "westeurope", "workspace": "w-team"}
SIZE = "Standard_ND96asr_v4"
KEY = f"ssh-rsa {'A' * 100}"


def clusters(defaults: dict[str, Any], *entries: dict[str, Any]) -> tuple[Cluster, ...]:
    reading = parse({**BASE, "cluster_defaults": defaults, "clusters": list(entries)})
    assert reading.settings is not None, reading.findings
    return reading.settings.clusters


def test_an_entry_says_what_it_says_and_the_defaults_say_the_rest() -> None:
    defaults = {"size": SIZE, "nodes": {"min": 0, "max": 2, "idle": "PT20M"}, "tags": {"team": "a", "use": "b"},
                "identity": "system", "priority": "low_priority"}  # fmt: skip
    plain, other = clusters(
        defaults,
        {"name": "plain"},
        {"name": "other", "nodes": {"max": 8}, "tags": {"use": "c"}, "identity": {"type": "none"},
         "size": "Standard_HB120rs_v3"},
    )  # fmt: skip
    assert (plain.size, plain.nodes.max, plain.nodes.idle, plain.priority) == (SIZE, 2, "PT20M", "low_priority")
    assert (other.size, other.nodes.max, other.nodes.idle) == ("Standard_HB120rs_v3", 8, "PT20M")
    assert other.tags == {"team": "a", "use": "c"}
    assert (plain.identity.kind, other.identity.kind) == ("system", "none")


def test_every_key_of_a_cluster_but_its_name_can_be_a_default() -> None:
    from infra.settings.model.cluster import ClusterDefaults

    assert set(ClusterDefaults.model_fields) == set(Cluster.model_fields) - {"name"}
    assert not [name for name, field in ClusterDefaults.model_fields.items() if field.is_required()]


def test_a_cluster_without_defaults_is_as_before() -> None:
    reading = parse({**BASE, "clusters": [{"name": "plain", "size": SIZE, "nodes": {"max": 2}}]})
    completed = clusters({}, {"name": "plain", "size": SIZE, "nodes": {"max": 2}})
    assert reading.settings is not None
    assert reading.settings.clusters == completed


STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: w-team
  amlstack:cluster_defaults:
    size: {size}
    nodes:
      idle: {idle}
  amlstack:clusters:
    - {{name: one, nodes: {{max: 2}}}}
    - include: more.yml
"""
MORE = "- {name: two, nodes: {max: 4}}\n- {name: three, nodes: {max: 4, idle: PT1M}}\n"


def findings(
    tmp_path: Path, *, size: str = SIZE, idle: str = "PT20M", more: str = MORE
) -> list[tuple[str, int | None, str]]:
    (tmp_path / "Pulumi.team.yaml").write_text(STACK.format(size=size, idle=idle))
    (tmp_path / "more.yml").write_text(more)
    reading = read_file(tmp_path / "Pulumi.team.yaml")
    found = declare(reading, on=clock.today(), root=tmp_path).findings
    return [(one.code, one.line, one.where) for one in found if one.level is Level.ERROR]


def test_a_finding_on_a_default_points_at_its_line_once(tmp_path: Path) -> None:
    assert findings(tmp_path) == []
    assert findings(tmp_path, idle="later") == [("setting-value", 7, "amlstack:cluster_defaults.nodes.idle")]
    unknown = findings(tmp_path, size="Standard_ND96asr_v5")
    assert {(line, where) for _, line, where in unknown} == {(5, "amlstack:cluster_defaults.size")}


def test_a_finding_on_an_entry_points_at_the_entry(tmp_path: Path) -> None:
    more = "- {name: two, nodes: {max: 4}}\n- name: three\n  nodes: {max: 4, idle: soon}\n"
    assert findings(tmp_path, more=more) == [("setting-value", 3, "[1].nodes.idle")]


@for_each(
    "defaults, seen",
    [
        ({"name": "all"}, "`name` cannot be declared"),
        ({"siez": SIZE}, "Unknown key `siez`"),
        ({"size": 3}, "`size` must be a string, got `3`"),
        ({"nodes": {"max": "many"}}, "`max` must be an integer, got `many`"),
        ({"location": "westeuropa"}, "`westeuropa` is no region of Azure"),
        ({"os_type": "Windows"}, "`os_type` cannot be declared"),
    ],
)
def test_a_default_is_judged_though_no_cluster_takes_it(defaults: dict[str, Any], seen: str) -> None:
    (found,) = parse({**BASE, "cluster_defaults": defaults}).findings
    assert seen in found.seen
    assert found.where.startswith("amlstack:cluster_defaults.")


@for_each("entry, seen, rule", [
        ({"ssh": {"user": "a", "public_key": KEY, "password": "hidden"}}, "`password` cannot be declared", "password"),
        ({"ssh": {"user": "a", "public_key": KEY, "public_keys": []}}, "`public_keys` cannot be declared", "one key"),
        ({"property_bag": {}}, "`property_bag` cannot be declared", "describes no key"),
        ({"virtual_machine_image": "x"}, "`virtual_machine_image` cannot be declared", "Windows"),
        ({"ssh": {"user": "Administrator", "public_key": KEY}}, "`user` cannot be `Administrator`", "lower-case"),
        ({"ssh": {"user": "a", "public_key": KEY}, "disable_local_auth": True}, "is true", "on and off"),
        ({"ssh": {"user": "a", "public_key": KEY, "public_access": True}, "node_public_ip": False},
         "`node_public_ip` is false", "no public port"),
])  # fmt: skip
def test_what_a_cluster_cannot_be_is_refused_with_the_reason(entry: dict[str, Any], seen: str, rule: str) -> None:
    (found,) = parse({**BASE, "clusters": [{"name": "one", "size": SIZE, "nodes": {"max": 1}, **entry}]}).findings
    assert seen in found.seen
    assert rule in found.rule
    assert "hidden" not in str(found)


@for_each("key", ["min_instances", "tier", "ssh_settings", "vm_size", "network_settings"])
def test_the_keys_of_other_tools_are_answered_with_our_names(key: str) -> None:
    (found,) = parse({**BASE, "clusters": [{"name": "one", "size": SIZE, "nodes": {"max": 1}, key: 1}]}).findings
    assert found.remedy.startswith("Write `")


def test_a_private_key_is_not_shown() -> None:
    key = rsa.generate_private_key(65537, 2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    entry = {"name": "one", "size": SIZE, "nodes": {"max": 1}}
    for given in (private, private.replace("\n", ""), "".join(private.splitlines()[1:-1])):
        (found,) = parse({**BASE, "clusters": [{**entry, "ssh": {"user": "a", "public_key": given}}]}).findings
        assert private.splitlines()[1][12:] not in str(found)
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
    assert parse({**BASE, "clusters": [{**entry, "ssh": {"user": "a", "public_key": public}}]}).findings == ()
