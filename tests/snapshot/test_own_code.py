"""Files of a code folder that are part of a run's identity."""

from __future__ import annotations

import hashlib
import py_compile
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amlstack.snapshot import OwnCode, differences, own_code, scan, together
from amlstack.snapshot.content import MOST, compact

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

JOB = "from jobs import Job\n\njob = Job(command='python train.py', display_name='one')\n"
YAML = "command: python train.py\nenvironment: azureml:e@latest\n"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    write(folder, {"train.py": "import data\n", "data.py": "rows = 1\n"})
    return folder


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def own(folder: Path, file: str = "job.py", command: str = "python train.py") -> OwnCode:
    return own_code(scan(folder), declared_in=(folder / file,), commands=(command,))


LITTER = [
    ".DS_Store",
    "data/._rows.csv",
    "data/Thumbs.db",
    ".train.py.swp",
    "train.py~",
    "#train.py#",
    ".#train.py",
    ".ipynb_checkpoints/look-checkpoint.ipynb",
    "sub/.ipynb_checkpoints/look.py",
    ".vscode/settings.json",
    ".idea/workspace.xml",
    ".git/HEAD",
    ".gitignore",
    ".pytest_cache/v/cache/lastfailed",
    "sub/.mypy_cache/3.11/a.json",
    ".ruff_cache/x/1",
    "__pycache__/train.cpython-311.pyc",
    "train.pyc",
    "outputs/model.pt",
    "outputs/2026-01-01/12-00-00/main.py",
    "logs/rank0.txt",
    "lightning_logs/version_0/hparams.yaml",
    "Pulumi.dev.yaml",
]


@pytest.mark.parametrize("name", LITTER)
def test_what_tools_and_runs_leave_in_a_folder_makes_no_other_run(code: Path, name: str) -> None:
    before, uploaded = own(code), scan(code).hash
    write(code, {name: "left behind"})
    assert own(code).hash == before.hash
    assert own(code).files == before.files
    assert scan(code).hash != uploaded, "what is uploaded stays everything"


COUNTED = [
    "bare.pyc",
    "outputs.py",
    "logs/__init__.py",
    "sub/outputs/table.csv",
    "notes.txt",
    "conf/base.yaml",
    "data.bak",
    "env.swift",
    "sub/Pulumi.yaml",
]


@pytest.mark.parametrize("name", COUNTED)
def test_what_a_run_may_use_counts(code: Path, name: str) -> None:
    before = own(code)
    write(code, {name: "used"})
    assert own(code).hash != before.hash
    write(code, {name: "used otherwise"})
    assert differences(own(code).files, before.files), "and is named"


def test_a_package_named_as_a_folder_of_runs_counts_whole(code: Path) -> None:
    write(code, {"logs/__init__.py": "", "logs/format.json": "{}"})
    before = own(code)
    write(code, {"logs/format.json": "[]"})
    assert own(code).hash != before.hash


def test_compiling_a_module_makes_no_other_run(code: Path) -> None:
    before = own(code)
    py_compile.compile(str(code / "data.py"))
    assert (code / "__pycache__").is_dir()
    assert own(code).hash == before.hash


@pytest.mark.parametrize(
    ("file", "text", "edited"),
    [
        ("job.py", JOB, JOB.replace("one", "two")),
        ("job.py", "import special\n", "import other\n"),
        ("job.yml", YAML, f"{YAML}display_name: two\n"),
        ("sub/job.yaml", YAML, f"{YAML}tags: {{a: b}}\n"),
    ],
)
def test_an_edit_of_the_job_file_makes_no_other_run(code: Path, file: str, text: str, edited: str) -> None:
    without = own(code, file)
    write(code, {file: text})
    assert own(code, file).hash == without.hash
    write(code, {file: edited})
    assert own(code, file).hash == without.hash


