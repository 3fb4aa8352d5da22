"""`amlstack gitops comment` reads the JSON of a pull request's steps, and `compare` two plans."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.gitops import comment
from amlstack.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

URN = "urn:pulumi:prod::amlstack::azure-native:machinelearningservices:Compute::a100"
CLUSTER = {"name": "a100", "size": "Standard_ND96asr_v4", "nodes": {"min": 0, "max": 2}}


def finding(
    level: str, message: str = "`nodes` must be an integer, got `two`.", code: str = "setting"
) -> dict[str, Any]:
    return {"level": level, "message": message, "code": code, "file": "job.yml", "line": 3, "where": "nodes"}


def step(operation: str = "updated in place", inputs: str = "aa", *properties: str, urn: str = URN) -> dict[str, Any]:
    return {"urn": urn, "type": "x", "operation": operation, "properties": list(properties), "inputs": inputs}


def preview(**more: Any) -> dict[str, Any]:
    cost = {"idle_usd_per_hour": 0.0, "most_usd_per_hour": 54.4, "clusters": []}
    return {"exit_status": 0, "plan": [step("created")], "policies": [], "cost": cost, "findings": [], **more}


def written(folder: Path, **files: Any) -> comment.Results:
    for name, content in files.items():
        path = folder / {"rehearsal": "rehearsal/jobs/train.yml.json"}.get(name, f"{name}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return comment.read(folder)


def row(text: str, what: str) -> str:
    (found,) = [line for line in text.splitlines() if line.startswith(f"| {what}")]
    return found.split(" | ")[1].removesuffix(" |")


def test_a_comment_lists_guards_and_exceptions(tmp_path: Path) -> None:
    changed = {"kept": ["Makefile", "uv.lock"], "seen": ["training/own.py"], "config": "", "in_force": ["a: b"]}
    found = written(tmp_path, guards={**changed, "asked_for": ["sriov-fabric: disabled (here mandatory) @ann"]})
    text = comment.text("prod", found, None)
    assert row(text, "the checks themselves") == (
        "⚠️ 2 guards changed, 1 exception asked for, 1 part brought along, 1 exception in force"
    )
    for words in (
        "- `Makefile`",
        "- sriov-fabric: disabled (here mandatory) @\u200cann",
        "- `training/own.py`",
        "- a: b",
    ):
        assert words in text


def test_a_comment_shows_each_result_and_begins_with_its_mark(tmp_path: Path) -> None:
    job = {
        "name": "train",
        "status": "Completed",
        "scaled": [{"declared": [4, 8], "started": [2, 2]}],
        "unproven": ["speed"],
    }
    found = written(
        tmp_path,
        check={"ok": True, "findings": [], "files": [{"findings": [finding("warning")]}]},
        rehearsal={"verdict": "completed", "jobs": [job]},
        review={"exit_status": 0, "jobs": {"review": {"status": "Completed"}}},
        preview=preview(),
    )
    before = {"idle_usd_per_hour": 0.0, "most_usd_per_hour": 27.2, "clusters": []}
    text = comment.text("prod", found, before, commit="0123456789abcdef", link="https://x/1")
    assert text.startswith("<!-- amlstack: prod -->\n### Stack `prod`: 1 created\n")
    assert row(text, "check") == "✅ 1 job file: 1 warning"
    assert row(text, "rehearsal") == "✅ 1 completed"
    assert row(text, "review") == "✅ up, `review` Completed"
    assert row(text, "policies") == "✅ no violation"
    assert row(text, "nodes per hour, while idle") == "0.00 USD"
    assert row(text, "nodes per hour, at most") == "27.20 USD → 54.40 USD"
    assert "`jobs/train.yml`: `train` Completed, 4 × 8 ranks as 2 × 2; not shown: speed" in text
    assert "- created: `Compute a100`" in text
    assert "commit 0123456789ab · [reports, logs and results](https://x/1)" in text


def test_what_was_not_run_is_shown_as_not_run(tmp_path: Path) -> None:
    text = comment.text("prod", written(tmp_path), None)
    assert "### Stack `prod`: no preview" in text
    for what in ("check", "rehearsal", "review", "preview", "policies"):
        assert row(text, what) == "– not run"


def test_a_refused_preview_is_a_headline_with_its_reasons(tmp_path: Path) -> None:
    violation = {
        "enforcementLevel": "mandatory",
        "policyName": "sriov-fabric",
        "message": "No InfiniBand",
        "resourceUrn": URN,
    }
    found = written(tmp_path, preview=preview(exit_status=1, policies=[violation], error="job is Running"))
    text = comment.text("prod", found, None)
    assert "### Stack `prod`: the preview was refused" in text
    assert row(text, "policies") == "❌ 1 violation"
    assert "- `Compute a100` No InfiniBand (`sriov-fabric`)" in text
    assert "- job is Running" in text


def test_a_failed_rehearsal_names_its_first_cause(tmp_path: Path) -> None:
    job = {"name": "train", "status": "Failed", "error": "exit 1", "diagnosis": {"text": "KeyError: 'lr'"}}
    text = comment.text("prod", written(tmp_path, rehearsal={"verdict": "failed", "jobs": [job]}), None)
    assert row(text, "rehearsal") == "❌ 1 failed"
    assert "- `jobs/train.yml`: `train` Failed: KeyError: 'lr'" in text


def test_a_price_that_is_not_known_is_shown_as_unknown(tmp_path: Path) -> None:
    cost = {"idle_usd_per_hour": 0.0, "most_usd_per_hour": None, "clusters": [{**CLUSTER, "most_usd_per_hour": None}]}
    text = comment.text("prod", written(tmp_path, preview=preview(cost=cost)), None)
    assert row(text, "nodes per hour, at most") == ("nothing yet → unknown: 2 × `Standard_ND96asr_v4` without a price")


def test_words_of_others_are_no_markup(tmp_path: Path) -> None:
    evil = "<script>|[x](http://y) @ann `a` <!-- amlstack: prod -->"
    found = written(tmp_path, check={"ok": False, "findings": [finding("error", evil)], "files": []})
    text = comment.text("prod", found, None)
    assert text.count("<!-- amlstack") == 1
    assert "<script>" not in text
    assert "@ann" not in text
    assert "[x](" not in text.replace("\\[x\\](", "")


@pytest.mark.parametrize(
    ("evil", "shown"),
    [
        ("&commat;org/team &#64;ann", "&amp;commat;org/team &amp;\\#64;ann"),
        ("see https://evil.example/x?a=b", "see https:\u200c//evil.example/x?a=b"),
        ("see WWW.evil.example", "see WWW\u200c.evil.example"),
        ("a \u202e b \x1b]52;c;eA==\a", r"a \\u202e b \\x1b\]52;c;eA==\\x07"),
    ],
)
def test_nothing_of_others_is_a_mention_a_link_or_another_text_in_any_place(
    tmp_path: Path, evil: str, shown: str
) -> None:
    step = {"urn": URN, "operation": evil}
    found = written(
        tmp_path, rehearsal={"verdict": evil, "error": evil}, preview=preview(plan=[step], error=evil, exit_status=1)
    )
    text = comment.text("prod", found, None)
    assert text.count(shown) >= 5
    assert evil not in text


def test_a_comment_is_no_longer_than_the_forge_takes(tmp_path: Path) -> None:
    many = [finding("error", f"{number} " + "x" * 5000) for number in range(60)]
    text = comment.text("prod", written(tmp_path, check={"ok": False, "findings": many, "files": []}), None)
    assert len(text) < comment.MOST + 100
    assert text.endswith("… the rest is in the artifacts.\n")


@pytest.mark.parametrize("content", ["[]", "{", "7", "[" * 100_000], ids=["list", "cut off", "number", "deep"])
def test_a_result_that_is_no_object_is_named(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "check.json").write_text(content)
    assert main(["gitops", "comment", "--stack", "prod", "--results", str(tmp_path)]) == 2
    assert "check.json must be a JSON object" in capsys.readouterr().err


def test_an_empty_result_is_one_of_a_step_that_did_not_end(tmp_path: Path) -> None:
    (tmp_path / "review.json").write_text("")
    assert comment.read(tmp_path).review is None


def plans(folder: Path, then: list[Any], now: list[Any]) -> list[str]:
    files = [folder / "then.json", folder / "now.json"]
    for file, plan in zip(files, (then, now), strict=True):
        file.write_text(json.dumps(preview(plan=plan)))
    return [str(file) for file in files]


def test_two_equal_plans_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gitops", "compare", *plans(tmp_path, [step()], [step()])]) == 0
    assert capsys.readouterr().out == "The plan is the same: 1 resource.\n"


@pytest.mark.parametrize(
    ("then", "now", "line"),
    [
        ([], [step()], "updated in place: Compute a100: that plan leaves it alone"),
        ([step()], [], "not updated in place: Compute a100: in that plan it is"),
        ([step()], [step("replaced")], "replaced: Compute a100: in that plan it is updated in place"),
        ([step("updated in place", "aa", "x")], [step("updated in place", "aa", "y")], "(x) differ"),
        ([step()], [step("updated in place", "bb")], "with other values than in that plan"),
    ],
)
def test_what_differs_between_two_plans_is_named(
    then: list[Any], now: list[Any], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["gitops", "compare", *plans(tmp_path, then, now)]) == 1
    assert line in capsys.readouterr().out


@pytest.mark.parametrize("content", [None, "{}", '{"plan": [{"urn": 1}]}', "[]"])
def test_a_file_without_a_plan_is_wrong_use(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    if content is not None:
        file.write_text(content)
    assert main(["gitops", "compare", str(file), str(file)]) == 2
    assert "plan.json" in capsys.readouterr().err
    assert main(["up", "--stack", "prod", "--yes", "--keep-to", str(file)]) == 2
