"""``amlstack gitops add``: the files of a target, written into the repository of the working folder, or none."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amlstack.base.files import write_whole
from amlstack.cli.console import say
from amlstack.cli.gitops import files, owners

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amlstack.cli.gitops.files import FilledFile

USAGE: Final = 2
_APART: Final = frozenset({"sandbox", "review"})
"""Stacks that live on a sandbox alone."""


@dataclass(frozen=True, slots=True)
class AskedAdd:
    """What a person asked for.

    Attributes:
        target: A key of ``files.TARGETS``.
        stack: Name of the real stack; None for the only one that the repository has.
        force: Whether files that differ are overwritten.
        dry_run: Whether nothing is written.
        owners: Who approves changes of the checks; None for whom CODEOWNERS names already.
    """

    target: str
    stack: str | None
    force: bool = False
    dry_run: bool = False
    owners: str | None = None


def run(asked: AskedAdd) -> int:
    """Writes the files, and prints what remains to be done.

    Returns:
        0 written, or as they should be; 1 where a file was edited and nothing was written; 2 for wrong use.
    """
    root = _repository(Path.cwd())
    if root is None:
        return _ended("This folder is in no git repository: `git init` makes one", USAGE)
    stack = asked.stack or _only_stack(root)
    if stack is None:
        known = ", ".join(f"`{name}`" for name in _stacks(root)) or "none"
        return _ended(f"Name the stack that is deployed with `--stack NAME`; this repository has {known}", USAGE)
    try:
        found = files.of(asked.target, stack)
        commands = files.commands(asked.target, stack)
        owned = owners.file(asked.target, root, stack, asked.owners)
    except (files.NoFilesError, owners.NoOwnerError) as error:
        return _ended(str(error), USAGE)
    if not found:
        return _ended(f"This version of amlstack has no files for `{asked.target}`", USAGE)
    found = found if owned is None else (*found, owned)
    new, edited, same = _sorted(root, found)
    if edited and not asked.force:
        for file in edited:
            say(_difference(root, file), nl=False)
        names = ", ".join(str(file.path) for file in edited)
        return _ended(f"nothing was written, as what is there differs: {names}. `--force` overwrites it", 1)
    written = sorted((*new, *edited), key=lambda file: file.path)
    if not asked.dry_run:
        for file in written:
            _write(root / file.path, file.content)
    notes = [*_missing(root, stack)]
    if owned is not None and owners.NOBODY in owned.content:
        notes.append(f"note: {owned.path} has {owners.NOBODY}: name who approves changes of the checks with `--owners`")
    say("\n".join(_printed(written, same, notes, commands, dry_run=asked.dry_run)))
    return 0


def _printed(
    written: Sequence[FilledFile],
    same: Sequence[FilledFile],
    notes: Sequence[str],
    commands: Sequence[str],
    *,
    dry_run: bool,
) -> Iterator[str]:
    yield from (f"{'would write' if dry_run else 'wrote'} {file.path}" for file in written)
    yield from (f"kept {file.path}" for file in same)
    yield from notes
    if commands:
        yield "\nWhat must be set once (docs/gitops.md explains it):\n"
        yield from (f"  {line}".rstrip() for line in commands)


def _sorted(
    root: Path, found: Sequence[FilledFile]
) -> tuple[tuple[FilledFile, ...], tuple[FilledFile, ...], tuple[FilledFile, ...]]:
    """Files that are not there, that differ, and that stay."""
    new: list[FilledFile] = []
    edited: list[FilledFile] = []
    same: list[FilledFile] = []
    for file in found:
        there = _content(root / file.path)
        (new if there is None else same if file.is_start or there == file.content else edited).append(file)
    return tuple(new), tuple(edited), tuple(same)


def _content(path: Path) -> str | None:
    """None where there is nothing; what is no text counts as another text."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None
    except OSError:
        return ""


def _difference(root: Path, file: FilledFile) -> str:
    there = (_content(root / file.path) or "").splitlines(keepends=True)
    ours = file.content.splitlines(keepends=True)
    return "".join(difflib.unified_diff(there, ours, f"{file.path} (yours)", f"{file.path} (amlstack's)"))


def _write(path: Path, content: str) -> None:
    """The whole file or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def _missing(root: Path, stack: str) -> Iterator[str]:
    """What the files expect of the repository and is not there."""
    if not (root / "Pulumi.yaml").is_file():
        yield "note: this repository has no Pulumi.yaml; the files expect amlstack's project here (docs/gitops.md)"
    elif not (root / f"Pulumi.{stack}.yaml").is_file():
        yield f"note: this repository has no Pulumi.{stack}.yaml, the settings of the stack `{stack}` (docs/azure.md)"


def _repository(folder: Path) -> Path | None:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), None)


def _stacks(root: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml")))


def _only_stack(root: Path) -> str | None:
    found = [name for name in _stacks(root) if name not in _APART]
    return found[0] if len(found) == 1 else None


def _ended(message: str, code: int) -> int:
    say(message, err=True)
    return code
