"""The base of a comparison: a commit that a person names, or the base that CI knows of the pull request.

GITHUB_BASE_REF: docs.github.com, "Default environment variables"; SYSTEM_PULLREQUEST_TARGETBRANCH: learn.microsoft.com,
"Use predefined variables" of Azure Pipelines. Both services build a merge of the target branch and the pull request,
whose first parent is the target branch (read 2026-11).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from amlstack.cli.jobfiles.changes.git import GitError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.cli.jobfiles.changes.git import Repository

_DEEPER: Final = (
    "Fetch more of the history: `fetch-depth: 0` for actions/checkout (2 is enough for a pull request), "
    "`fetchDepth: 0` for the checkout of Azure Pipelines, `git fetch --unshallow` elsewhere"
)


@dataclass(frozen=True, slots=True)
class Base:
    """What is compared with.

    Attributes:
        commit: Its hash.
        words: For people: ``merge base with origin/main``.
    """

    commit: str
    words: str


def find(repository: Repository, asked: str | None, environ: Mapping[str, str] | None = None) -> Base:
    """The commit to compare with.

    Args:
        repository: The working tree.
        asked: What a person named; None for nothing.
        environ: This process's when absent.

    Raises:
        GitError: There is none in this clone.
    """
    environ = os.environ if environ is None else environ
    if repository.commit("HEAD") is None:
        raise GitError("the repository has no commit yet, so nothing has changed since one")
    if asked is not None:
        return _apart(repository, asked, asked)
    if (branch := _target(environ)) is not None:
        parents = repository.parents()
        if len(parents) == 2 and _builds_a_merge(environ, repository.commit("HEAD")) and repository.commit(parents[0]):
            return Base(parents[0], f"`{branch}` as this pull request is merged with it")
        name = next((one for one in (f"origin/{branch}", branch) if repository.commit(one)), f"origin/{branch}")
        return _apart(repository, name, branch)
    default = repository.default_branch()
    if default is None:
        raise GitError(
            "the default branch of the remote is not known in this clone. Name what to compare with: "
            "`amlstack check --changed origin/main`"
        )
    return _apart(repository, default, default)


def _apart(repository: Repository, name: str, branch: str) -> Base:
    if repository.commit(name) is None:
        remedy = f" {_DEEPER}" if repository.is_shallow else f" `git fetch origin {branch.removeprefix('origin/')}`"
        raise GitError(f"this clone has no commit `{name}`.{remedy}")
    found = repository.merge_base(name)
    if found is None and repository.is_shallow:
        raise GitError(f"this clone is too shallow: it has no commit that `{name}` and HEAD have in common. {_DEEPER}")
    if found is None:
        raise GitError(f"`{name}` and HEAD have no commit in common, so there is no range of commits between them")
    same = found == repository.commit(name)
    return Base(found, f"`{name}`" if same else f"merge base with `{name}`")


def _target(environ: Mapping[str, str]) -> str | None:
    """The branch that CI says a pull request goes to; None where it builds none."""
    if branch := environ.get("GITHUB_BASE_REF"):
        return branch
    if branch := environ.get("SYSTEM_PULLREQUEST_TARGETBRANCH"):
        return branch.removeprefix("refs/heads/")
    return None


def _builds_a_merge(environ: Mapping[str, str], head: str | None) -> bool:
    """Whether HEAD is the merge that CI made, and not what a step checked out since."""
    if head != (environ.get("GITHUB_SHA") or environ.get("BUILD_SOURCEVERSION")):
        return False
    ref = environ.get("GITHUB_REF") or environ.get("BUILD_SOURCEBRANCH") or ""
    return ref.startswith("refs/pull/") and ref.endswith("/merge")
