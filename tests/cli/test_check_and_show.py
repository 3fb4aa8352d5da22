"""``amlstack check`` and ``amlstack show`` on files that people write."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from amlstack.base.findings import Finding, in_file_order
from amlstack.base.paths import PROJECT
from amlstack.catalog import sizes
from amlstack.catalog.prices import Price
from amlstack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
from jobs import Job, TorchRun
job = Job(
    name="ddp",
    command="python train.py --epochs ${{inputs.epochs}}",
    environment="acpt-pytorch-2.8-cuda12.6",
    inputs={"epochs": 3},
    compute="big",
    nodes=2,
    launcher=TorchRun(),
)
"""
AZ = """\
command: python train.py --epochs ${{inputs.epoch}}
environment: azureml:AzureML-acpt-pytorch-2.8-cuda12.6@latest
inputs: {epochs: 1}
compute: azureml:big
distribution: {type: pytorch, process_count_per_instance: 16}
resources: {instance_count: 2}
"""
STACK = """\
config:
  amlstack:workspace: aml-prod
  amlstack:location: westeurope
  amlstack:clusters:
    - name: big
      size: Standard_ND96isr_H100_v5
      nodes: {min: 0, max: 2}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-01-01")
    (tmp_path / "job.py").write_text(GOOD)
    (tmp_path / "job.yml").write_text(AZ)
    (tmp_path / "Pulumi.prod.yaml").write_text(STACK)
    return tmp_path


def result(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_the_projects_own_examples_get_no_advice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(PROJECT)
    files = [
        str(file.relative_to(PROJECT))
        for stem in ("job", "pipeline", "sweep", "schedule")
        for file in sorted(PROJECT.glob(f"examples/*/{stem}.*"))
    ]
    assert len(files) == len([*PROJECT.glob("examples/*")])
    assert main(["check", *files]) == 0
    assert f"{len(files)} files: nothing wrong" in capsys.readouterr().out


def test_a_good_file_is_zero(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pinned = "azureml://registries/azureml/environments/acpt-pytorch-2.8-cuda12.6/versions/7"
    text = GOOD.replace("acpt-pytorch-2.8-cuda12.6", pinned).replace("nodes=2", 'limits={"timeout": 3600}, nodes=2')
    (here / "job.py").write_text(text)
    assert main(["check", "job.py", "--size", "Standard_ND96isr_H100_v5"]) == 0
    assert capsys.readouterr().out == (
        "job.py: ddp costs 196.64 USD per hour, at most 196.64 USD in 1 h until its timeout "
        "(eastus, 2026-09, Azure's price list)\n1 file: nothing wrong\n"
    )


def test_the_rules_of_the_pack_judge_a_job_file_at_their_levels(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "job.py", "--size", "Standard_ND96isr_H100_v5"]) == 0
    out = capsys.readouterr().out
    assert "job.py:5:5: warning: environment [environment-pinned]" in out
    assert "job.py:2:1: warning: limits.timeout [job-timeout]" in out

    (here / "team.json").write_text('{"job-timeout": "mandatory", "environment-pinned": "disabled"}')
    asked = ["check", "job.py", "--size", "Standard_ND96isr_H100_v5", "--policy-config", "team.json"]
    assert main(asked) == 1
    out = capsys.readouterr().out
    assert "job.py:2:1: error: limits.timeout [job-timeout]" in out
    assert "environment-pinned" not in out


def test_an_exception_makes_a_violation_a_warning_and_names_its_owner(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "job.py").write_text(GOOD.replace("nodes=2", 'nodes=2, environment_variables={"NCCL_IB_DISABLE": "1"}'))
    asked = ["check", "job.py", "--size", "Standard_ND96isr_H100_v5"]
    assert main(asked) == 1
    assert "error: environment_variables.NCCL_IB_DISABLE [fabric-switched-off]" in capsys.readouterr().out

    waiver = {"rule": "fabric-switched-off", "resource": "dd*", "owner": "hpc", "reason": "A comparison"}
    for expires, status in (("2026-01-01", 0), ("2025-12-31", 1)):
        configured = {"exception-expired": {"exceptions": [{**waiver, "expires": expires}]}}
        (here / "team.json").write_text(json.dumps(configured))
        assert main([*asked, "--policy-config", "team.json"]) == status
        out = capsys.readouterr().out
        assert ("Excepted until 2026-01-01 by hpc: A comparison." in out) is (status == 0)
        assert ("[exception-expired]" in out) is (status == 1)


@pytest.mark.parametrize(
    ("text", "words"), [(None, "[file-missing]"), ('{"x": "mandatory"}', "no rule 'x'"), ("[", "is no JSON")]
)
def test_an_unusable_configuration_gives_a_finding_beside_the_others(
    here: Path, capsys: pytest.CaptureFixture[str], text: str | None, words: str
) -> None:
    if text is not None:
        (here / "team.json").write_text(text)
    assert main(["check", "job.py", "--stack", "prod", "--policy-config", "team.json"]) == 1
    out = capsys.readouterr().out
    assert words in out
    assert "[job-timeout]" in out


def test_the_stack_names_the_configuration_and_its_clusters_are_judged_by_it(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "Pulumi.prod.yaml").write_text(f"{STACK}  amlstack:policies: team.json\n")
    (here / "team.json").write_text('{"node-ceiling": {"nodes": 1}}')
    assert main(["check", "job.py", "--stack", "prod"]) == 1
    assert "Pulumi.prod.yaml:7:23: error: amlstack:clusters[0].nodes.max [node-ceiling]" in capsys.readouterr().out


def test_findings_of_all_files_come_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "job.yml", "no.yml", "--size", "Standard_ND96isr_H100_v5"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("job.yml:1:1: error: command [input-undefined]\n")
    assert "Did you mean `epochs`?" in out
    assert "job.yml:5:1: error: distribution [processes-beyond-gpus]" in out
    assert "no.yml: error [file-unreadable]" in out
    assert out.endswith("2 files: 3 errors, 3 warnings\n")


def test_findings_of_a_file_are_printed_in_the_order_of_its_lines(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "broken.yml").write_text(AZ + "tags: {a: [1]}\nretries: 3\n")
    asked = ["check", "broken.yml", "job.yml", "--size", "Standard_NC24r"]

    assert main(asked) == 1
    shown = capsys.readouterr().out.splitlines()
    # What says the same of several places stands where the first of them is.
    firsts = [line for line, above in zip(shown, ["  ", *shown], strict=False) if above[0] == " "]
    lines = [line.split(":") for line in firsts if line.count(":") > 2 and line[0] != " "]
    places = [(file, int(line), int(column)) for file, line, column, *_ in lines]
    assert len({line for file, line, _ in places if file == "broken.yml"}) > 3
    assert places == sorted(places)

    assert main([*asked, "--json"]) == 1
    files = result(capsys)["files"]
    assert [file["file"] for file in files] == ["broken.yml", "job.yml"]
    for file in files:
        each = [(finding["line"], finding["column"]) for finding in file["findings"]]
        assert each == sorted(each)


def test_files_keep_their_order_and_findings_of_one_place_theirs() -> None:
    def found(code: str, file: str | None = None, line: int | None = None, column: int | None = None) -> Finding:
        return Finding(code, "", "", "", file=file, line=line, column=column)

    asked = [
        found("b9", "b", 9, 1),
        found("stack"),
        found("a2", "a", 2, 1),
        found("b2-later", "b", 2, 5),
        found("b2-first", "b", 2, 1),
        found("b2-second", "b", 2, 1),
        found("b", "b"),
        found("a1", "a", 1, 9),
    ]

    assert [finding.code for finding in in_file_order(asked)] == [
        *("b", "b2-first", "b2-second", "b2-later", "b9"),
        "stack",
        *("a1", "a2"),
    ]


def test_the_stack_says_what_a_cluster_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "job.yml", "--stack", "prod", "--json"]) == 1
    answer = result(capsys)
    assert answer["ok"] is False
    found = [finding["code"] for finding in answer["files"][0]["findings"] if finding["level"] == "error"]
    assert found == ["input-undefined", "processes-beyond-gpus"]


def test_a_cluster_that_the_stack_lacks_is_a_finding(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.py").write_text(GOOD.replace('"big"', '"bigg"'))
    assert main(["check", "job.py", "--stack", "prod"]) == 1
    assert "Did you mean `big`?" in capsys.readouterr().out


def test_a_stack_that_is_not_there_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "job.py", "--stack", "nowhere"]) == 1
    assert "[stack-missing]" in capsys.readouterr().out


def test_a_cluster_of_unknown_size_is_only_noted(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.py").write_text(GOOD.replace('compute="big"', 'compute="/subscriptions/s/computes/other"'))
    assert main(["check", "job.py"]) == 0
    assert "[cluster-size-unknown]" in capsys.readouterr().out


def test_the_size_of_a_serverless_job_is_its_own(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.py").write_text(GOOD.replace('compute="big"', 'instance_type="Standard_NC24r"'))
    assert main(["check", "job.py", "--size", "Standard_ND96isr_H100_v5"]) == 1
    assert "instance_type [sriov-fabric]" in capsys.readouterr().out


def test_the_cost_of_a_run_is_shown_when_a_price_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = sizes.get("Standard_ND96isr_H100_v5")
    assert row is not None
    priced = replace(row, prices=(Price(10.0, "westeurope", date(2026, 7, 1), "a price list"),))
    monkeypatch.setattr(sizes, "get", lambda name: priced)
    assert main(["check", "job.py", "--stack", "prod"]) == 0
    assert "job.py: ddp costs 20.00 USD per hour (westeurope, 2026-07, a price list)" in capsys.readouterr().out


def test_the_request_body_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "job.py", "--as", "arm", "--stack", "prod"]) == 0
    properties = result(capsys)["properties"]
    assert properties["command"].startswith("torchrun --nnodes 2 --nproc_per_node 8 ")
    assert properties["resources"]["shmSize"] == "950g"


def test_azures_words_are_shown_as_they_are_unless_asked(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(AZ.replace("16", "8").replace("inputs.epoch}", "inputs.epochs}"))
    assert main(["show", "job.yml", "--as", "arm", "--stack", "prod"]) == 0
    assert result(capsys)["properties"]["environmentVariables"] == {}
    assert main(["show", "job.yml", "--as", "arm", "--stack", "prod", "--enrich"]) == 0
    assert result(capsys)["properties"]["environmentVariables"]["NCCL_SOCKET_IFNAME"] == "eth0"


def test_yaml_is_a_job_file_again(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "job.py", "--as", "yaml", "--stack", "prod"]) == 0
    text = capsys.readouterr().out
    assert yaml.safe_load(text)["distribution"] == {"type": "pytorch", "process_count_per_instance": 1}
    (here / "again.yml").write_text(text)
    assert main(["check", "again.yml", "--stack", "prod"]) == 0


def test_files_are_not_compared_with_each_other(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A comparison of each file with each other would be most of the time for a thousand files."""

    def compared(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr("amlstack.cli.jobfiles.judgement.Checked.__eq__", compared)
    (here / "other.yml").write_text(AZ.replace("instance: 16", "instance: 8").replace("epoch}}", "epochs}}"))
    assert main(["check", "job.py", "other.yml", "--stack", "prod"]) == 0


def test_the_command_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "job.py", "--as", "command", "--stack", "prod"]) == 0
    assert capsys.readouterr().out.startswith("torchrun ")


