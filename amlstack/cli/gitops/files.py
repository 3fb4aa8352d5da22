"""The files of `deploy/`, with a stack's name filled in: what goes where in a team's repository."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base import paths

if TYPE_CHECKING:
    from collections.abc import Iterator

STANDS_FOR_STACK: Final = re.compile(r"\bprod\b")
"""The word that stands for the stack's name in every file of `deploy/`."""
_NOT_COPIED: Final = frozenset({"README.md"})
"""What says how the files of its folder are used: `gitops add` prints its commands instead."""
_PULUMI_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_KUBERNETES_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,36}[a-z0-9])?")
"""The Stack is called `aml-NAME`, and the operator (2.9) takes 42 characters."""


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of `deploy/` and where its files go.

    Attributes:
        name: Of the folder.
        goes_to: Folder in the repository, from its root.
        is_start: Whether its files are a beginning that the team changes: one that is there stays as it is.
    """

    name: str
    goes_to: str
    is_start: bool = False


_REVIEW: Final = Folder("review", ".", is_start=True)
TARGETS: Final = {
    "github": (Folder("github", ".github/workflows"), _REVIEW),
    "azure-pipelines": (Folder("azure-pipelines", ".azure-pipelines"), _REVIEW),
    "kubernetes": (Folder("kubernetes", "kubernetes"),),
}
"""What can be added, and of which folders it is."""


class NoFilesError(Exception):
    """The files cannot be had, or not for this stack; the message is for the user."""


@dataclass(frozen=True, slots=True)
class FilledFile:
    """A file as it goes into the repository.

    Attributes:
        path: From the repository's root.
        content: Its text.
        is_start: Whether one that is there stays as it is.
    """

    path: Path
    content: str
    is_start: bool


def of(target: str, stack: str) -> tuple[FilledFile, ...]:
    """The files of a target.

    Args:
        target: A key of ``TARGETS``.
        stack: Name of the stack.

    Raises:
        NoFilesError: The installation lacks them, or the stack's name cannot stand where they need it.
    """
    pattern = _KUBERNETES_NAME if target == "kubernetes" else _PULUMI_NAME
    if not pattern.fullmatch(stack):
        rule = "small letters, digits and `-`, 38 at most" if target == "kubernetes" else "letters, digits, `_.-`"
        message = f"`--stack` must be the name of a stack ({rule}), got `{stack}`"
        raise NoFilesError(message)
    return tuple(file for folder in TARGETS[target] for file in _filled(folder, stack))


def commands(target: str, stack: str) -> tuple[str, ...]:
    """The commands that a person types once: the first ``sh`` block of the folder's README; empty without one."""
    readme = shipped() / TARGETS[target][0].name / "README.md"
    if not readme.is_file():
        return ()
    found = re.search(r"^```sh\n(.*?)^```", readme.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    return tuple(STANDS_FOR_STACK.sub(stack, found[1]).splitlines()) if found else ()


def shipped() -> Path:
    """The folder `deploy/`: of the clone, else what an installed package carries.

    Raises:
        NoFilesError: There is neither.
    """
    for folder in (paths.PROJECT / "deploy", paths.PROJECT / "amlstack" / "deploy"):
        if (folder / "github").is_dir():
            return folder
    message = f"this installation of amlstack lacks the folder deploy/ ({paths.PROJECT})"
    raise NoFilesError(message)


def _filled(folder: Folder, stack: str) -> Iterator[FilledFile]:
    root = shipped() / folder.name
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        below = file.relative_to(root)
        if below.name in _NOT_COPIED or "__pycache__" in below.parts:
            continue
        content = STANDS_FOR_STACK.sub(stack, file.read_text("utf-8"))
        yield FilledFile(Path(folder.goes_to) / below, content, folder.is_start)
