"""`pip install` in a job: what it installs lies in the job's own folder, not in the shared stand-in or the machine."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.runner import pip_layer
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.runner.runner_lab import Lab

SCRIPT = """\
#!/bin/sh
'''exec' "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@"
' '''
import greeting, shared
print(greeting.WORD, shared.VERSION)
"""


@pytest.fixture(scope="module")
def pip_stand_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in without pip that holds the package `shared` in version 1 and a program."""
    built = tmp_path_factory.mktemp("stand-in") / "built"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", built], check=True)
    (packages,) = built.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel(built.parent, "shared", "1", "VERSION = 1")) as file:
        file.extractall(packages)
    (built / "bin" / "greet").write_text(SCRIPT)
    (built / "bin" / "greet").chmod(0o755)
    (built / "share").mkdir()
    return built


def wheel(folder: Path, name: str, version: str, code: str) -> Path:
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{name}.py", code)
        file.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        file.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{info}/RECORD", f"{name}.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return path


def state(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts}


def test_what_is_installed_is_seen_by_programs_of_the_stand_in_and_leaves_it_alone(
    pip_stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMLSTACK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel(tmp_path, "greeting", "3", "WORD = 'hello'")
    wheel(tmp_path, "shared", "2", "VERSION = 2")
    before = state(pip_stand_in)
    layer = pip_layer.make(pip_stand_in, tmp_path / "layer")
    environment = {"PATH": f"{layer}/bin:/usr/bin:/bin", "HOME": str(tmp_path / "home")}

    def shell(command: str) -> str:
        ended = subprocess.run(
            ["/bin/bash", "-c", command], env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    assert "shared" in shell("pip list")
    shell("pip install -q greeting && python -m pip install -q --upgrade shared")
    assert shell("greet") == "hello 2\n"
    assert state(pip_stand_in) == before
    assert (layer / "share").is_symlink()
    assert (layer / "pip.conf").stat().st_mode & 0o077 == 0


@for_each(
    "command, script, expected",
    [
        ("pip install -r requirements.txt && python train.py", "", True),
        ("python -m pip install x", "", True),
        ("pip list && python train.py", "", True),
        ("bash run.sh", "pip3 install x\n", True),
        ("python train.py", "subprocess.run([sys.executable, '-m', 'pip', 'install', 'x'])\n", True),
        ("cd apex && python setup.py install", "", True),
        ("python train.py --pipeline 2", "import pipeline\n", False),
        ("python train.py", "# a pip-free job\n", False),
    ],
)
def test_only_jobs_that_use_pip_get_a_layer(command: str, script: str, *, expected: bool, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text(script)
    assert pip_layer.wanted(command, tmp_path) is expected


def test_a_job_that_installs_gets_its_own_environment(lab: Lab) -> None:
    job = lab.run(lab.job("pip --version > /dev/null; python -c 'import sys; print(sys.prefix)'"))
    assert job.status == "Completed", job.error
    layer = Path(lab.log("job").strip())
    assert layer.name == "environment-0"
    assert not layer.exists()  # it goes with the job, and is no part of what is kept and diagnosed