def test_an_image_is_not_held_against_a_size_that_is_gone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text(AZ.replace("instance: 16", "instance: 4").replace("epoch}}", "epochs}}"))
    assert main(["check", "job.yml", "--size", "Standard_NC24r"]) == 1
    shown = capsys.readouterr()
    assert "[size-retired]" in shown.out + shown.err
    assert "image-cannot-run-here" not in shown.out + shown.err


def test_a_package_that_other_clients_leave_behind_is_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "src").mkdir()
    (here / "src" / "train.py").write_text("from amlnode import aml_mpienv\n")
    (here / "job.py").write_text(GOOD.replace("    nodes=2,", '    code="src",\n    nodes=2,'))
    assert main(["show", "job.py", "--as", "yaml", "--stack", "prod"]) == 0
    assert "`amlnode` beside it" in capsys.readouterr().err
    (here / "src" / "amlnode").mkdir()
    assert main(["show", "job.py", "--as", "yaml", "--stack", "prod"]) == 0
    assert "beside it" not in capsys.readouterr().err


def test_the_plan_says_what_was_added_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "job.py", "--stack", "prod"]) == 0
    out = capsys.readouterr().out
    assert "2 nodes x 8 per node = 16 ranks" in out
    assert "NCCL_SOCKET_IFNAME = eth0  (fabric)" in out
    assert "Azure ML starts one process on each node" in " ".join(out.split())


