"""Files named by a component's `additional_includes` travel with its code, wherever its file lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

import jobs
from amlstack.snapshot import scan

if TYPE_CHECKING:
    from pathlib import Path

COMPONENT = "command: python train.py\nenvironment: azureml:e:1\ncode: ./src\nadditional_includes: [{includes}]\n"
PIPELINE = "type: pipeline\ncompute: azureml:gpu\njobs: {t: {component: ./parts/trainer.yml}}\n"


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    for name in ("parts/src/train.py", "lib/__init__.py", "parts/conf.yml", "parts/src/twice.py", "parts/twice.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "pipeline.yml").write_text(PIPELINE)
    return tmp_path


def planned(base: Path, includes: str) -> Any:
    (base / "parts" / "trainer.yml").write_text(COMPONENT.format(includes=includes))
    loaded = jobs.load(base / "pipeline.yml")
    assert loaded.findings == ()
    return jobs.resolve(loaded.jobs[0], lambda _: (jobs.Target(), ()), source=loaded.source)


def code_of(plan: Any) -> Path:
    (part,) = plan.parts.values()
    assert part.code is not None
    return cast("Path", part.code)


def test_files_and_folders_stand_beside_the_code(base: Path) -> None:
    plan = planned(base, "../lib, conf.yml")
    files = [file.relative for file in scan(code_of(plan)).files]
    assert files == ["conf.yml", "lib/__init__.py", "train.py", "twice.py"]
    (result,) = jobs.render(plan.enriched).components.values()
    assert result["properties"]["componentSpec"]["additional_includes"] == ["../lib", "conf.yml"]


def test_without_includes_the_folder_itself_is_the_code(base: Path) -> None:
    assert code_of(planned(base, "")) == base / "parts" / "src"


@pytest.mark.parametrize(("name", "code"), [("../libs", "include-missing"), ("twice.py", "include-twice")])
def test_an_include_that_cannot_go_along_gives_a_finding_in_the_component_file(
    name: str, code: str, base: Path
) -> None:
    plan = planned(base, name)
    (wrong,) = (finding for finding in plan.findings if finding.level == "error")
    assert (wrong.code, wrong.file, wrong.line) == (code, str(base / "parts" / "trainer.yml"), 4)


def test_a_component_in_python_takes_them_from_its_own_folder(base: Path) -> None:
    component = jobs.Component(
        command="python train.py", environment="azureml:e:1", code="parts/src", additional_includes=("lib",)
    )
    step = jobs.Step(component=component, compute="gpu")
    whole = jobs.Pipeline(jobs={"t": step})
    plan = jobs.resolve(whole, lambda _: (jobs.Target(), ()), source=jobs.Source(base=base))
    files = [file.relative for file in scan(code_of(plan)).files]
    assert files == ["lib/__init__.py", "train.py", "twice.py"]
