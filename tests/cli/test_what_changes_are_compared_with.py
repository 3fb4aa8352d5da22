"""`amlstack check --changed`: the commit that a working tree is compared with, in clones as people and CI have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli.changed_repository import (
    TRAIN,
    commit,
    edited,
    git,
    touched,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
    assert touched(found) == {TRAIN: "code: train.py changed"}
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
    assert touched(changed()) == {TRAIN: "code: train.py changed"}


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
