"""A team's repository: the files that `amlstack init` writes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack import __version__
from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.base.text import did_you_mean
from amlstack.catalog import clock, regions, sizes

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}[a-z0-9]")
"""Names that a Python project, a Pulumi project and a workspace of Azure ML can have alike."""
_CODE: Final = ("review/review/train.py", "workloads/train/train.py")
"""The code of the first job: what a review stack trains too."""


@dataclass(frozen=True, slots=True)
class Choices:
    """The answers that the files depend on.

    Attributes:
        name: Name of the project.
        workspace: Name of the workspace, new or existing.
        location: Its region.
        size: VM size of the cluster.
        nodes: The most nodes of the cluster, which the first job uses.
        requirement: amlstack as pyproject.toml names it.
    """

    name: str
    workspace: str
    location: str
    size: str
    nodes: int
    requirement: str


def faults(choices: Choices) -> Iterator[str]:
    """A sentence for each answer that cannot be; the rules of a deployment are `amlstack check --stack`'s."""
    for option, given in (("--name", choices.name), ("--workspace", choices.workspace)):
        if not NAME.fullmatch(given):
            yield f"`{option}` must be 2 to 32 small letters, digits and `-`, and begin with a letter, got `{given}`"
    if (found := regions.finding(choices.location, "--location")) is not None:
        yield str(found)
    size = sizes.get(choices.size)
    if size is None:
        yield f"`{choices.size}` is no known size. {did_you_mean(choices.size, sizes.near(choices.size))}".strip()
    elif (other := sizes.nearest_compliant(size, clock.today())) is not None and other.name != size.name:
        yield f"{size.name} is retired, or does not have the InfiniBand that several nodes need: take {other.name}"
    if choices.nodes < 1:
        yield f"`--nodes` must be 1 or more, got {choices.nodes}"


def requirement() -> str:
    """This installation as a requirement: the wheel, folder or commit that it is from, else its version."""
    found = metadata.distribution("amlstack").read_text("direct_url.json")
    if not found:
        return f"amlstack=={__version__}"
    origin = json.loads(found)
    if (version := origin.get("vcs_info")) is not None:
        return f"amlstack @ {version['vcs']}+{origin['url']}@{version['commit_id']}"
    return f"amlstack @ {origin['url']}"


def contents(choices: Choices) -> Iterator[tuple[Path, str]]:
    """Path in the repository and content of each file."""
    root = paths.shipped("deploy")
    values = {f"@{name}@": str(getattr(choices, name)) for name in Choices.__dataclass_fields__}
    for file in paths.files_below(root / "team"):
        text = file.read_text("utf-8")
        for token, value in values.items():
            text = text.replace(token, value)
        yield Path(str(file.relative_to(root / "team")).removesuffix(".in")), text
    yield Path(_CODE[1]), (root / _CODE[0]).read_text("utf-8")


def write(folder: Path, choices: Choices, *, dry_run: bool = False) -> Iterator[str]:
    """Writes the files that are not there, and makes a git repository where there is none; yields what it did."""
    for path, content in contents(choices):
        target = folder / path
        if target.exists():
            yield f"kept {path}" + ("" if target.read_text("utf-8", "replace") == content else ", which is yours")
            continue
        if not dry_run:
            write_whole(target, content, folders=True)
        yield f"{'would write' if dry_run else 'wrote'} {path}"
    if not dry_run and shutil.which("git") and not any((each / ".git").exists() for each in (folder, *folder.parents)):
        subprocess.run(["git", "init", "--quiet", "--initial-branch", "main", str(folder)], check=False)
        yield "made a git repository"
