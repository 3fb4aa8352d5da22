"""Components of pipelines that name each other: never in a circle, never without end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jobs
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.base.findings import Finding

STEP = "  {name}:\n    type: pipeline\n    component: {file}\n"


def pipeline(*files: str) -> str:
    steps = "".join(STEP.format(name=f"s{number}", file=file) for number, file in enumerate(files))
    return f"type: pipeline\njobs:\n{steps}"


def findings(folder: Path, files: dict[str, str]) -> tuple[Finding, ...]:
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return jobs.load(folder / next(iter(files))).findings


CIRCLES = {
    "itself": ({"a.yml": pipeline("./a.yml")}, "a.yml → a.yml"),
    "through another": ({"a.yml": pipeline("b.yml"), "b.yml": pipeline("a.yml")}, "b.yml → a.yml → b.yml"),
    "another in itself": ({"a.yml": pipeline("b.yml"), "b.yml": pipeline("b.yml")}, "b.yml → b.yml"),
    "by another path": (
        {"a.yml": pipeline("c/../b.yml"), "b.yml": pipeline("./c/../b.yml"), "c/d": ""},
        "b.yml → b.yml",
    ),
    "as part of the file": ({"a.yml": pipeline("file:b.yml"), "b.yml": pipeline("file:b.yml")}, "b.yml → b.yml"),
}


@for_each("how", CIRCLES)
def test_a_component_that_contains_itself_gives_a_finding_at_its_place(how: str, tmp_path: Path) -> None:
    files, chain = CIRCLES[how]
    (found,) = [each for each in findings(tmp_path, files) if each.code == "component-circle"]
    assert f"({chain})" in found.seen
    assert (found.line, found.where) == (5, "jobs.s0.component")
    assert found.file is not None


def test_one_component_in_two_steps_is_no_circle(tmp_path: Path) -> None:
    leaf = "type: command\ncommand: echo\nenvironment: azureml:e:1\n"
    step = "type: pipeline\njobs: {a: {component: leaf.yml}, b: {component: leaf.yml}}\n"
    assert findings(tmp_path, {"a.yml": pipeline("b.yml", "b.yml"), "b.yml": step, "leaf.yml": leaf}) == ()


def test_components_lie_in_each_other_only_so_deep(tmp_path: Path) -> None:
    files = {f"{number}.yml": pipeline(f"{number + 1}.yml") for number in range(40)}
    codes = [each.code for each in findings(tmp_path, files)]
    assert "component-depth" in codes


def test_components_that_grow_without_end_give_a_finding(tmp_path: Path) -> None:
    files = {"a.yml": pipeline("0.yml")}
    files |= {f"{number}.yml": pipeline(*[f"{number + 1}.yml"] * 5) for number in range(10)}
    assert [each.code for each in findings(tmp_path, files)].count("component-depth") == 1


def test_a_schedule_that_starts_itself_gives_a_finding(tmp_path: Path) -> None:
    text = "name: n\ntrigger: {type: cron, expression: '0 1 * * *'}\ncreate_job: ./a.yml\n"
    assert [each.code for each in findings(tmp_path, {"a.yml": text})] == ["file-type"]
