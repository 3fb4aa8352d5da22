"""A fault in the stack settings is one finding with its place and its remedy; all of them come together."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlstack.base.paths import PROJECT
from infra.settings import CuratedEnvironment, Reading, from_engine, parse, read_file
from tests.support.examples import examples
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding

GOOD: dict[str, Any] = {
    "location": "westeurope",
    "workspace": "aml-team",
    "clusters": [{"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"max": 2}}],
    "environments": ["acpt-pytorch-2.8-cuda12.6", {"name": "mine", "image": "ubuntu:24.04"}],
    "jobs": ["examples/ddp_torchrun/job.py"],
}


def with_(path: str, value: Any) -> dict[str, Any]:
    """The good settings with one value put in; ``clusters.0.nodes.max``."""
    whole = deepcopy(GOOD)
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
    at: Any = whole
    for part in way:
        at = at[part]
    at[last] = value
    return dict(whole)


def without(path: str) -> dict[str, Any]:
    whole = with_(path, None)
    *way, last = (int(part) if part.isdigit() else part for part in path.split("."))
    at: Any = whole
    for part in way:
        at = at[part]
    del at[last]
    return whole


def only(reading: Reading) -> Finding:
    assert reading.settings is None
    (finding,) = reading.findings
    return finding


def test_good_settings_give_none() -> None:
    reading = parse(GOOD)
    assert reading.findings == ()
    assert reading.settings is not None
    assert reading.settings.environments[0] == CuratedEnvironment(curated="acpt-pytorch-2.8-cuda12.6")


@for_each(
    "values, where, code, words",
    [
        (with_("clutsers", []), "amlstack:clutsers", "setting-unknown", "The keys here are `location`"),
        (with_("clusters.0.nods", 1), "amlstack:clusters[0].nods", "setting-unknown", "Unknown key `nods`"),
        (with_("clusters.0.nodes", {"mx": 2}), "amlstack:clusters[0].nodes.mx", "setting-unknown", "mean `max`?"),
        (with_("clusters.0.idle", "PT5M"), "amlstack:clusters[0].idle", "setting-unknown", "Write it as `nodes.idle`."),
        (
            with_("clusters.0.fabric_check", "yes please"),
            "amlstack:clusters[0].fabric_check",
            "setting-value",
            "must be true, false or an object with keys, got `yes please`",
        ),
        (
            with_("clusters.0", {"name": "a100", "sise": "Standard_ND96asr_v4", "nodes": {"max": 1}}),
            "amlstack:clusters[0].sise",
            "setting-unknown",
            "Did you mean `size`?",
        ),
        (without("location"), "amlstack:location", "setting-missing", "`location` is missing"),
        (without("workspace"), "amlstack:workspace", "setting-missing", "The workspace"),
        (without("clusters.0.size"), "amlstack:clusters[0].size", "setting-missing", "`amlstack sizes`"),
        (with_("location", "West Europe"), "amlstack:location", "setting-value", "for example westeurope"),
        (with_("workspace", "a"), "amlstack:workspace.name", "setting-value", "3 to 33 characters"),
        (with_("workspace", ["a"]), "amlstack:workspace", "setting-value", "an object with keys"),
        (with_("clusters", "a100"), "amlstack:clusters", "setting-value", "must be a list, got `a100`"),
        (with_("clusters.0", "a100"), "amlstack:clusters[0]", "setting-value", "an object with keys"),
        (with_("clusters.0.name", "-x-"), "amlstack:clusters[0].name", "setting-value", "a letter first"),
        (with_("clusters.0.name", "line\n"), "amlstack:clusters[0].name", "setting-value", "3 to 24"),
        (with_("clusters.0.name", "x" * 25), "amlstack:clusters[0].name", "setting-value", "3 to 24"),
        (
            with_("clusters.0.nodes.max", "lots"),
            "amlstack:clusters[0].nodes.max",
            "setting-value",
            "must be an integer",
        ),
        (
            with_("clusters.0.nodes.min", -1),
            "amlstack:clusters[0].nodes.min",
            "setting-value",
            "at least 0, got `-1`",
        ),
        (with_("clusters.0.nodes.min", 3), "amlstack:clusters[0].nodes", "setting-value", "`min` is 3 and `max` is 2"),
        (with_("clusters.0.nodes.idle", "15m"), "amlstack:clusters[0].nodes.idle", "setting-value", "Write PT15M"),
        (with_("clusters.0.nodes.idle", 900), "amlstack:clusters[0].nodes.idle", "setting-value", "write PT900S"),
        (with_("clusters.0.priority", "low"), "amlstack:clusters[0].priority", "setting-value", "`low_priority`"),
        (with_("clusters.0.subnet", "default"), "amlstack:clusters[0].subnet", "setting-value", "by its ARM id"),
        (with_("clusters.0.description", 5), "amlstack:clusters[0].description", "setting-value", "string"),
        (
            with_("environments.1", {"name": "x", "imge": "y"}),
            "amlstack:environments[1].imge",
            "setting-unknown",
            "`image`",
        ),
        (
            with_("environments.1", {"curated": "x", "version": 3}),
            "amlstack:environments[1].version",
            "setting-value",
            "string",
        ),
        (
            with_("jobs.0", {"file": "a.py", "wait": "complete"}),
            "amlstack:jobs[0].wait",
            "setting-value",
            "mean `completed`?",
        ),
        (with_("tags", {"a<b": "x"}), "amlstack:tags.a<b", "setting-value", "none of <>%"),
        (with_("tags", {"n": 5}), "amlstack:tags.n", "setting-value", "Quote it"),
        (with_("assign_roles", "perhaps"), "amlstack:assign_roles", "setting-value", "true or false"),
        (with_("protect", "yes"), "amlstack:protect", "setting-value", "`auto`, `true`, `false`"),
        (
            with_("clusters", [*GOOD["clusters"], {"name": "A100", "size": "Standard_ND40rs_v2", "nodes": {"max": 1}}]),
            "amlstack:clusters[1]",
            "setting-twice",
            "`A100` is listed here and in amlstack:clusters[0]",
        ),
    ],
)
def test_one_fault_is_one_finding(values: dict[str, Any], where: str, code: str, words: str) -> None:
    finding = only(parse(values))
    assert (finding.where, finding.code) == (where, code)
    assert words in finding.message


FAULTY = """\
config:
  azure-native:location: westeurope
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:clutsers:
    - name: a100
      size: Standard_ND96asr_v4
      nodes: { min: 0, mx: 2 }
      single_nod_jobs: true
  amlstack:jobs:
    - file: job.py
      on_edit: canel
  amlstack:assign_roles: maybe
