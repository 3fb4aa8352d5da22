"""Files that lie in a code folder and are no part of what a run does: tools leave them there, or a run before.

They are uploaded like everything else, unless an ignore file leaves them out; only the identity of a run takes no
notice of them. Where it is not sure that nothing reads a file, the file counts: a run too many is refused or seen at
preview, a run too few is neither.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_FOLDERS: Final = frozenset(
    (
        *("__pycache__", ".git", ".hg", ".svn", ".vscode", ".idea", ".vs", ".ipynb_checkpoints"),
        *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".pytype", ".hypothesis", ".tox", ".nox", ".eggs"),
        *(".pulumi", ".amlstack"),
    )
)
"""Folders by name, at any depth: compiled modules, version control, editors, and caches of tools that run no code."""

_FILES: Final = re.compile(
    r"""  \.DS_Store | \._.+ | \.AppleDouble | Thumbs\.db | ehthumbs\.db | desktop\.ini   # of operating systems
        | \..+\.sw[a-p] | .+~ | \.\#.+ | \#.+\# | \.nfs[0-9a-f]+                        # swap and backup files
        | \.git | \.gitignore | \.gitattributes | \.gitmodules | \.amlignore            # what git and an upload look at
        | \.coverage
    """,
    re.VERBOSE | re.DOTALL,
)
"""Files by name, at any depth."""

_SETTINGS: Final = re.compile(r"Pulumi(?:\.[^/]+)?\.ya?ml")
"""The settings of stacks, on top of a folder."""

_OF_RUNS: Final = frozenset(["outputs", "logs", "user_logs", "azureml-logs", "mlruns", "wandb", "lightning_logs"])
"""Folders on top that a run writes: Azure ML's own (outputs, logs), and those that trackers make by themselves."""


def litter(paths: Iterable[str]) -> frozenset[str]:
    """Those of the files of a snapshot that are no part of what a run does.

    A ``.pyc`` outside of ``__pycache__`` counts where the ``.py`` of its name is missing: then it is the module. A
    folder of a former run counts when it holds a module that Python could import: then it is a package.

    Args:
        paths: All files of the snapshot, relative, with ``/``.
    """
    names = frozenset(paths)
    packages = {name.partition("/")[0] for name in names if _is_module(name)}
    return frozenset(name for name in names if _is_litter(name, names, packages))


def _is_litter(name: str, names: frozenset[str], packages: set[str]) -> bool:
    *folders, last = name.split("/")
    if not _FOLDERS.isdisjoint(folders) or _FILES.fullmatch(last):
        return True
    if last.endswith((".pyc", ".pyo")):
        return f"{name[:-1]}" in names
    if not folders:
        return _SETTINGS.fullmatch(last) is not None
    return folders[0] in _OF_RUNS and folders[0] not in packages


def _is_module(name: str) -> bool:
    """Whether it can be imported from the top of the folder: no folder on the way has a name that is none in Python."""
    *folders, last = name.split("/")
    return last.endswith((".py", ".so")) and bool(folders) and all(each.isidentifier() for each in folders)
