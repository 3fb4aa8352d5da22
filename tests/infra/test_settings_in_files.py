"""Lists of the settings that are in files of their own: read, judged and placed like what the stack file has itself."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest
import yaml

from amlstack.base.findings import errors
from amlstack.base.paths import PROJECT
from infra.declaration import declare
from infra.settings import from_engine, read_file, stackfile
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding
    from infra.settings import Reading
    from tests.support.running import MakeStack, Sandbox

HEAD = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml-team\n"
CLUSTERS = "  amlstack:clusters:\n"
SUBNET = (
    "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/network/providers/Microsoft.Network"
    "/virtualNetworks/training/subnets/nodes"
)
JOB = """\
command: python train.py
environment: azureml:acpt-pytorch-2.8-cuda12.6@latest
compute: azureml:{cluster}
resources: {{instance_count: 2}}
distribution: {{type: pytorch, process_count_per_instance: 8}}
limits: {{timeout: 3600}}
"""


def cluster(name: str, **more: object) -> str:
    values = {"name": name, "size": "Standard_ND96asr_v4", "nodes": {"max": 2}, "node_public_ip": False, **more}
    return f"- {json.dumps(values)}\n"


def stack_of(folder: Path, entries: str, **files: str) -> Path:
    """A stack file with these clusters, and files beside it: ``west__a`` is ``west/a.yml``."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
    path = folder / "Pulumi.team.yaml"
    path.write_text(f"{HEAD}{CLUSTERS}{entries}", "utf-8")
    return path


def names(reading: Reading) -> list[str]:
    assert reading.settings is not None, reading.findings
    return [each.name for each in reading.settings.clusters]


def only(reading: Reading) -> Finding:
    (finding,) = reading.findings
    return finding


def test_entries_of_files_stand_where_they_are_included(tmp_path: Path) -> None:
    path = stack_of(
        tmp_path,
        f"  {cluster('first')}  - include: west/*.yml\n  {cluster('between')}  - include: [other.yml]\n",
        west__b=cluster("west-b"),
        west__a=cluster("west-a1") + cluster("west-a2"),
        other=cluster("other"),
        unused=cluster("unused"),
    )
    (tmp_path / "west" / ".hidden.yml").write_text("not: a list\n")
    assert names(read_file(path)) == ["first", "west-a1", "west-a2", "west-b", "between", "other"]