def test_the_plan_as_json_has_the_declaration(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "job.py", "--stack", "prod", "--json"]) == 0
    (plan,) = result(capsys)["plans"]
    assert plan["world_size"] == 16
    assert plan["declaration"]["launcher"] == {"type": "torchrun"}


def test_a_file_that_is_no_job_shows_its_findings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "job.yml").write_text("a: [1\n")
    assert main(["show", "job.yml", "--as", "arm"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "[yaml-syntax]" in shown.err


def test_a_stack_without_files_is_checked_with_the_jobs_that_it_lists(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "Pulumi.prod.yaml").write_text(STACK + "  amlstack:jobs: [job.py, {file: job.yml, rerun: again}]\n")
    assert main(["check", "--stack", "prod"]) == 1
    alone = capsys.readouterr().out
    assert main(["check", "job.py", "job.yml", "--stack", "prod"]) == 1
    assert capsys.readouterr().out == alone
    assert "job.yml:1:1: error: command" in alone


def test_a_stack_that_lists_no_jobs_is_checked_by_its_settings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--stack", "prod"]) == 0
    assert "stack prod, its settings alone, which list no job files: 1 warning" in capsys.readouterr().out
    (here / "Pulumi.prod.yaml").write_text(STACK.replace("size: ", "siez: "))
    assert main(["check", "--stack", "prod"]) == 1
    assert "Unknown key `siez`" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stack", "code", "words"),
    [
        (["--stack", "nope"], 1, "nope"),
        ([], 2, "Name job files"),
    ],
)
def test_a_check_of_nothing_is_refused(
    stack: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *stack]) == code
    printed = capsys.readouterr()
    assert words in printed.out + printed.err


