"""``after``: names are resolved to runs of the stack, and what is wrong with them is found where it is written."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as some

from amlstack.base.findings import errors
from amlstack.cli.main import main
from infra.declaration import declare
from infra.runs.order import Order, OrderedRun, Wanted, sequence
from infra.settings import read_file
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from amlstack.base.findings import Finding
    from infra.declaration import Declaration

STACK = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml-team
  amlstack:environments: [acpt-pytorch-2.8-cuda12.6]
  amlstack:jobs:
{jobs}
"""
ONE = """\
from jobs import Job

job = Job(
    name="{name}",
    command="true",
    environment="acpt-pytorch-2.8-cuda12.6",
    {more}
)
"""
YAML = "name: {name}\ncommand: echo\nenvironment: azureml:acpt-pytorch-2.8-cuda12.6@latest\n"
SEVERAL = """\
from jobs import Job

first = Job(name="first", command="true", environment="acpt-pytorch-2.8-cuda12.6")
jobs = [
    first,
    Job(
        name="second",
        command="true",
        environment="acpt-pytorch-2.8-cuda12.6",
        after=["first", "{other}"],
    ),
]
"""
SCHEDULE = """\
name: nightly
trigger: {type: recurrence, frequency: day, interval: 1}
create_job: ./train.yml
"""


def judged(folder: Path, *entries: str, **files: str) -> Declaration:
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    listed = "\n".join(f"    - {entry}" for entry in entries)
    (folder / "Pulumi.team.yaml").write_text(STACK.format(jobs=listed))
    return declare(read_file(folder / "Pulumi.team.yaml"), on=date(2026, 7, 1), root=folder)


def order_of(declaration: Declaration) -> dict[str, tuple[str, ...]]:
    return {run.name: run.after for run in declaration.runs}


def about_order(declaration: Declaration) -> list[Finding]:
    return [finding for finding in declaration.findings if finding.code.startswith("after-")]


def test_a_job_comes_after_what_its_file_and_the_settings_name(tmp_path: Path) -> None:
    declaration = judged(
        tmp_path,
        "{file: eval.py, after: several.py}",
        "train.yml",
        "several.py",
        train_yml=YAML.format(name="train"),
        eval_py=ONE.format(name="eval", more='after="train",'),
        several_py=SEVERAL.format(other="train"),
    )
    assert about_order(declaration) == []
    assert order_of(declaration) == {
        "eval": ("train", "first", "second"),
        "train": (),
        "first": (),
        "second": ("first", "train"),
    }
    assert sequence(order_of(declaration)) == ("train", "first", "second", "eval")


def test_after_is_no_part_of_what_runs(tmp_path: Path) -> None:
    files = {"train_yml": YAML.format(name="train"), "eval_py": ONE.format(name="eval", more="")}
    without = judged(tmp_path, "train.yml", "eval.py", **files)
    with_it = judged(tmp_path, "train.yml", "{file: eval.py, after: train}", **files)
    assert [run.plan.declaration for run in without.runs] == [run.plan.declaration for run in with_it.runs]


@for_each(
    "entry, eval_file, finds",
    [
        ("eval.py", 'after=["trian"],', ("after-unknown", "eval.py", 7, "Did you mean `train`")),
        ("{file: eval.py, after: [train, evla]}", "", ("after-unknown", "Pulumi.team.yaml", 7, "`evla`")),
        ("eval.py", 'after="eval",', ("after-itself", "eval.py", 7, "comes after itself")),
        (
            "{file: eval.py, after: ./eval.py}",
            "",
            ("after-itself", "Pulumi.team.yaml", 7, "which `./eval.py` declares"),
        ),
        ("eval.py", 'after=["nightly"],', ("after-schedule", "eval.py", 7, "it never completes")),
    ],
)
def test_a_name_that_cannot_be_waited_for_is_found_at_its_line(
    tmp_path: Path, entry: str, eval_file: str, finds: tuple[str, str, int, str]
) -> None:
    declaration = judged(
        tmp_path,
        "train.yml",
        entry,
        "nightly.yml",
        train_yml=YAML.format(name="train"),
        eval_py=ONE.format(name="eval", more=eval_file),
        nightly_yml=SCHEDULE,
    )
    (finding,) = about_order(declaration)
    assert (finding.code, finding.file, finding.line) == finds[:3]
    assert finds[3] in str(finding)
    assert not declaration.ok