def test_the_engine_and_the_stack_file_give_the_same(tmp_path: Path) -> None:
    path = stack_of(tmp_path, f"  - include: more.yml\n  {cluster('last')}", more=cluster("one") + cluster("a b"))
    config = yaml.safe_load(path.read_text())["config"]
    handed = {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    file, _ = stackfile.read(path)
    by_engine = from_engine(handed, file, root=tmp_path)
    assert by_engine.partial == read_file(path).partial
    assert by_engine.findings == read_file(path).findings
    assert only(by_engine).place == "more.yml:2:4: [1].name"


def test_environments_and_jobs_are_included_too(tmp_path: Path) -> None:
    path = stack_of(tmp_path, f"  {cluster('a100')}")
    path.write_text(
        f"{path.read_text()}  amlstack:environments: [{{include: environments.yml}}]\n"
        "  amlstack:jobs: [{include: jobs.yml}]\n"
    )
    (tmp_path / "environments.yml").write_text("- acpt-pytorch-2.8-cuda12.6\n- {name: own, image: 'ubuntu:24.04'}\n")
    (tmp_path / "jobs.yml").write_text("- one.yml\n- {file: two.yml, rerun: again}\n- three.yml\n")
    for name, on in (("one", "a100"), ("two", "a10")):
        (tmp_path / f"{name}.yml").write_text(JOB.format(cluster=on))
    declared = declare(read_file(path), on=date(2026, 1, 1), root=tmp_path)
    assert [run.name for run in declared.runs] == ["one", "two"]
    assert declared.runs[1].declared.rerun == "again"
    unknown, missing = errors(declared.findings)
    assert (unknown.code, unknown.file, unknown.line) == ("cluster-unknown", "two.yml", 3)
    assert missing.place == "jobs.yml:3:3: [2]"
    assert missing.seen == "There is no file `three.yml`"


def test_the_rules_findings_name_the_line_in_the_included_file(tmp_path: Path) -> None:
    entries = f"  {cluster('first')}  - include: more.yml\n  {cluster('last', size='Standard_NC24rs_v2')}"
    more = cluster("fine") + "- name: wrong\n  size: Standard_ND96asr_v5\n  nodes: {max: 2}\n"
    path = stack_of(tmp_path, entries, more=more)
    found = errors(declare(read_file(path), on=date(2026, 1, 1), root=tmp_path).findings)
    assert [each.place for each in found] == ["more.yml:3:3: [1].size", f"{path.name}:7:22: amlstack:clusters[2].size"]


def test_faults_of_an_included_file_are_findings_in_it(tmp_path: Path) -> None:
    more = "- name: good\n  size: Standard_ND96asr_v4\n  nodes: {max: two}\n  zzz: x\n- 7\n"
    found = read_file(stack_of(tmp_path, "  - include: more.yml\n", more=more)).findings
    assert [each.place for each in found] == [
        "more.yml:3:11: [0].nodes.max",
        "more.yml:4:3: [0].zzz",
        "more.yml:5:3: [1]",
    ]
    assert found[2].seen == "`clusters[1]` must be an object with keys, got `7`"


@for_each(
    "given, place, words",
    [
        ("nowhere.yml", "6:5: amlstack:clusters[1].include", "There is no file `nowhere.yml`"),
        ("[fine.yml, fin.yml]", "6:25: amlstack:clusters[1].include[1]", "There is no file `fin.yml`"),
        ("'fine*.yaml'", "6:5: amlstack:clusters[1].include", "No file is named like `fine*.yaml`"),
        ("folder", "6:5: amlstack:clusters[1].include", "`folder` is a folder"),
        ("../outside.yml", "6:5: amlstack:clusters[1].include", "`../outside.yml` lies outside the project's folder"),
        ("folder/../../*.yml", "6:5: amlstack:clusters[1].include", "lies outside the project's folder"),
        ("/etc/passwd", "6:5: amlstack:clusters[1].include", "`include` cannot be `/etc/passwd`"),
        ("'**/*.yml'", "6:5: amlstack:clusters[1].include", "`include` cannot be `**/*.yml`"),
        ("link.yml", "6:5: amlstack:clusters[1].include", "`link.yml` leads out of the project's folder by a link"),
        ("linked/*.yml", "6:5: amlstack:clusters[1].include", "leads out of the project's folder by a link"),
        ("loop.yml", "6:5: amlstack:clusters[1].include", "There is no file `loop.yml`"),
        ('"a\\0b"', "6:5: amlstack:clusters[1].include", "`include` cannot be"),
        ("[]", "6:5: amlstack:clusters[1].include", "`include` names no file"),
        ("7", "6:5: amlstack:clusters[1].include", "`include` must be a path or a list of paths, got `7`"),
        ("{a: b}", "6:5: amlstack:clusters[1].include", "`include` must be a path or a list of paths, got `{…}`"),
        ("[fine.yml, fol*/../fine.yml]", "6:25: amlstack:clusters[1].include[1]", "is included here and in"),
    ],
)
def test_a_file_that_cannot_be_included_is_one_finding(tmp_path: Path, given: str, place: str, words: str) -> None:
    project = tmp_path / "project"
    (project / "folder").mkdir(parents=True)
    (tmp_path / "outside.yml").write_text(cluster("outside"))
    (project / "link.yml").symlink_to(tmp_path / "outside.yml")
    (project / "linked").symlink_to(tmp_path)
    (project / "loop.yml").symlink_to("loop.yml")
    path = stack_of(project, f"  {cluster('first')}  - include: {given}\n", fine=cluster("fine"))
    reading = read_file(path)
    finding = only(reading)
    assert reading.settings is None
    assert reading.doubts("clusters"), "a job on a cluster of that file has no finding of its own"
    assert not reading.doubts("clusters", 0)
    assert finding.place == f"{path.name}:{place}"
    assert words in finding.seen


@for_each(
    "content, place, words",
    [
        ("", "more.yml", "The file holds nothing and no list"),
        ("clusters:\n- {}\n", "more.yml:1:1", "The file holds keys and no list"),
        ("- {name: [}\n", "more.yml:1:", "The file cannot be read"),
        ("- name: a\n  name: b\n", "more.yml:2:3", "The file cannot be read: `name` is given here and in line 1"),
        ("- include: other.yml\n", "more.yml:1:3: [0]", "`include` in an included file"),
    ],
)
def test_an_included_file_that_is_no_list_of_entries_is_one_finding(
    tmp_path: Path, content: str, place: str, words: str
) -> None:
    finding = only(read_file(stack_of(tmp_path, "  - include: more.yml\n", more=content)))
    assert finding.place.startswith(place)
    assert words in finding.seen


def test_a_misspelt_include_is_read_all_the_same(tmp_path: Path) -> None:
    reading = read_file(stack_of(tmp_path, "  - includes: more.yml\n", more=cluster("one")))
    finding = only(reading)
    assert finding.remedy == "Did you mean `include`?"
    assert reading.partial is not None
    assert [each.name for each in reading.partial.clusters] == ["one"]


def test_a_key_beside_an_include_is_unknown(tmp_path: Path) -> None:
    path = stack_of(tmp_path, "  - {include: more.yml, size: Standard_ND96asr_v4}\n", more=cluster("one"))
    assert only(read_file(path)).message == "Unknown key `size`. An entry with `include` has no other key."


def test_a_name_of_two_files_names_both_places(tmp_path: Path) -> None:
    entries = f"  - include: [a.yml, b.yml]\n  {cluster('one')}"
    found = read_file(stack_of(tmp_path, entries, a=cluster("zero") + cluster("one"), b=cluster("ONE"))).findings
    assert [(each.place, each.seen) for each in found] == [
        ("b.yml:1:3: [0]", "`ONE` is listed here and in a.yml[1]"),
        ("Pulumi.team.yaml:6:5: amlstack:clusters[1]", "`one` is listed here and in a.yml[1]"),
    ]


def test_secrets_stay_in_the_stack_file(tmp_path: Path) -> None:
    secret = {"secure": "v1:abc:def"}
    path = stack_of(
        tmp_path, f"  - include: more.yml\n  {cluster('own', description=secret)}",
        more=cluster("one", description=secret) + cluster("two", size=secret),
    )  # fmt: skip
    first, second = read_file(path).findings
    assert (first.code, first.file, first.where) == ("setting-secret", "more.yml", "[0].description")
    assert (second.code, second.file, second.where) == ("setting-secret", "more.yml", "[1].size")
    path.write_text(f"{HEAD}{CLUSTERS}  - include: {{secure: 'v1:abc:def'}}\n")
    assert only(read_file(path)).code == "setting-secret"


def test_a_secret_after_an_include_is_hidden_where_the_engine_has_it(tmp_path: Path) -> None:
    written = f"  - include: more.yml\n  {cluster('own', tags={'key': {'secure': 'v1:abc:def'}})}"
    path = stack_of(tmp_path, written, more=cluster("one") + cluster("two"))
    assert names(read_file(path)) == ["one", "two", "own"]
    handed = yaml.safe_load(path.read_text())["config"]
    handed["amlstack:clusters"][1]["tags"]["key"] = "in clear text"
    config = {key: value if isinstance(value, str) else json.dumps(value) for key, value in handed.items()}
    file, _ = stackfile.read(path)
    reading = from_engine(config, file, ["amlstack:clusters"], root=tmp_path)
    assert reading.secret == {"in clear text"}
    assert reading.settings is not None
    assert reading.settings.clusters[2].tags == {"key": "in clear text"}


@pytest.mark.engine
def test_clusters_too_large_for_the_stack_file_are_planned_from_another_file(
    stack: MakeStack, sandbox: Sandbox
) -> None:
    """In the stack file they would be more than the engine can hand to the program."""
    many = [f"cluster-{number:02}" for number in range(20)]
    tags = {f"tag-{number:02}": "x" * 256 for number in range(50)}
    text = "".join(cluster(name, subnet=SUBNET, tags=tags) for name in many)
    one = stack(PROJECT, sandbox=sandbox)
    one.set("amlstack:location", "westeurope").set("amlstack:workspace", "ws-many")
    one.set("amlstack:clusters", yaml.safe_load(text))
    (finding,) = read_file(one.settings).findings
    assert finding.code == "settings-too-large"
    one.write("clusters/many.yml", text)
    one.set("amlstack:clusters", [{"include": "clusters/*.yml"}])
    one.env["PWD"] = str(one.folder)  # as a shell has it
    planned = one.preview().ok()
    made = [step for step in planned.planned if step.type == "azure-native:machinelearningservices:Compute"]
    assert sorted(step.name for step in made) == many
    assert {step.new["inputs"]["properties"]["properties"]["subnet"]["id"] for step in made} == {SUBNET}
