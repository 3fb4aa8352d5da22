"""`amlstack migrate --to python`: each file has the body of its YAML form, and is refused while a value is open."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jobs
from amlstack.cli.main import main
from tests.support.migrate.guides import GUIDES, program
from tests.support.migrate.programs import HEAD, PARALLEL, STEPS, SWEEP
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PROGRAMS = {name: program(guide) for name, guide in GUIDES.items()} | {
    "sweep": HEAD + SWEEP,
    "parallel step": HEAD + PARALLEL,
    "pipeline": HEAD + STEPS.partition("published =")[0],
    "own environment": f"{HEAD}env = Environment('own')\nenv.docker.base_image = 'x/y:1'\n"
    "env.environment_variables = {'A': '1'}\nd = Dataset.get_by_name(ws, 'd')\n"
    "ScriptRunConfig('src', 'a.py', [d.as_mount(), '\"'], compute_target='c', environment=env)",
}


def rendered(file: Path) -> Any:
    loaded = jobs.load(file)
    assert [finding for finding in loaded.findings if finding.level == "error"] == []
    target = jobs.Target("Standard_ND96asr_v4", "a100", 20)
    plan: Any = jobs.resolve(loaded.jobs[0], lambda *_: (target, ()), source=loaded.source)
    return jobs.render(plan.enriched)


@for_each("name", PROGRAMS)
def test_both_forms_have_one_body(tmp_path: Path, name: str) -> None:
    (tmp_path / "old" / "src").mkdir(parents=True)
    (tmp_path / "old" / "submit.py").write_text(PROGRAMS[name], "utf-8")
    for form in ("yaml", "python"):
        main(["migrate", str(tmp_path / "old"), "--out", str(tmp_path / "new"), "--to", form])
    assert rendered(tmp_path / "new" / "submit.py") == rendered(tmp_path / "new" / "submit.yml")


def test_an_open_value_is_refused_in_python_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "submit.py").write_text(f"{HEAD}ScriptRunConfig('.', 'a.py', [n], compute_target='c', environment=env)")
    main(["migrate", str(tmp_path / "submit.py"), "--out", str(tmp_path / "new"), "--to", "python"])
    capsys.readouterr()
    assert main(["check", str(tmp_path / "new" / "submit.py"), "--size", "Standard_ND96asr_v4"]) == 1
    assert "[to-fill]" in capsys.readouterr().out


def test_a_schedule_and_its_pipeline_stay_yaml_and_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "submit.py").write_text(HEAD + STEPS, "utf-8")
    out = tmp_path / "new"
    main(["migrate", str(tmp_path / "submit.py"), "--out", str(out), "--to", "python", "--json"])
    found = json.loads(capsys.readouterr().out)["constructs"]
    assert {path.name for path in out.iterdir()} == {"submit.yml", "submit_2.yml"}
    assert {each["file"] for each in found if each["construct"] == "yaml"} == {"submit.yml", "submit_2.yml"}


def test_a_folder_for_the_new_files_within_the_old_one_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "submit.py").write_text(PROGRAMS["MPI"], "utf-8")
    states = []
    for _ in range(2):
        main(["migrate", str(tmp_path), "--out", str(tmp_path / "v2"), "--to", "python"])
        states.append({path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()})
    assert states[0] == states[1]