def test_a_stack_whose_settings_are_wrong_is_checked_without_files(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "Pulumi.prod.yaml").write_text(STACK.replace("nodes:", "nods:"))
    assert main(["check", "--stack", "prod", "--format", "github"]) == 1
    assert "::error file=Pulumi.prod.yaml,line=7" in capsys.readouterr().out


def test_the_policy_says_no_in_the_words_of_the_readme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (PROJECT / "README.md").read_text("utf-8").split("\n## The policy says no\n", 1)[1]
    command, *shown = page.split("```text\n", 1)[1].split("```", 1)[0].splitlines()
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print(1)\n")
    (tmp_path / "job.yml").write_text(
        "code: src\ncommand: python train.py --lr ${{inputs.lrr}}\ninputs: {lr: 0.1}\n"
        "environment: azureml:AzureML-acpt-pytorch-2.8-cuda12.6:13\ncompute: azureml:gpu\n"
        "distribution: {type: pytorch, process_count_per_instance: 4}\nresources: {instance_count: 2}\n"
    )
    assert main(command.removeprefix("$ amlstack ").split()) == 1
    said = " ".join(capsys.readouterr().out.split())
    wanted = ".*".join(re.escape(part.strip()) for part in " ".join(" ".join(shown).split()).split("…"))
    assert re.search(wanted, said), said