def test_one_of_several_jobs_of_a_file_has_its_own_line(tmp_path: Path) -> None:
    (finding,) = about_order(judged(tmp_path, "several.py", several_py=SEVERAL.format(other="nobody")))
    assert (finding.code, finding.file, finding.line) == ("after-unknown", "several.py", 10)


def test_a_circle_is_named_once_with_all_its_jobs(tmp_path: Path) -> None:
    declaration = judged(
        tmp_path,
        "{file: a.yml, after: b}",
        "{file: b.yml, after: c}",
        "{file: c.yml, after: a}",
        "{file: d.yml, after: a}",
        **{f"{name}_yml": YAML.format(name=name) for name in "abcd"},
    )
    (finding,) = about_order(declaration)
    assert (finding.code, finding.file, finding.line) == ("after-circle", "Pulumi.team.yaml", 6)
    assert "`a` comes after `b`, `b` after `c`, `c` after `a`" in finding.seen


def test_a_schedule_comes_after_nothing_and_what_it_starts_neither(tmp_path: Path) -> None:
    scheduled = (
        "from jobs import Job, Pipeline\n"
        'step = Job(command="true", environment="acpt-pytorch-2.8-cuda12.6", after="train")\n'
        'job = Pipeline(name="steps", jobs={"one": step})\n'
    )
    declaration = judged(
        tmp_path,
        "train.yml",
        "{file: nightly.yml, after: train}",
        "steps.py",
        train_yml=YAML.format(name="train"),
        nightly_yml=SCHEDULE,
        steps_py=scheduled,
    )
    found = {finding.code: finding for finding in about_order(declaration)}
    assert found.keys() == {"after-schedule", "after-misplaced"}
    assert "times of its own" in found["after-schedule"].rule
    assert found["after-misplaced"].file == "steps.py"


def test_a_file_that_cannot_be_read_makes_no_name_unknown(tmp_path: Path) -> None:
    declaration = judged(
        tmp_path, "train.py", "{file: eval.yml, after: train}", train_py="job = (", eval_yml=YAML.format(name="eval")
    )
    assert [finding.code for finding in errors(declaration.findings)] == ["python-syntax"]


def printed(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    main(list(words))
    return "".join(capfd.readouterr())


def test_check_and_show_know_the_other_files_of_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    judged(
        tmp_path,
        "train.yml",
        "{file: eval.py, after: trainn}",
        train_yml=YAML.format(name="train"),
        eval_py=ONE.format(name="eval", more='after="train",'),
    )
    monkeypatch.chdir(tmp_path)
    shown = printed(capfd, "check", "eval.py")
    assert "[after-unknown]" in shown
    assert "Pulumi.team.yaml:7" in shown
    assert "after-" not in printed(capfd, "check", "train.yml")
    plan = printed(capfd, "show", "eval.py")
    assert "after-unknown" in plan
    assert any(line.split() == ["after", "train"] for line in plan.splitlines())


def test_a_file_of_no_stack_is_judged_within_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.py").write_text(ONE.format(name="one", more='after=["another", "one"],'))
    monkeypatch.chdir(tmp_path)
    shown = printed(capfd, "check", "one.py", "--size", "Standard_ND96asr_v4")
    assert shown.count("[after-") == 1
    assert "[after-itself]" in shown


NAMES = some.integers(0, 7)


@given(some.dictionaries(NAMES, some.lists(NAMES, max_size=4), max_size=8))
def test_any_order_ends_without_circles_and_keeps_what_it_can(wanted: dict[int, list[int]]) -> None:
    members = [
        OrderedRun(str(name), wanted=tuple(Wanted(str(each), lambda one: one) for each in after))
        for name, after in wanted.items()
    ]
    order = Order.of(members)
    placed = sequence(order.before)
    assert sorted(placed) == sorted(map(str, wanted))
    for name, before in order.before.items():
        assert all(placed.index(each) < placed.index(name) for each in before)
    good = {name: {each for each in after if each in wanted and each != name} for name, after in wanted.items()}
    if not order.findings:
        assert {int(name): set(map(int, before)) for name, before in order.before.items()} == good
