"""`amlstack check --changed`: repositories made here, each with one change, and which jobs and stacks it touches."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

SETTINGS = """\
config:
  amlstack:location: westeurope
  amlstack:workspace: aml
  amlstack:policies: policies.json
  amlstack:clusters:
    - {name: big, size: Standard_ND96asr_v4, nodes: {max: 2}}
    - {name: small, size: Standard_ND96asr_v4, nodes: {max: 5}}
    - include: clusters/*.yml
  amlstack:environments:
    - {name: own, image: "img:1", conda: envs/own.yml}
    - {name: other, image: "img:1"}
  amlstack:data:
    - {name: tokens, path: data/tokens}
  amlstack:jobs:
    - train/job.yml
    - file: pipe/pipeline.yml
    - python/job.py
"""
JOB = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandJob.schema.json
command: python train.py --data ${{inputs.data}} --raw ${{inputs.raw}}
code: code
environment: azureml:own
compute: azureml:big
inputs:
  data: {type: uri_folder, path: "azureml:tokens@latest"}
  raw: {type: uri_folder, path: raw}
"""
PIPELINE = """\
$schema: https://azuremlschemas.azureedge.net/latest/pipelineJob.schema.json
type: pipeline
settings: {default_compute: azureml:included}
jobs:
  one: {type: command, component: parts/one.yml}
"""
COMPONENT = """\
$schema: https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json
type: command
name: one
version: "1"
command: python one.py
code: ../steps
environment:
  image: img:1
  conda_file: ../conda.yml
"""
PYTHON = """\
import json
from pathlib import Path
from jobs import Code, Job
from shared.common import COMMAND
job = Job(
    name="py",
    command=COMMAND,
    code=Code(path="src", includes=("../along",)),
    environment="azureml:other",
    compute="small",
    nodes=json.loads((Path(__file__).parent / "shape.json").read_text())["nodes"],
)
"""
FILES = {
    ".gitignore": "*.ignored\n",
    "Pulumi.yaml": "name: p\nruntime: python\n",
    "Pulumi.prod.yaml": SETTINGS,
    "Pulumi.dev.yaml": "config:\n  amlstack:location: westeurope\n  amlstack:workspace: dev\n",
    "policies.json": "{}",
    "clusters/more.yml": "- {name: included, size: Standard_ND96asr_v4, nodes: {max: 2}}\n",
    "envs/own.yml": "dependencies: [python=3.10]\n",
    "data/tokens/a.txt": "1",
    "train/job.yml": JOB,
    "train/code/train.py": "print(1)\n",
    "train/code/.amlignore": "notes\n",
    "train/code/notes/n.txt": "1",
    "train/raw/a.txt": "1",
    "pipe/pipeline.yml": PIPELINE,
    "pipe/parts/one.yml": COMPONENT,
    "pipe/steps/one.py": "print(1)\n",
    "pipe/conda.yml": "dependencies: [python=3.10]\n",
    "python/job.py": PYTHON,
    "python/src/train.py": "print(1)\n",
    "python/src/second_job.yml": JOB,
    "python/shape.json": '{"nodes": 1}',
    "python/shared/__init__.py": "",
    "python/shared/common.py": "from shared.deeper import COMMAND\n",
    "python/shared/deeper.py": 'COMMAND = "python train.py"\n',
    "along/lib.py": "x = 1\n",
    "unlisted/job.yml": JOB,
    "infra/__main__.py": "",
    "README.md": "hello\n",
}
TRAIN, PIPE, PY = "train/job.yml", "pipe/pipeline.yml", "python/job.py"


def git(folder: Path, *words: str) -> str:
    identity = (
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@t",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "init.defaultBranch=main",
    )
    done = subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "repository"
    for name, text in FILES.items():
        write(folder, name, text)
    git(folder, "init", "-q", "--template=")
    commit(folder)
    return folder


@pytest.fixture
def repository(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(original, tmp_path / "repository"))
    monkeypatch.chdir(folder)
    for name in ("GITHUB_BASE_REF", "GITHUB_REF", "GITHUB_SHA", "SYSTEM_PULLREQUEST_TARGETBRANCH"):
        monkeypatch.delenv(name, raising=False)
    return folder


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "one", "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def changed(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """What the verb prints as JSON, and its exit status where it is not 0."""

    def ask(*words: str, code: int = 0) -> Any:
        assert main(["check", "--changed", *words, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return ask


def touched(survey: Any) -> dict[str, str]:
    """Job file → its first reason."""
    return {job["file"]: job["reasons"][0]["what"] for job in survey["jobs"]}


def edited(text: str) -> Callable[[Path], None]:
    """A change of one file: ``NAME``, ``NAME: OLD -> NEW``, or ``-NAME`` for its deletion."""

    def change(folder: Path) -> None:
        name, _, how = text.partition(": ")
        if name.startswith("-"):
            (folder / name[1:]).unlink()
        elif how:
            old, _, new = how.partition(" -> ")
            content = (folder / name).read_text()
            assert old in content
            write(folder, name, content.replace(old, new.replace("\\n", "\n")))
        else:
            before = (folder / name).read_text() if (folder / name).exists() else ""
            write(folder, name, f"{before}\n")

    return change


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("train/job.yml", {TRAIN: "job file"}),
        ("train/code/train.py", {TRAIN: "code"}),
        ("-train/code/train.py", {TRAIN: "code"}),
        ("train/code/new.py", {TRAIN: "code"}),
        ("train/code/notes/n.txt", {}),
        ("train/code/__pycache__/x.pyc", {}),
        ("train/code/.amlignore", {TRAIN: "code"}),
        ("train/raw/a.txt", {TRAIN: "data of inputs.raw"}),
        ("data/tokens/a.txt", {TRAIN: "data asset `tokens`"}),
        ("data/tokens/new.txt", {TRAIN: "data asset `tokens`"}),
        ("envs/own.yml", {TRAIN: "conda file of the environment"}),
        ("pipe/parts/one.yml", {PIPE: "read by the job file"}),
        ("pipe/steps/one.py", {PIPE: "code"}),
        ("pipe/conda.yml", {PIPE: "conda file of the environment"}),
        ("python/shape.json", {PY: "read by the job file"}),
        ("python/shared/common.py", {PY: "imported by the job file"}),
        ("python/shared/deeper.py", {PY: "imported by the job file"}),
        ("python/src/second_job.yml", {"python/src/second_job.yml": "job file"}),
        ("along/lib.py", {PY: "goes along with the code"}),
        ("unlisted/job.yml", {"unlisted/job.yml": "job file"}),
        ("README.md", {}),
        ("new.ignored", {}),
        ("Pulumi.prod.yaml: img:1\", conda -> img:2\", conda", {TRAIN: "settings: environments `own`"}),
        ("Pulumi.prod.yaml: {max: 5} -> {max: 3}", {PY: "settings: clusters `small`"}),
        ("clusters/more.yml: max: 2 -> max: 3", {PIPE: "settings: clusters `included`"}),
        ("Pulumi.prod.yaml: file: pipe/ -> rerun: x\\n      file: pipe/", {PIPE: f"settings: jobs `{PIPE}`"}),
        ("Pulumi.prod.yaml: data/tokens -> data/tokens, description: all", {TRAIN: "settings: data `tokens`"}),
        ("Pulumi.prod.yaml: workspace: aml -> workspace: aml2", {}),
    ],
)  # fmt: skip
def test_a_change_touches_the_jobs_that_it_means_something_for(
    repository: Path, changed: Callable[..., Any], change: str, expected: dict[str, str]
) -> None:
    edited(change)(repository)
    found = touched(changed("HEAD"))
    assert found == expected


def test_a_committed_change_counts_as_one_that_is_not(repository: Path, changed: Callable[..., Any]) -> None:
    base = git(repository, "rev-parse", "HEAD")
    edited("train/code/new.py")(repository)
    edited("python/src/train.py")(repository)
    loose = changed(base)
    commit(repository)
    found = changed(base)
    assert touched(found) == touched(loose) == {TRAIN: "code", PY: "code"}
    assert (loose["uncommitted"], found["uncommitted"]) == (2, 0)


@pytest.mark.parametrize(
    ("change", "stacks"),
    [
        ("train/code/train.py", {"prod": "job: code"}),
        ("data/tokens/a.txt", {"prod": "data asset `tokens`"}),
        ("policies.json", {"prod": "configuration of the policies"}),
        ("Pulumi.prod.yaml: workspace: aml -> workspace: aml2", {"prod": "settings: `workspace`"}),
        ("Pulumi.prod.yaml: config: -> # a comment\\nconfig:", {}),
        ("clusters/more.yml: max: 2 -> max: 3", {"prod": "settings: clusters `included`"}),
        ("infra/__main__.py", {"prod": "the stack's program", "dev": "the stack's program"}),
        ("Pulumi.yaml", {"prod": "the stack's program", "dev": "the stack's program"}),
        ("Pulumi.dev.yaml: dev -> dev2", {"dev": "settings: `workspace`"}),
        ("README.md", {}),
    ],
)
def test_a_change_touches_the_stacks_that_it_means_something_for(
    repository: Path, changed: Callable[..., Any], change: str, stacks: dict[str, str]
) -> None:
    edited(change)(repository)
    found = changed("HEAD")
    assert {each["stack"]: each["reasons"][0]["what"] for each in found["stacks"]} == stacks


def test_a_job_that_is_gone_is_listed_apart_and_a_renamed_one_is_both(
    repository: Path, changed: Callable[..., Any]
) -> None:
    git(repository, "mv", "train", "trained")
    edited("Pulumi.prod.yaml: train/job.yml -> trained/job.yml")(repository)
    found = changed("HEAD")
    assert touched(found) == {"trained/job.yml": "job file"}
    assert [(job["file"], job["stacks"]) for job in found["removed"]] == [(TRAIN, ["prod"])]
    assert found["removed"][0]["reasons"][0]["what"] == "deleted, and no longer listed"
    (repository / "python" / "job.py").unlink()
    still = changed("HEAD")["removed"][0]
    assert (still["file"], still["reasons"][0]["what"]) == (PY, "deleted, and still listed")
    (repository / "Pulumi.dev.yaml").unlink()
    assert changed("HEAD")["removed_stacks"] == ["dev"]


def test_names_and_stacks_are_one_a_line_as_a_command_takes_them(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edited("train/code/train.py")(repository)
    edited("python/src/train.py")(repository)
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert capsys.readouterr().out == f"{TRAIN}\n{PY}\n"
    assert main(["check", "--changed", "HEAD", "--format", "stacks"]) == 0
    assert capsys.readouterr().out == "prod\n"
    monkeypatch.chdir(repository / "train")
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert "job.yml\n" in capsys.readouterr().out


def test_nothing_touched_is_good_and_is_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edited("README.md")(repository)
    assert main(["check", "--changed", "HEAD"]) == 0
    head = git(repository, "rev-parse", "HEAD")[:10]
    assert capsys.readouterr().out == (
        f"since {head} (`HEAD`): 1 file changed, 1 of them not committed\nno jobs touched\nno stacks touched\n"
    )
    assert main(["check", "--changed", "HEAD", "--format", "names"]) == 0
    assert capsys.readouterr().out == ""


def test_job_files_that_no_stack_lists_are_looked_at_when_they_are_named(
    repository: Path, changed: Callable[..., Any]
) -> None:
    write(repository, "unlisted/code/train.py", "x = 1\n")
    assert touched(changed("HEAD")) == {}
    assert touched(changed("HEAD", "unlisted/job.yml")) == {"unlisted/job.yml": "code"}


def test_a_python_file_that_holds_the_text_of_a_job_file_is_none(repository: Path, changed: Callable[..., Any]) -> None:
    text = "from jobs import Job\njob = Job(name='a')\n"
    write(repository, "tests/test_texts.py", f'TEXT = """\\\n{text}"""\n')
    write(repository, "more/own.py", text)
    assert touched(changed("HEAD")) == {"more/own.py": "job file"}


def test_one_stack_may_be_meant(repository: Path, changed: Callable[..., Any]) -> None:
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD", "--stack", "dev")) == {}
    assert "there is no Pulumi.none.yaml" in changed("HEAD", "--stack", "none", code=2)["error"]


def cloned(repository: Path, target: Path, *words: str) -> Path:
    git(repository.parent, "clone", "-q", *words, repository.as_uri(), str(target))
    return target


def test_without_a_base_the_remotes_default_branch_is_compared_with(
    repository: Path, tmp_path: Path, changed: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = cloned(repository, tmp_path / "clone")
    monkeypatch.chdir(clone)
    git(clone, "switch", "-q", "-c", "feature")
    edited("train/code/train.py")(clone)
    commit(clone)
    edited("python/src/train.py")(repository)  # what goes on in main meanwhile is none of ours
    commit(repository)
    git(clone, "fetch", "-q")
    found = changed()
    assert touched(found) == {TRAIN: "code"}
    assert found["base"]["words"] == "merge base with `origin/main`"


GITHUB = {"GITHUB_BASE_REF": "main", "GITHUB_REF": "refs/pull/7/merge"}
AZURE = {"SYSTEM_PULLREQUEST_TARGETBRANCH": "refs/heads/main", "BUILD_SOURCEBRANCH": "refs/pull/7/merge"}


@pytest.mark.parametrize(("environ", "depth"), [(GITHUB, 1), (GITHUB, 2), (GITHUB, 0), (AZURE, 2)])
def test_a_pull_request_is_compared_with_the_branch_it_goes_to(  # noqa: PLR0917 - fixtures
    repository: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changed: Callable[..., Any],
    environ: dict[str, str],
    depth: int,
) -> None:
    """As CI checks out: the merge of both branches, without them, and of a shallow history."""
    git(repository, "switch", "-q", "-c", "feature")
    edited("train/code/train.py")(repository)
    commit(repository)
    git(repository, "switch", "-q", "main")
    edited("python/src/train.py")(repository)
    commit(repository)
    git(repository, "switch", "-q", "--detach")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "feature")
    git(repository, "update-ref", "refs/pull/7/merge", "HEAD")
    clone = tmp_path / "checkout"
    git(tmp_path, "init", "-q", str(clone))
    git(clone, "remote", "add", "origin", repository.as_uri())
    shallow = [f"--depth={depth}"] if depth else []
    branches = [] if depth else ["+refs/heads/*:refs/remotes/origin/*"]
    git(clone, "fetch", "-q", *shallow, "origin", "+refs/pull/7/merge:refs/remotes/pull/7/merge", *branches)
    git(clone, "checkout", "-q", "refs/remotes/pull/7/merge")
    monkeypatch.chdir(clone)
    sha = "GITHUB_SHA" if "GITHUB_REF" in environ else "BUILD_SOURCEVERSION"
    for name, value in {**environ, sha: git(clone, "rev-parse", "HEAD")}.items():
        monkeypatch.setenv(name, value)
    if depth == 1:
        error = changed(code=2)["error"]
        assert "this clone has no commit `origin/main`" in error
        assert "fetch-depth: 0" in error
        return
    assert touched(changed()) == {TRAIN: "code"}


def test_what_cannot_be_compared_is_an_error_with_its_remedy(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: Callable[..., Any]
) -> None:
    assert "has no commit `nowhere`" in changed("nowhere", code=2)["error"]
    assert "there is no job file `none.yml`" in changed("HEAD", "none.yml", code=2)["error"]
    edited("train/code/train.py")(repository)
    tip = commit(repository)
    git(repository, "switch", "-q", "-c", "old", "HEAD~1")
    commit(repository)
    shallow = cloned(repository, tmp_path / "shallow", "--depth=1", "--branch=old")
    git(shallow, "fetch", "-q", "--depth=1", "origin", tip)
    monkeypatch.chdir(shallow)
    error = changed(tip, code=2)["error"]
    assert "too shallow" in error
    assert "fetch-depth: 0" in error
    (tmp_path / "none").mkdir()
    monkeypatch.chdir(tmp_path / "none")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert "is in no git repository" in changed(code=2)["error"]


def test_a_repository_without_a_default_branch_asks_for_a_base(repository: Path, changed: Callable[..., Any]) -> None:
    git(repository, "branch", "-m", "trunk")
    assert "Name what to compare with" in changed(code=2)["error"]


def test_a_job_file_that_cannot_be_read_is_touched_by_what_lies_beside_it(
    repository: Path, changed: Callable[..., Any]
) -> None:
    edited("train/job.yml: command: python -> command: [python")(repository)
    commit(repository)
    edited("train/code/train.py")(repository)
    assert touched(changed("HEAD")) == {TRAIN: "beside a job file that cannot be read"}
