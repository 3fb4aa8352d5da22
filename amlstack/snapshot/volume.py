"""How much a snapshot sends: large files among the code are copied to every node of every run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amlstack.snapshot.walk import File

LARGE_FILE: Final = 100 * 1000**2
"""Bytes. From 100 MB on azure-ai-ml, too, warns of a file that it uploads."""
LARGE_FOLDER: Final = 300 * 1000**2
"""Bytes. The first SDK refused larger snapshots; nothing but code and its small data comes near it."""
_MOST: Final = 5
"""Files that are named."""
_RULE: Final = "Code is uploaded, and copied to every node before its ranks start"
_REMEDY: Final = "List it in .amlignore; data is an input of the job"


def findings(files: Sequence[File]) -> Iterator[Finding]:
    """Warnings on large files, the largest first, and on many that are large together."""
    large = sorted((file for file in files if file.size >= LARGE_FILE), key=lambda file: -file.size)
    for file in large[:_MOST]:
        seen = f"{file.relative} is a file of {shown(file.size)}"
        yield Finding("large-file-in-code", "", seen, _RULE, _REMEDY, Level.WARNING, file=file.relative)
    total = sum(file.size for file in files)
    rest = total - sum(file.size for file in large[:_MOST])
    if rest >= LARGE_FOLDER:
        seen = f"The code folder sends {len(files):,} files of {shown(total)} together"
        remedy = "List in .amlignore what no run needs; data is an input of the job"
        yield Finding("large-code-folder", "", seen, _RULE, remedy, Level.WARNING, file=".")


def shown(size: int) -> str:
    """A size in bytes as people write it: ``3.1 kB``, ``400 MB``."""
    value, unit = float(size), "bytes"
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if value < 999.5 or unit == "TB":
            break
        value /= 1000
    return f"{value:.3g} {unit}" if unit != "bytes" else f"{size} byte{'' if size == 1 else 's'}"
