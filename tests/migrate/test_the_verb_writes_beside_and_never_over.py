"""`amlstack migrate`: new files beside the old ones, the same each time, and nothing of a person's is lost."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path

import pytest
import yaml

from amlstack.base.paths import PROJECT
from amlstack.cli.main import main
from amlstack.code_reading.code_files import tree_of
from amlstack.migrate.constructs import STATES, construct, constructs
from amlstack.migrate.migration import migrate
from amlstack.migrate.pipelines import Writer
from amlstack.migrate.scopes import Followed
from amlstack.migrate.settings import settings_of
from amlstack.migrate.training_code import patched
from tests.support.migrate.programs import HEAD
from tests.support.rows import for_each

PROGRAM = HEAD + (
    "config = AmlCompute.provisioning_configuration(vm_size='Standard_ND96asr_v4', max_nodes=2)\n"
    "target = ComputeTarget.create(ws, 'gpu', config)\n"
    "ScriptRunConfig('src', 'train.py', ['--n', n], compute_target=target, environment=env)\n"
)
TRAIN = "from azureml.core import Run\nrun = Run.get_context()\nrun.log('loss', 1.0)\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old" / "src").mkdir(parents=True)
    (tmp_path / "old" / "submit.py").write_text(PROGRAM, "utf-8")
    (tmp_path / "old" / "src" / "train.py").write_text(TRAIN, "utf-8")
    return tmp_path


def state(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_files_lie_beside_and_a_second_run_changes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = state(folder / "old")
    assert main(["migrate", "old"]) == 1
    after = state(folder)
    assert {Path(name).name for name in after.keys() - before.keys()} == {
        "submit.yml", "src__train.py.patch", "Pulumi.migrated.yaml",
    }  # fmt: skip
    capsys.readouterr()
    main(["migrate", "old"])
    assert "no file changed" in capsys.readouterr().out
    assert state(folder) == after
    assert state(folder / "old") == before


def test_check_refuses_what_is_left_open_and_takes_it_filled_in(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["migrate", "old"])
    job = folder / "old-v2" / "submit.yml"
    capsys.readouterr()
    assert main(["check", str(job), "--size", "Standard_ND96asr_v4"]) == 1
    assert "[to-fill]" in capsys.readouterr().out
    job.write_text(job.read_text("utf-8").replace("<fill:n,submit.py:13>", "3"), "utf-8")
    assert main(["check", str(job), "--size", "Standard_ND96asr_v4"]) == 0


def test_the_settings_say_what_is_left_open(folder: Path) -> None:
    from infra.settings.reading import read_file

    main(["migrate", "old"])
    found = read_file(folder / "old-v2" / "Pulumi.migrated.yaml").findings
    assert {finding.where for finding in found if finding.code == "to-fill"} == {
        "amlstack:location",
        "amlstack:workspace",
    }


def test_what_a_person_changed_stays_until_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["migrate", "old"])
    job = folder / "old-v2" / "submit.yml"
    job.write_text("mine", "utf-8")
    main(["migrate", "old"])
    assert job.read_text("utf-8") == "mine"
    assert "kept:" in capsys.readouterr().out
    main(["migrate", "old", "--overwrite"])
    assert job.read_text("utf-8") != "mine"


def test_patches_are_applied_when_asked(folder: Path) -> None:
    train = folder / "old" / "src" / "train.py"
    main(["migrate", "old"])
    assert train.read_text("utf-8") == TRAIN
    main(["migrate", "old", "--write"])
    assert train.read_text("utf-8") == "import mlflow\nmlflow.log_metric('loss', 1.0)\n"


def test_reports_count_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["migrate", "old", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert sum(report["counts"].values()) == len(report["constructs"])
    assert all(each["how"] for each in report["constructs"] if each["state"] == "hand")
    main(["migrate", "old", "--markdown"])
    page = capsys.readouterr().out
    assert page.count("\n| old" if "| old" in page else "\n| s") == len(report["constructs"])


def test_a_path_that_is_not_there_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "nowhere.py"]) == 2
    assert "is not there" in capsys.readouterr().err


def test_each_row_of_the_table_is_whole() -> None:
    for row in constructs().values():
        assert row.state in STATES
        assert row.becomes
        assert row.how or row.state != "hand", row.name
        assert construct(f"azureml.x.{row.name}") is not None


MODULES = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))


@pytest.mark.parametrize("part", range(4))
def test_no_file_of_the_standard_library_is_too_much(part: int, tmp_path: Path) -> None:
    for path in MODULES[part::128]:
        text = path.read_text("utf-8", "replace")
        tree = tree_of(text)
        assert tree is not None
        followed = Followed(path.parent)
        followed.follow([(path.name, tree)], path)
        writer = Writer(path, [path.parent], tmp_path)
        assert [*writer.documents(followed.made)] == []
        assert settings_of(followed.made, writer.told) == {}
        assert patched(f"{text}\n# get_context", path.name).items == ()


@for_each("text", [
    "{", "[]", '{"cells": 1}', '{"cells": [1]}', '{"cells": [{"cell_type": "code", "source": 1}]}', "\0", "script: [",
    "a: &a [*a]", "script: x\ntarget: [1]\nenvironment: 3"])  # fmt: skip
@for_each("suffix", [".ipynb", ".runconfig", ".py"])
def test_garbage_is_no_traceback(tmp_path: Path, text: str, suffix: str) -> None:
    (tmp_path / f"old{suffix}").write_text(f"{text}\n# azureml", "utf-8")
    assert main(["migrate", str(tmp_path / f"old{suffix}")]) in {0, 1}


def test_a_runconfig_becomes_a_job(tmp_path: Path) -> None:
    (tmp_path / ".azureml").mkdir()
    (tmp_path / ".azureml" / "train.runconfig").write_text(
        "script: train.py\narguments: [--n, 3]\ntarget: gpu\nframework: Python\ncommunicator: OpenMpi\nnodeCount: 2\n"
        "mpi: {processCountPerNode: 4, nodeCount: 1}\nmaxRunDurationSeconds: 60\n"
        "environment: {environmentVariables: {A: b}, docker: {baseImage: x/y:1},"
        " python: {userManagedDependencies: true}}\n",
        "utf-8",
    )
    main(["migrate", str(tmp_path)])
    text = (tmp_path.parent / f"{tmp_path.name}-v2" / "train.yml").read_text("utf-8")
    assert "command: python train.py --n 3\nenvironment:\n  image: x/y:1\nenvironment_variables:\n  A: b\n" in text
    assert (
        "  type: mpi\n  process_count_per_instance: 4\nresources:\n  instance_count: 2\nlimits:\n  timeout: 60\n"
        in text
    )


def test_a_cell_that_is_no_python_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    cells = ["%%bash\nls -l src", "ls -l src", f"!pip list\n{HEAD}", "ScriptRunConfig('.', 'train.py')"]
    content = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    (tmp_path / "old.ipynb").write_text(json.dumps(content), "utf-8")
    found = migrate([tmp_path / "old.ipynb"], tmp_path / "v2")
    assert [item.place for item in found.items if item.construct == "cell"] == ["old.ipynb[2]"]
    assert "command: python train.py" in found.files["old.yml"]


def test_before_becomes_after_as_the_page_shows(tmp_path: Path) -> None:
    page = (PROJECT / "docs" / "how-to" / "from-sdk-v1.md").read_text("utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| `")]
    config, *others = (before.strip("`") for before, _ in rows[:4])
    (tmp_path / "old" / "src").mkdir(parents=True)
    submitted = f"run = {config.replace('…', ', '.join(others))}\n{rows[4][0].strip('`')}\n"
    (tmp_path / "old" / "submit.py").write_text(HEAD + submitted, "utf-8")
    calls = "\n".join(re.findall(r"`(run.+?)`", rows[5][0]))
    (tmp_path / "old" / "train.py").write_text(f"from azureml.core import Run\nloss = 1\n{calls}\n", "utf-8")
    found = migrate([tmp_path / "old"], tmp_path / "v2")
    job = yaml.safe_load(found.files["submit.yml"])
    for _, after in rows[:5]:
        for key, value in yaml.safe_load("\n".join(re.findall(r"`(.+?)`", after))).items():
            assert job[key] == (value.replace("../", "../old/") if key == "code" else value)
    [patch] = found.patches.values()
    assert patch == "{}\nloss = 1\n{}\n".format(*re.findall(r"`(.+?)`", rows[5][1]))
