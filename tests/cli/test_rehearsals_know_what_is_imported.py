"""`amlstack rehearse --dry-run` on code that imports what its built environment has not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from amlstack.images import building, standins

if TYPE_CHECKING:
    from pathlib import Path

IMAGE = "mcr.microsoft.com/azureml/openmpi5.0-ubuntu24.04"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a job, whose environment is built and holds the package `there`."""
    for name in ("HOME", "CACHE"):
        monkeypatch.setenv(f"AMLSTACK_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (building.folder(standins.resolve(IMAGE)) / "lib/python3.11/site-packages/there").mkdir(parents=True)
    (tmp_path / "work/src/lib").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def environment(
    here: Path, capfd: pytest.CaptureFixture[str], command: str, image: str = IMAGE
) -> list[dict[str, Any]]:
    job = {"command": command, "code": "src", "environment": {"image": image}, "compute": "azureml:a"}
    (here / "job.yml").write_text(json.dumps(job))
    main(["rehearse", "job.yml", "--dry-run", "--json", "--yes"])
    (answer,) = json.loads(capfd.readouterr().out)["jobs"]
    return [each for each in answer["aspects"] if each["about"] == "environment" and "will fail" in each["text"]]


def test_a_missing_module_is_named_at_its_line_with_the_package_to_write(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src/train.py").write_text("import os, there.part\nfrom helper import one\n\none()\n")
    (here / "src/lib/helper.py").write_text("from sklearn.svm import SVC\n\ndef one(): pass\n")
    (here / "src/helper.py").write_text("import sklearn\n\ndef one(): pass\n")
    (found,) = environment(here, capfd, "python train.py")
    assert (found["file"].rpartition("src/")[2], found["line"]) == ("helper.py", 1)
    assert "`import sklearn` will fail" in found["text"]
    assert f'`[stand_in."{IMAGE}"]`' in found["text"]
    assert '`requirements = ["scikit-learn"]`' in found["text"]


@pytest.mark.parametrize(
    ("image", "text", "lacking"),
    [
        (IMAGE, "import there, sklearn\n", ["sklearn"]),
        (IMAGE, "import amlnode\n", []),  # travels with the code
        (
            "mcr.microsoft.com/azureml/curated/tensorflow-2.7-ubuntu20.04-py38-cuda11-gpu",
            "import horovod\n",
            ["horovod"],
        ),
        ("mcr.microsoft.com/azureml/curated/tensorflow-2.7-ubuntu20.04-py38-cuda11-gpu", "import requests\n", []),
    ],
)
def test_what_the_started_script_lacks_is_in_the_way_also_before_the_environment_is_built(
    image: str, text: str, lacking: list[str], *, here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (here / "src/train.py").write_text(text)
    found = environment(here, capfd, "python train.py", image)
    assert [(each["state"], each["text"].split("`")[1]) for each in found] == [
        ("blocks", f"import {each}") for each in lacking
    ]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("try:\n    import apex\nexcept ImportError:\n    apex = None\n", "python train.py"),
        ("def late():\n    import apex\n", "python train.py"),
        ("import sys\nsys.path.append('lib')\nimport inside\n", "python train.py"),
        ("import apex\n", "pip install apex && python train.py"),
    ],
)
def test_what_may_be_there_by_then_is_not_named(
    here: Path, capfd: pytest.CaptureFixture[str], text: str, command: str
) -> None:
    (here / "src/lib/inside.py").write_text("")
    (here / "src/train.py").write_text(text)
    assert environment(here, capfd, command) == []
