"""Git as `check --changed` and `gitops` use it: the base of a comparison, its tree, and the changed paths."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


class GitError(Exception):
    """git has no answer; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Repository:
    """One working tree.

    Attributes:
        root: Its top folder, links resolved.
    """

    root: Path

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """The repository that a folder lies in.

        Raises:
            GitError: It lies in none, or there is no git.
        """
        found = _git(folder, "rev-parse", "--show-toplevel")
        if found.returncode:
            words = found.stderr.strip().removeprefix("fatal: ")
            raise GitError(
                f"`{folder}` is in no git repository that can be read: {words}. `--changed` compares commits"
            )
        return cls(Path(found.stdout.strip()).resolve())

    def commit(self, name: str) -> str | None:
        """The commit that a name means; None where this clone has no such commit."""
        found = self._ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        return found.stdout.strip() if found.returncode == 0 else None

    def require(self, *names: str) -> None:
        """Holds that this clone has commits.

        Raises:
            GitError: One is not there.
        """
        for name in names:
            if self.commit(name) is None:
                raise GitError(f"this clone has no commit `{name}`")

    def parents(self) -> tuple[str, ...]:
        """The parents of HEAD that this clone has."""
        words = self._ask("rev-list", "--parents", "--max-count=1", "HEAD").stdout.split()
        return tuple(words[1:])

    def merge_base(self, one: str) -> str | None:
        """The commit from which a commit and HEAD went apart; None where this clone has none."""
        found = self._ask("merge-base", one, "HEAD")
        return found.stdout.strip() if found.returncode == 0 else None

    @property
    def is_shallow(self) -> bool:
        """True where the clone lacks older commits."""
        return self._ask("rev-parse", "--is-shallow-repository").stdout.strip() == "true"

    def default_branch(self) -> str | None:
        """The default branch of the remote, as ``origin/main``; None where that is not known here."""
        remotes = self._ask("remote").stdout.split()
        remote = "origin" if "origin" in remotes or not remotes else remotes[0]
        found = self._ask("symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD")
        if found.returncode == 0:
            return found.stdout.strip()
        # Checkouts of CI do not ask the remote for it.
        names = (f"{remote}/main", f"{remote}/master", *(() if remotes else ("main", "master")))
        return next((name for name in names if self.commit(name)), None)

    def changed(self, base: str) -> frozenset[str]:
        """Paths from the root on that differ from a commit, in commits since and in the working tree, new ones too.

        A renamed file counts by both names.
        """
        return frozenset(
            (*self.names("diff", "--name-only", "--no-renames", "--ignore-submodules=none", base, "--"), *self._new())
        )

    def uncommitted(self) -> frozenset[str]:
        """Paths that differ from HEAD."""
        return frozenset((*self.names("diff", "--name-only", "--no-renames", "HEAD", "--"), *self._new()))

    def files_at(self, commit: str, folder: str) -> tuple[str, ...]:
        """All files below a folder (empty: the root) as of a commit."""
        return self.names("ls-tree", "-r", "--name-only", "--full-tree", commit, *([folder] if folder else []))

    def content(self, commit: str, path: str) -> bytes | None:
        """A file as of a commit; None where it was not there."""
        done = subprocess.run(
            ["git", "-C", str(self.root), "cat-file", "blob", f"{commit}:{path}"], capture_output=True, check=False
        )
        return done.stdout if done.returncode == 0 else None

    @contextlib.contextmanager
    def files_of(self, commit: str) -> Iterator[Path]:
        """A temporary folder with a commit's files, links on the way to it resolved; the repository stays as it is.

        Raises:
            GitError: git failed.
        """
        with tempfile.TemporaryDirectory(prefix="amlstack-commit-") as scratch:
            top = Path(scratch).resolve()
            (top / "tree").mkdir()
            for words in (("read-tree", commit), ("checkout-index", "--all", f"--prefix={top}/tree/")):
                done = _git(self.root, *words, index=top / "index")
                if done.returncode:
                    raise GitError(f"`git {words[0]}` failed: {done.stderr.strip()}")
            yield top / "tree"

    def names(self, verb: str, *words: str) -> tuple[str, ...]:
        """The paths that a command of git lists, from the root on.

        Raises:
            GitError: It failed.
        """
        done = self._ask(verb, "-z", *words)
        if done.returncode:
            raise GitError(f"`git {verb}` failed: {done.stderr.strip()}")
        return tuple(name for name in done.stdout.split("\0") if name)

    def _new(self) -> tuple[str, ...]:
        """Files that are neither tracked nor ignored."""
        return self.names("ls-files", "--others", "--exclude-standard", "--full-name")

    def _ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        return _git(self.root, *words)


def _git(folder: Path, *words: str, index: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    if index is not None:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *words],
            env=environment,
            capture_output=True, text=True, errors="backslashreplace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise GitError(f"git cannot be run: {error.strerror}") from None


_DEEPER: Final = (
    "Fetch more of the history: `fetch-depth: 0` for actions/checkout (2 is enough for a pull request), "
    "`fetchDepth: 0` for the checkout of Azure Pipelines, `git fetch --unshallow` elsewhere"
)


@dataclass(frozen=True, slots=True)
class Base:
    """The commit that a comparison starts from.

    Attributes:
        commit: Its hash.
        words: For people: ``merge base with origin/main``.
    """

    commit: str
    words: str


def find_base(repository: Repository, asked: str | None, environ: Mapping[str, str] | None = None) -> Base:
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
    """True where HEAD is the merge that CI made, and not a commit that a step checked out since."""
    if head != (environ.get("GITHUB_SHA") or environ.get("BUILD_SOURCEVERSION")):
        return False
    ref = environ.get("GITHUB_REF") or environ.get("BUILD_SOURCEBRANCH") or ""
    return ref.startswith("refs/pull/") and ref.endswith("/merge")