OTHERS = {
    "second.py": "from jobs import Job, Pipeline\njobs = [Job(command='x')]\n",
    "typed.py": "import jobs\njob: jobs.Job = jobs.Job(command='x')\n",
    "train.yml": "$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json\ncommand: x\n",
    "component.yaml": "name: c\ntype: command\ncommand: x\nenvironment: y\n",
    "pipeline.yml": "type: pipeline\njobs: {a: {}}\n",
    "sweep.yml": "type: sweep\ntrial: {}\nsearch_space: {}\n",
    "nightly.yml": "name: n\ncreate_job: job.yml\ntrigger: {}\n",
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_job_files_in_the_folder_make_no_other_run_whether_a_stack_names_them_or_not(
    code: Path, name: str
) -> None:
    write(code, {"job.py": JOB})
    before = own(code)
    write(code, {name: OTHERS[name]})
    assert own(code).hash == before.hash


USES = {
    "import job": ("train.py", "import job\n", "python train.py"),
    "from job import": ("train.py", "def f():\n    from job import lr\n", "python train.py"),
    "from . import": ("pack/a.py", "from . import job\n", "python train.py"),
    "from a package": ("train.py", "from pack.job import lr\n", "python train.py"),
    "import_module": ("train.py", "import importlib\nimportlib.import_module('job')\n", "python train.py"),
    "runpy": ("train.py", "import runpy\nrunpy.run_path('job.py')\n", "python train.py"),
    "its name in a text": ("train.py", "subprocess.run(['python', 'job.py'])\n", "python train.py"),
    "a file that cannot be parsed": ("train.py", "import job as\n", "python train.py"),
    "a shell script": ("run.sh", "python job.py\n", "bash run.sh"),
    "a script without an ending": ("run", "#!/bin/sh\npython -m job\n", "./run"),
    "the command": ("train.py", "", "python job.py --train"),
    "the command with -m": ("train.py", "", "torchrun -m job"),
}


@pytest.mark.parametrize("how", USES)
def test_a_job_file_that_the_code_uses_is_code(code: Path, how: str) -> None:
    file, text, command = USES[how]
    write(code, {"job.py": JOB, file: text})
    before = own(code, command=command)
    write(code, {"job.py": JOB.replace("one", "two")})
    after = own(code, command=command)
    assert after.hash != before.hash
    assert differences(before.files, after.files) == ("job.py changed",)


@pytest.mark.parametrize("text", ['"""See job.py."""\n', "# job.py says how\n", "jobs = 1\n", "import jobless\n"])
def test_a_job_file_that_is_only_mentioned_is_not_used(code: Path, text: str) -> None:
    write(code, {"job.py": JOB, "train.py": text})
    before = own(code)
    write(code, {"job.py": JOB.replace("one", "two")})
    assert own(code).hash == before.hash


def test_what_a_used_job_file_imports_is_code_too(code: Path) -> None:
    shared = "from jobs import Job\njob = Job(command='x')\nlr = 1\n"
    write(code, {"job.py": f"from shared import lr\n{JOB}", "shared.py": shared, "train.py": "import job\n"})
    before = own(code)
    write(code, {"shared.py": shared.replace("lr = 1", "lr = 2")})
    assert differences(before.files, own(code).files) == ("shared.py changed",)
    write(code, {"train.py": ""})
    assert sorted(own(code).files) == ["data.py", "train.py"]


def test_a_module_jobs_in_the_folder_is_meant_by_what_imports_it(code: Path) -> None:
    write(code, {"jobs.py": "Job = dict\n", "queue.py": "from jobs import Job\njob = Job()\n"})
    assert "queue.py" in own(code).files


def test_a_folder_that_cannot_be_read_has_no_hash(tmp_path: Path) -> None:
    assert own_code(scan(tmp_path / "missing")) == OwnCode()


def test_runs_of_several_parts_combine_them(code: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other, {"score.py": "1", "job.yml": YAML})
    parts = {"jobs.train": own(code), "jobs.again": own(code), "jobs.score": own(other, "job.yml")}
    both = together(parts)
    assert sorted(both.files) == ["again/data.py", "again/train.py", "score/score.py"]
    assert together({"jobs.train": own(code)}).files == own(code).files
    assert together({}) == OwnCode()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_list_of_many_files_is_short_and_names_folders() -> None:
    files = {f"data/{number // 100}/{number}.bin": digest(str(number)) for number in range(20_000)}
    files |= {"train.py": digest("a"), "src/model.py": digest("b")}
    before = compact(files)
    assert len(before) <= MOST
    assert {"train.py", "src/model.py"} <= before.keys()
    files |= {"data/7/701.bin": digest("else"), "src/new.py": digest("c")}
    assert differences(before, compact(files)) == ("data/7/ changed", "src/new.py added")


def test_a_flat_folder_of_many_files_is_one_entry() -> None:
    files = {f"{number}.bin": digest(str(number)) for number in range(1000)}
    assert list(compact(files)) == ["./"]
    fewer = {name: files[name] for name in list(files)[:5]}
    assert differences(compact(files), compact(fewer)) == ("./ changed",)


NAMES = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join)


@given(st.dictionaries(NAMES, st.sampled_from("12"), max_size=30), st.integers(1, 12), st.integers(1, 12))
def test_lists_of_the_same_files_show_no_difference_however_much_room_they_have(
    drawn: dict[str, str], most: int, other: int
) -> None:
    # A name is a file or a folder, never both.
    files = {
        name: digest(content)
        for name, content in drawn.items()
        if not any(each.startswith(f"{name}/") for each in drawn)
    }
    one, two = compact(files, most), compact(files, other)
    assert len(one) <= most
    assert differences(one, two) == ()
    if files:
        name = min(files)
        assert differences(one, compact({**files, name: digest("3")}, other))
