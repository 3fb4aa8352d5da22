"""Settings, sizes, environments and jobs are judged in one run, before a resource is registered."""

from __future__ import annotations

import json
import textwrap
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

import jobs
from infra.declaration import Declaration, declare
from infra.runs.order import RegisteredEnvironment
from infra.settings import parse, read_file
from policies.config import ALL

if TYPE_CHECKING:
    from pathlib import Path

TODAY = date(2026, 7, 1)
JOB = """\
from jobs import Job, TorchRun

job = Job(
    name="ddp",
    command="train.py --lr ${{inputs.lr}}",
    code="src",
    inputs={"lr": 0.1},
    environment="acpt-pytorch-2.8-cuda12.6",
    compute="a100",
    nodes=2,
    launcher=TorchRun(),
)
"""
STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: {name: aml-team, public_network: true}
  amlstack:clusters:
    - name: a100
      size: Standard_ND96asr_v4
      nodes: { max: 2 }
  amlstack:environments: [acpt-pytorch-2.8-cuda12.6]
  amlstack:jobs: [workloads/ddp.py]
  amlstack:policies: rules.json
"""
NO_ADVICE = json.dumps({rule.code: "disabled" for rule in ALL if rule.level == "advisory"})


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workloads" / "src").mkdir(parents=True)
    (tmp_path / "workloads" / "src" / "train.py").write_text("print('hi')\n")
    (tmp_path / "workloads" / "ddp.py").write_text(JOB)
    (tmp_path / "Pulumi.team.yaml").write_text(STACK)
    (tmp_path / "rules.json").write_text(NO_ADVICE)
    return tmp_path


def judged(project: Path) -> Declaration:
    return declare(read_file(project / "Pulumi.team.yaml"), on=TODAY, root=project)


def change(project: Path, file: str, old: str, new: str) -> None:
    path = project / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_good_stack_has_its_runs_planned(project: Path) -> None:
    declaration = judged(project)
    assert declaration.findings == ()
    (run,) = declaration.runs
    assert (run.name, run.plan.nodes, run.plan.world_size) == ("ddp", 2, 16)
    assert [file.relative for file in run.codes[""].files] == ["train.py"]


def test_a_job_file_beside_its_code_and_what_tools_leave_there_are_no_part_of_the_run(project: Path) -> None:
    change(project, "workloads/ddp.py", 'code="src"', 'code="."')
    (project / "workloads" / "train.py").write_text("import data\n")
    (before,) = judged(project).runs
    change(project, "workloads/ddp.py", 'name="ddp"', 'name="ddp", display_name="two"')
    (project / "workloads" / "__pycache__").mkdir()
    (project / "workloads" / "__pycache__" / "data.pyc").write_bytes(b"x")
    (after,) = judged(project).runs
    code = after.codes[""]
    assert after.own == before.own
    assert after.plan.declaration == before.plan.declaration
    assert code.hash != before.codes[""].hash, "the workspace gets the folder as it is"
    change(project, "workloads/train.py", "import data", "import ddp")
    assert sorted(judged(project).runs[0].own.files) == ["ddp.py", "src/train.py", "train.py"]


def test_a_typo_a_size_a_folder_and_a_binding_give_findings_together(project: Path) -> None:
    change(project, "Pulumi.team.yaml", "nodes: { max: 2 }", "nodes: { mx: 2 }")
    change(project, "Pulumi.team.yaml", "Standard_ND96asr_v4", "Standard_ND96asr_v5")
    change(project, "workloads/ddp.py", 'code="src"', 'code="scr"')
    change(project, "workloads/ddp.py", "inputs.lr", "inputs.rl")
    result = judged(project).findings
    found = {finding.code: finding for finding in result}
    assert len(result) == len(found)  # the size is reported for the cluster and not again for its job
    assert set(found) == {"setting-unknown", "size-unknown", "code-missing", "input-undefined"}
    assert "Did you mean `max`" in found["setting-unknown"].message
    assert str(found["size-unknown"]).startswith("Pulumi.team.yaml:6:7: amlstack:clusters[0].size: ")
    assert "Standard_ND96asr_v4" in found["size-unknown"].message
    assert "src" in found["code-missing"].remedy
    assert found["code-missing"].file == "workloads/ddp.py"
    assert "lr" in found["input-undefined"].message


@pytest.mark.parametrize(
    ("size", "nodes", "more", "codes"),
    [
        ("Standard_NC24r", 1, "", {"sriov-fabric", "size-retired"}),
        ("Standard_NC24s_v3", 2, "", {"sriov-fabric", "size-retired"}),
        ("Standard_NC24rs_v3", 2, "", {"size-retired"}),
        ("Standard_NC96ads_A100_v4", 2, "", {"sriov-fabric"}),
        ("Standard_NC96ads_A100_v4", 2, "single_node_jobs: true", set()),
        ("Standard_HB120rs_v3", 9, "", set()),
    ],
)
def test_clusters_are_judged_by_the_rules_of_the_policy_pack(
    project: Path, size: str, nodes: int, more: str, codes: set[str]
) -> None:
    change(project, "Pulumi.team.yaml", "Standard_ND96asr_v4", size)
    change(project, "Pulumi.team.yaml", "nodes: { max: 2 }", f"nodes: {{ max: {nodes} }}\n      {more}")
    change(project, "Pulumi.team.yaml", "[workloads/ddp.py]", "[]")
    found = judged(project).findings
    assert {finding.code for finding in found} == codes
    assert all((finding.file, finding.line) == ("Pulumi.team.yaml", 6) for finding in found)


@pytest.mark.parametrize(
    ("old", "new", "code", "where", "words"),
    [
        ("[workloads/ddp.py]", "[workloads/dpp.py]", "file-missing", "amlstack:jobs[0]", "Did you mean `ddp.py`?"),
        ("[workloads/ddp.py]", "[worklods/ddp.py]", "file-missing", "amlstack:jobs[0]", "Did you mean `workloads`?"),
        (
            "[acpt-pytorch-2.8-cuda12.6]",
            "[acpt-pytorch-2.8-cuda12]",
            "environment-unknown",
            "amlstack:environments[0].curated",
            "`acpt-pytorch-2.8-cuda12.6`",
        ),
        (
            "[acpt-pytorch-2.8-cuda12.6]",
            "[{name: mine, image: ubuntu, conda: workloads/conda.yml}]",
            "file-missing",
            "amlstack:environments[0].conda",
            "no file `workloads/conda.yml`",
        ),
        ("name: a100", "name: h100", "cluster-unknown", "compute", "Did you mean `h100`?"),
        ("{ max: 2 }", "{ max: 1 }", "nodes-beyond-cluster", "nodes", "scales to 1"),
    ],
)
def test_what_the_settings_refer_to_must_be_there(  # noqa: PLR0917
    project: Path, old: str, new: str, code: str, where: str, words: str
) -> None:
    change(project, "Pulumi.team.yaml", old, new)
    (finding,) = judged(project).findings
    assert (finding.code, finding.where) == (code, where)
    assert words in finding.message


def test_a_job_on_what_is_in_doubt_is_not_judged_by_it(project: Path) -> None:
    change(project, "Pulumi.team.yaml", "      size: Standard_ND96asr_v4\n", "")
    (finding,) = judged(project).findings
    assert finding.code == "setting-missing"


def test_two_jobs_of_one_name_give_a_finding(project: Path) -> None:
    (project / "workloads" / "other.py").write_text(JOB)
    change(project, "Pulumi.team.yaml", "[workloads/ddp.py]", "[workloads/ddp.py, workloads/other.py]")
    (finding,) = judged(project).findings
    assert finding.code == "job-twice"


def test_the_stack_says_over_the_job_file(project: Path) -> None:
    change(
        project,
        "Pulumi.team.yaml",
        "[workloads/ddp.py]",
        "[{file: workloads/ddp.py, rerun: again, on_edit: cancel, wait: started, delete_history: true}]",
    )
    (run,) = judged(project).runs
    job = run.plan.job
    assert (job.rerun, job.on_edit, job.wait, job.delete_history) == ("again", "cancel", "started", True)


def test_a_pinned_curated_environment_is_used_at_its_version(project: Path) -> None:
    change(
        project,
        "Pulumi.team.yaml",
        "[acpt-pytorch-2.8-cuda12.6]",
        '[{curated: acpt-pytorch-2.8-cuda12.6, version: "12"}]',
    )
    (run,) = judged(project).runs
    assert run.plan.enriched.environment == (
        "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/12"
    )


@pytest.mark.parametrize("written", ["azureml:acpt-pytorch-2.8-cuda12.6@latest", "azureml:acpt-pytorch-2.8-cuda12.6"])
def test_a_curated_environment_of_the_stack_is_meant_by_its_name_as_a_reference(project: Path, written: str) -> None:
    change(project, "workloads/ddp.py", "acpt-pytorch-2.8-cuda12.6", written)
    (run,) = judged(project).runs
    assert run.plan.enriched.environment == (
        "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/labels/latest"
    )


@pytest.mark.parametrize("written", ["azureml:mine@latest", "azureml:mine", "mine"])
def test_the_latest_of_an_own_environment_is_what_the_stack_declares(project: Path, written: str) -> None:
    change(project, "Pulumi.team.yaml", "[acpt-pytorch-2.8-cuda12.6]", "[{name: mine, image: ubuntu}]")
    change(project, "workloads/ddp.py", "acpt-pytorch-2.8-cuda12.6", written)
    declaration = judged(project)
    assert declaration.findings == ()
    environment: Any = declaration.runs[0].plan.enriched.environment
    assert (environment.name, environment.image) == ("mine", "ubuntu")


def test_an_own_environment_is_registered_by_its_content(project: Path) -> None:
    (project / "workloads" / "conda.yml").write_text("dependencies: [python=3.11]\n")
    change(
        project,
        "Pulumi.team.yaml",
        "[acpt-pytorch-2.8-cuda12.6]",
        "[{name: mine, image: ubuntu, conda: workloads/conda.yml}]",
    )
    change(project, "workloads/ddp.py", "acpt-pytorch-2.8-cuda12.6", "mine")

    def registered() -> RegisteredEnvironment:
        declaration = judged(project)
        assert declaration.findings == ()
        plan = declaration.runs[0].plan
        environment: Any = plan.enriched.environment
        return RegisteredEnvironment.of(environment, plan.base)

    first = registered()
    assert (first.name, first.body["image"]) == ("mine", "ubuntu")
    assert first.body == {"image": "ubuntu", "condaFile": "dependencies:\n- python=3.11\n", "osType": "Linux",
                          "isArchived": False}  # fmt: skip
    (project / "workloads" / "conda.yml").write_text("# the same\ndependencies:\n  - python=3.11\n")
    assert registered().version == first.version
    (project / "workloads" / "conda.yml").write_text("dependencies: [python=3.12]\n")
    assert registered().version != first.version


def test_an_own_environment_is_a_near_miss_and_one_in_doubt_is_not_missed(project: Path) -> None:
    change(project, "Pulumi.team.yaml", "[acpt-pytorch-2.8-cuda12.6]", "[{name: mine, image: ubuntu}]")
    change(project, "workloads/ddp.py", "acpt-pytorch-2.8-cuda12.6", "mien")
    (unknown,) = judged(project).findings
    assert "mine" in unknown.remedy
    change(project, "workloads/ddp.py", "mien", "mine")
    change(project, "Pulumi.team.yaml", "name: mine, image: ubuntu", "image: ubuntu")
    (missing,) = judged(project).findings
    assert missing.where == "amlstack:environments[0].name"


def test_an_azure_ml_yaml_is_a_job_of_the_stack(project: Path) -> None:
    (project / "workloads" / "ddp.yml").write_text(
        textwrap.dedent("""\
        name: ddp-yaml
        command: python train.py --lr ${{inputs.rl}}
        code: src
        inputs: {lr: 0.1}
        environment: azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest
        compute: azureml:a100
        resources: {instance_count: 2}
        distribution: {type: pytorch, process_count_per_instance: 8}
        """)
    )
    change(project, "Pulumi.team.yaml", "workloads/ddp.py", "workloads/ddp.yml")
    declaration = judged(project)
    assert [(finding.code, finding.file, finding.line) for finding in declaration.findings] == [
        ("input-undefined", "workloads/ddp.yml", 2)
    ]
    (run,) = declaration.runs
    assert (run.name, run.plan.target.size, run.plan.world_size) == ("ddp-yaml", "Standard_ND96asr_v4", 16)


def test_files_that_look_like_secrets_give_findings_with_their_path(project: Path) -> None:
    (project / "workloads" / "src" / ".env").write_text("PASSWORD=hunter2-and-more-of-it\n")
    found = judged(project).findings
    assert found
    assert {finding.file for finding in found} == {"workloads/src/.env"}


LOCAL = """\
type: pipeline
settings: {default_compute: azureml:a100}
inputs:
  all: {type: uri_folder, path: ./data}
