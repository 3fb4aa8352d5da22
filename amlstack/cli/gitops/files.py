"""Files of a repository's CI, and the verb that adds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.cli.console import difference, end, ended_by, say
from amlstack.cli.gitops import guards, touched
from amlstack.cli.jobfiles.formats import repository
from amlstack.cli.stack_files import project_name, stack_names

STANDS_FOR_STACK: Final = re.compile(r"\bprod\b")
"""The word that stands for the stack's name in every file of `deploy/`."""
_NOT_COPIED: Final = frozenset({"README.md"})
"""The page that says how the files of its folder are used: `gitops add` prints its commands instead."""
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
_STATE: Final = Folder("state", "deploy/state", is_start=True)
TARGETS: Final = {
    "github": (Folder("github", ".github/workflows"), _REVIEW, _STATE),
    "azure-pipelines": (Folder("azure-pipelines", ".azure-pipelines"), _REVIEW, _STATE),
    "kubernetes": (Folder("kubernetes", "kubernetes"), _STATE),
}
"""The parts that can be added, and the folders of each."""


class NoFilesError(Exception):
    """The files cannot be had, or not for this stack or owner; the message is for the user."""


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


def files_of(target: str, stack: str, deploy: Path | None = None) -> tuple[FilledFile, ...]:
    """The files of a target.

    Args:
        target: A key of ``TARGETS``.
        stack: Name of the stack.
        deploy: Their folder in another version; None for this one's.

    Raises:
        NoFilesError: The installation lacks them, or the stack's name cannot stand where they need it.
    """
    pattern = _KUBERNETES_NAME if target == "kubernetes" else _PULUMI_NAME
    if not pattern.fullmatch(stack):
        rule = "small letters, digits and `-`, 38 at most" if target == "kubernetes" else "letters, digits, `_.-`"
        raise NoFilesError(f"`--stack` must be the name of a stack ({rule}), got `{stack}`")
    return tuple(file for folder in TARGETS[target] for file in _filled(folder, stack, deploy))


