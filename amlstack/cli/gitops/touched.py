"""The stacks of a repository, and those that a range of commits touches: what their settings lead to, read as text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

from amlstack.base.files import read_regular
from amlstack.base.paths import exists
from amlstack.cli.git import Repository
from amlstack.cli.gitops.guards import SEEN, is_guard
from amlstack.cli.stack_files import stack_names

APART: Final = frozenset({"sandbox", "review"})
"""Stacks that live on a sandbox alone."""
_READ: Final = frozenset({".py", ".yaml", ".yml"})
"""Files that name others: settings, job files, environments, components."""
_PATH: Final = re.compile(r"[\w.-]+(?:/[\w.-]+)+|[\w-]+\.\w+")


def deployed(root: Path) -> tuple[str, ...]:
    """The stacks that are for Azure."""
    return tuple(name for name in stack_names(root) if name not in APART)


def touched(commit: str, since: str) -> tuple[str, ...]:
    """The stacks of a commit that it changes since another one.

    A file touches the stacks whose settings lead to it, else those that lead to something in the nearest folder above
    it; a file of the gate touches all. Nothing is run, so that a pull request cannot choose its own checks.

    Raises:
        GitError: There is no such commit, or git failed.
    """
    repository = Repository.around(Path.cwd())
    repository.require(commit, since)
    changed = repository.names("diff", "--name-only", "--no-renames", since, commit, "--")
    near: dict[str, set[str]] = defaultdict(set)
    with repository.files_of(commit) as folder, repository.files_of(since) as before:
        stacks = deployed(folder)
        for root in (folder, before):
            for stack in stacks:
                for path in _leads_to(root, f"Pulumi.{stack}.yaml"):
                    for each in (path, *PurePosixPath(path).parents):
                        near[str(each)].add(stack)
    near.pop(".", None)
    found: set[str] = set()
    for path in changed:
        steps = map(str, (path, *PurePosixPath(path).parents))
        own = next((near[step] for step in steps if step in near), None)
        if own is None and (is_guard(path, frozenset()) or path.startswith(SEEN)):
            return stacks
        found |= own or set()
    return tuple(sorted(found))


def _leads_to(root: Path, first: str) -> Iterator[str]:
    """The paths that a file names, and those that these name, by their text: from the root on, or from the file's."""
    waiting, seen = [first], {first}
    while waiting:
        path = waiting.pop()
        yield path
        file = root / path
        if file.suffix not in _READ or not file.is_file():
            continue
        for word in set(_PATH.findall(read_regular(file).decode("utf-8", "replace"))):
            for base in (file.parent, root):
                target = (base / word).resolve()
                if target != root and target.is_relative_to(root) and exists(target):
                    name = target.relative_to(root).as_posix()
                    waiting += [name] if name not in seen else []
                    seen.add(name)