"""


def test_every_mistake_of_a_file_gives_a_finding_with_line_and_column(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    path.write_text(FAULTY)
    reading = read_file(path)
    settings, found = reading.settings, reading.findings
    assert settings is None
    assert [(finding.file, finding.line, finding.column, finding.where) for finding in found] == [
        ("Pulumi.team.yaml", 5, 3, "amlstack:clutsers"),
        ("Pulumi.team.yaml", 8, 24, "amlstack:clutsers[0].nodes.mx"),
        ("Pulumi.team.yaml", 9, 7, "amlstack:clutsers[0].single_nod_jobs"),
        ("Pulumi.team.yaml", 12, 7, "amlstack:jobs[0].on_edit"),
        ("Pulumi.team.yaml", 13, 3, "amlstack:assign_roles"),
    ]


def test_a_misspelt_key_is_read_as_what_was_meant_so_that_the_rest_is_judged_too(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    path.write_text(FAULTY)
    reading = read_file(path)
    assert reading.partial is not None
    (cluster,) = reading.partial.clusters
    assert (cluster.size, cluster.nodes.max, cluster.single_node_jobs) == ("Standard_ND96asr_v4", 2, True)
    assert not reading.doubts("clusters", 0)


@pytest.mark.parametrize(
    ("scale", "found"),
    [
        ({"min_nodes": 3, "max_nodes": 4}, {"min_nodes": "`nodes.min`", "max_nodes": "`nodes.max`"}),
        ({"max_nodes": 2, "idle": "5 minutes"}, {"max_nodes": "`nodes.max`", "idle": "`nodes.idle`"}),
        ({"nodes": {"min": 3}}, {"nodes.max": "`max` is missing"}),
        ({"nodes": [], "max_nodes": 4}, {"nodes": "must be an object", "max_nodes": "`nodes.max`"}),
    ],
)
def test_a_key_of_an_inner_mapping_is_read_there_and_nothing_that_follows_is_a_finding(
    scale: dict[str, Any], found: dict[str, str]
) -> None:
    cluster = {"name": "a100", "size": "Standard_ND96asr_v4", **scale}
    reading = parse({**GOOD, "clusters": [cluster]})
    by_key: dict[str, list[str]] = {}
    for finding in reading.findings:
        by_key.setdefault(finding.where.removeprefix("amlstack:clusters[0]."), []).append(finding.message)
    assert by_key.keys() == found.keys()
    assert all(any(words in message for message in by_key[key]) for key, words in found.items())


def test_what_had_to_be_made_up_is_in_doubt() -> None:
    reading = parse(without("clusters.0.size"))
    assert reading.doubts("clusters", 0, "size")
    assert reading.doubts("clusters", 0)
    assert not reading.doubts("clusters", 0, "name")


@for_each(
    "text, words",
    [
        ("config: [\n", "cannot be read"),
        ("config: 3\n", "`config` maps keys to values"),
        ("config:\n\tx: 1\n", "cannot be read"),
        ("config:\n  amlstack:tags: {[a]: b}\n", "cannot be read"),
        ("config:\n  amlstack:tags: {a: 2026-13-45}\n", "cannot be read"),
        ("config:\n  amlstack:location: a\n  amlstack:location: b\n", "is given here and in line 2"),
    ],
)
def test_a_file_that_is_no_stack_file_is_one_finding(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    path.write_text(text)
    (finding,) = read_file(path).findings
    assert words in finding.message
    assert finding.file == "Pulumi.team.yaml"


def test_a_value_that_unfolds_without_end_is_not_unfolded(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    nested = [f"  other:l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]" for i in range(1, 12)]
    ours = ["  amlstack:location: westeurope", "  amlstack:workspace: aml", "  amlstack:clusters: *l11"]
    path.write_text("\n".join(["config:", "  other:l0: &l0 [x]", *nested, *ours]))
    (finding,) = read_file(path).findings
    assert "written out, this holds more than 1,000,000 values" in finding.message
    assert (finding.file, finding.line) == ("Pulumi.team.yaml", 8)


@pytest.mark.parametrize("loop", ["&a [*a]", "&a {name: *a}"])
def test_a_value_that_holds_itself_has_an_end(tmp_path: Path, loop: str) -> None:
    path = tmp_path / "Pulumi.team.yaml"
    path.write_text(
        f"config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml\n  amlstack:clusters: {loop}\n"
    )
    reading = read_file(path)
    settings, found = reading.settings, reading.findings
    assert settings is None
    assert all(str(finding) for finding in found)
    assert found


def test_a_missing_file_is_one_finding(tmp_path: Path) -> None:
    (finding,) = read_file(tmp_path / "Pulumi.nowhere.yaml").findings
    assert "No such file" in finding.message


def test_the_engine_and_the_file_give_the_same_settings() -> None:
    path = PROJECT / "Pulumi.sandbox.yaml"
    import json

    config = yaml.safe_load(path.read_text())["config"]
    engine = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    reading = from_engine({**engine, "azure-native:location": "x"}, None)
    assert reading.findings == ()
    assert reading.settings == read_file(path).settings is not None


words = st.sampled_from([
    "location", "workspace", "clusters", "environments", "jobs", "tags", "name", "size", "nodes", "min", "max", "idle",
    "curated", "image", "file", "wait", "clutsers", "nods", "", "<curated>", "[key]", "amlstack:x",
])  # fmt: skip
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=5)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=3), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=examples(1), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(words, trees, max_size=6))
def test_nothing_that_can_be_written_is_a_traceback(values: dict[str, Any]) -> None:
    reading = parse(values)
    assert reading.findings or reading.settings is not None
    assert all(str(finding) for finding in reading.findings)
    assert reading.partial is not None


def test_a_key_that_is_spelt_as_the_provider_spells_it_is_known_by_that_name() -> None:
    read = parse({"location": "westeurope", "workspace": "aml", "armEndpoint": "https://management.usgovcloudapi.net"})
    assert read.settings is not None
    assert read.settings.arm_endpoint == "https://management.usgovcloudapi.net"

    (finding,) = parse({"location": "westeurope", "workspace": "aml", "armEndpont": "https://x"}).findings
    assert "Did you mean `armEndpoint`?" in finding.message
