"""CODEOWNERS of a repository: whoever may change what decides about the checks could also pass them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.cli.gitops import guards
from amlstack.cli.gitops.files import FilledFile

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY: Final = "@ORG/platform"
"""Stands for the team until one is named."""
_PLACES: Final = {"github": Path(".github/CODEOWNERS"), "azure-pipelines": Path(".azure-pipelines/CODEOWNERS")}
_OWNER: Final = re.compile(r"@?[\w.+-]+(/[\w.-]+)?(@[\w.-]+)?")


class NoOwnerError(Exception):
    """What was given names no owner; the message is for the user."""


def file(target: str, root: Path, stack: str, owner: str | None) -> FilledFile | None:
    """The file for a repository; None where the target has none.

    Args:
        target: github, azure-pipelines or kubernetes.
        root: Top folder of the repository.
        stack: Name of the stack that is deployed.
        owner: A team, a user or an address; None for the one that the file has, else one to be filled in.

    Raises:
        NoOwnerError: It is none of these.
    """
    if (path := _PLACES.get(target)) is None:
        return None
    if owner is not None and not _OWNER.fullmatch(owner):
        message = f"`--owners` must be a team or a user of the service, such as {NOBODY}, got `{owner}`"
        raise NoOwnerError(message)
    owner = owner or _present(root / path) or NOBODY
    lines = [f"{pattern:<32} {owner}" for pattern in patterns(root, stack)]
    return FilledFile(path, "\n".join((*_HEAD, *lines, "")), is_start=False)


_HEAD: Final = (
    "# Written by `amlstack gitops add`, which brings it up to date: what decides about the checks themselves.",
    "# Files of rules and job files in Python are those that the stacks' settings name.",
    "",
)


def patterns(root: Path, stack: str) -> tuple[str, ...]:
    """The patterns of CODEOWNERS for all that decides about the checks."""
    named = guards.side(root, stack)
    seen = (each for each in guards.SEEN if each != "Pulumi.review.yaml")
    found = {f"/{each}/" for each in guards.FOLDERS} | {f"/{each}" for each in guards.FILES}
    found |= {f"/{each}" for each in (*seen, "*.py", "Pulumi*.yaml")}
    found |= {f"/{_written(each)}" for each in (*named.policies, *named.scripts) if not each.startswith(("/", "../"))}
    return tuple(sorted(found))


def _written(path: str) -> str:
    """A path as a pattern of CODEOWNERS: a space ends one."""
    return re.sub(r"([ \\*?\[\]#])", r"\\\1", path)


def _present(path: Path) -> str | None:
    """The owner that a file has; None where there is none, or no file."""
    try:
        lines: Iterator[str] = iter(path.read_text("utf-8").splitlines())
    except (OSError, ValueError):
        return None
    return next((line.split()[-1] for line in lines if line.startswith("/") and len(line.split()) > 1), None)