jobs:
  inline:
    command: cat ${{inputs.one}}
    environment: azureml:e:1
    inputs: {one: {type: uri_file, path: /data/one.txt}}
  registered:
    component: azureml:c:1
    inputs: {two: {type: uri_folder, path: "file:data"}}
"""


def test_data_on_this_machine_that_are_missing_or_of_another_kind_refuse_a_stack(project: Path) -> None:
    change(project, "workloads/ddp.py", '"lr": 0.1', '"lr": 0.1, "data": {"path": "data"}')
    (project / "pipeline.yml").write_text(LOCAL)
    change(project, "Pulumi.team.yaml", "[workloads/ddp.py]", "[workloads/ddp.py, pipeline.yml]")

    def found() -> list[tuple[str, str, int | None]]:
        of_data = [each for each in judged(project).findings if each.code.startswith("input-path")]
        return [(f"{each.code} {each.where}", str(each.level), each.line) for each in of_data]

    assert sorted(found()) == [
        ("input-path-missing inputs.all.path", "error", 4),
        ("input-path-missing inputs.data.path", "error", 7),
        ("input-path-missing jobs.inline.inputs.one.path", "error", 9),
        ("input-path-missing jobs.registered.inputs.two.path", "error", 12),
    ]
    # Before azure-ai-ml uploads such, another program may make it.
    of_file = jobs.plan(jobs.load(project / "workloads" / "ddp.py").jobs[0]).findings
    assert [str(each.level) for each in of_file if each.code == "input-path-missing"] == ["error"]
    (project / "data" / "one.txt").mkdir(parents=True)
    (project / "workloads" / "data").write_text("x")
    change(project, "pipeline.yml", "/data/one.txt", "data/one.txt")
    (project / "data" / "all.txt").write_text("x")
    (project / "data" / "one.txt" / "x").write_text("x")
    assert sorted(found()) == [
        ("input-path-kind inputs.data.path", "error", 7),
        ("input-path-kind jobs.inline.inputs.one.path", "error", 9),
    ]


PIPELINE = """\
type: pipeline
inputs:
  api_key: 0a1b2c3d4e