def first_commands(target: str, stack: str) -> tuple[str, ...]:
    """The commands that a person types once: the first ``sh`` block of the folder's README; empty without one."""
    readme = paths.shipped("deploy") / TARGETS[target][0].name / "README.md"
    if not readme.is_file():
        return ()
    found = re.search(r"^```sh\n(.*?)^```", readme.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    project = project_name() if (paths.PROJECT / "Pulumi.yaml").is_file() else "amlstack"
    text = found[1].replace("rg-amlstack-", f"rg-{project}-") if found else ""
    return tuple(STANDS_FOR_STACK.sub(stack, text).splitlines())


def _filled(folder: Folder, stack: str, deploy: Path | None = None) -> Iterator[FilledFile]:
    """The files; one that names its stack lies in a folder of the stack's name, so that each stack has its own."""
    root = (deploy or paths.shipped("deploy")) / folder.name
    for file in sorted(path for path in root.rglob("*") if path.is_file()):
        below = file.relative_to(root)
        if below.name in _NOT_COPIED or "__pycache__" in below.parts:
            continue
        content, own = STANDS_FOR_STACK.subn(stack, file.read_text("utf-8"))
        yield FilledFile(Path(folder.goes_to) / (stack if own else "") / below, content, folder.is_start)


NOBODY: Final = "@ORG/platform"
"""Stands for the team until one is named."""
_PLACES: Final = {"github": Path(".github/CODEOWNERS"), "azure-pipelines": Path(".azure-pipelines/CODEOWNERS")}
_OWNER: Final = re.compile(r"@?[\w.+-]+(/[\w.-]+)?(@[\w.-]+)?")


def owners_file(target: str, root: Path, stack: str, owner: str | None) -> FilledFile | None:
    """The file for a repository; None where the target has none.

    Args:
        target: github, azure-pipelines or kubernetes.
        root: Top folder of the repository.
        stack: Name of the stack that is deployed.
        owner: A team, a user or an address; None for the one that the file has, else one to be filled in.

    Raises:
        NoFilesError: It is none of these.
    """
    if (path := _PLACES.get(target)) is None:
        return None
    if owner is not None and not _OWNER.fullmatch(owner):
        raise NoFilesError(f"`--owners` must be a team or a user of the service, such as {NOBODY}, got `{owner}`")
    there = _content(root / path) if owner is None else None
    owner = owner or _present(root / path) or NOBODY
    known = {line.split()[0] for line in (there or "").splitlines() if line.strip()}
    lines = [f"{pattern:<32} {owner}" for pattern in patterns(root, stack) if pattern not in known]
    head = _HEAD if there is None else there.splitlines()
    return FilledFile(path, "\n".join((*head, *lines, "")), is_start=False)


_HEAD: Final = (
    "# Written by `amlstack gitops add`, which adds what is missing: what decides about the checks themselves.",
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


def run(target: str, stack: str | None, *, force: bool, dry_run: bool, owners: str | None) -> None:
    """Writes the files, and prints what remains to be done.

    Args:
        target: A key of ``TARGETS``.
        stack: Name of the real stack; None for the only one that the repository has.
        force: Whether files that differ are overwritten.
        dry_run: Whether nothing is written.
        owners: Who approves changes of the checks; None for whom CODEOWNERS names already.

    Raises:
        typer.Exit: With 1 where a file was edited and nothing was written, with 2 for wrong use.
    """
    if (root := repository()) is None:
        end("This folder is in no git repository: `git init` makes one")
    deployed = touched.deployed(root)
    if not stack and len(deployed) != 1:
        known = ", ".join(f"`{name}`" for name in stack_names(root)) or "none"
        end(f"Name the stack that is deployed with `--stack NAME`; this repository has {known}")
    stack = stack or deployed[0]
    with ended_by(NoFilesError):
        found = files_of(target, stack)
        commands = first_commands(target, stack)
        owned = owners_file(target, root, stack, owners)
    if not found:
        end(f"This version of amlstack has no files for `{target}`")
    texts = {file: _content(root / file.path) for file in (found if owned is None else (*found, owned))}
    same = [file for file, text in texts.items() if text is not None and (file.is_start or text == file.content)]
    written = sorted(texts.keys() - same, key=lambda file: file.path)
    # A file that gets lines at its end, and keeps all that it has, was not edited.
    edited = [
        file
        for file, text in texts.items()
        if file not in same and text is not None and not (text and file.content.startswith(text))
    ]
    if edited and not force:
        for file in edited:
            say(
                difference(texts[file] or "", file.content, f"{file.path} (yours)", f"{file.path} (amlstack's)"),
                nl=False,
            )
        names = ", ".join(str(file.path) for file in edited)
        end(f"nothing was written, as what is there differs: {names}. `--force` overwrites it", 1)
    for file in written if not dry_run else ():
        write_whole(root / file.path, file.content, folders=True)
    lines = [f"{'would write' if dry_run else 'wrote'} {file.path}" for file in written]
    lines += [*(f"kept {file.path}" for file in same), *_missing(root, stack)]
    if owned is not None and NOBODY in owned.content:
        lines.append(f"note: {owned.path} has {NOBODY}: name who approves changes of the checks with `--owners`")
    if commands:
        lines.append("\nWhat must be set once (docs/how-to/gitops.md explains it):\n")
        lines += [f"  {line}".rstrip() for line in commands]
    say("\n".join(lines))


def _content(path: Path) -> str | None:
    """None where there is nothing; what is no text counts as another text."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _missing(root: Path, stack: str) -> Iterator[str]:
    """The expectations of the files that the repository does not meet."""
    if not (root / "Pulumi.yaml").is_file():
        yield "note: this repository has no Pulumi.yaml: the files expect amlstack's project (docs/how-to/gitops.md)"
    elif not (root / f"Pulumi.{stack}.yaml").is_file():
        yield f"note: this repository has no Pulumi.{stack}.yaml, the stack's settings (docs/how-to/azure.md)"