tags: {owner: "ghp_0123456789abcdef0123456789abcdef0123"}
jobs:
  train:
    type: command
    command: python train.py --password hunter2
    environment: azureml:e:1
    compute: azureml:a100
    environment_variables:
      WANDB_API_KEY: 0a1b2c3d4e
      MAX_TOKENS: "4096"
"""


def test_secrets_in_a_jobs_text_give_findings_at_their_place_and_are_never_shown(project: Path) -> None:
    (project / "pipeline.yml").write_text(PIPELINE)
    change(project, "Pulumi.team.yaml", "workloads/ddp.py", "pipeline.yml")
    (project / "rules.json").write_text('{"secret-in-job": "mandatory", "job-timeout": "disabled"}')
    found = [each for each in judged(project).findings if each.code == "secret-in-job"]
    assert {(each.where, each.line, each.level) for each in found} == {
        ("inputs.api_key", 3, "error"),
        ("tags.owner", 4, "error"),
        ("jobs.train.command", 8, "error"),
        ("jobs.train.environment_variables.WANDB_API_KEY", 12, "error"),
    }
    assert not any(value in str(each) for value in ("0a1b2c", "ghp_", "hunter2") for each in found)


def test_settings_that_cannot_be_read_at_all_are_still_findings() -> None:
    declaration = declare(parse({}), on=TODAY)
    assert [finding.where for finding in declaration.findings] == ["amlstack:location", "amlstack:workspace"]
    assert not declaration.ok
