"""The path of the author's own code, of which each node runs a copy: messages name the file that a person edits.

A file in the job's folder holds it, by step (empty for a job that is no pipeline): folders in which the author's files
lie under the same relative names. The trials of a sweep and the steps of a pipeline look into the folder of the
outermost job. A job that was submitted by another client has none; its copies are named then.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from amlstack.base.files import write_whole
from amlstack.sandbox.files.substitutes import outermost
from amlstack.sandbox.store.places import job_folder, private

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from amlstack.sandbox.store.store import JobRow, Store

FILE = "code.json"


@dataclass(frozen=True, slots=True)
class CodeCopies:
    """The copies of a job's code.

    Attributes:
        job: The job's folder, in which they lie.
        roots: Where the author's files are.
    """

    job: Path
    roots: tuple[Path, ...] = ()

    def authors(self, text: str) -> str:
        """A text in which each path of a copied file is that of the author's, as seen from here where that is short."""
        if not self.roots or str(self.job) not in text:
            return text
        return re.sub(rf"{re.escape(str(self.job))}/nodes/\d+/wd/(?P<name>[^\s\"':,()]+)", self._authors, text)

    def _authors(self, found: re.Match[str]) -> str:
        for root in self.roots:
            if (file := root / found["name"]).is_file():
                here = Path.cwd()
                return str(file.relative_to(here) if file.is_relative_to(here) else file)
        return found[0]


def write(home: Path, job: str, by_step: Mapping[str, Sequence[Path]]) -> None:
    """Notes where the code of a job comes from; a job without code gets no file.

    Args:
        home: The sandbox's home.
        job: The job's name.
        by_step: From step to folders of this machine.
    """
    data = {step: [str(path.resolve()) for path in roots] for step, roots in by_step.items() if roots}
    if data:
        write_whole(private(job_folder(home, job)) / FILE, json.dumps(data, indent=1) + "\n")


def of(store: Store, job: JobRow) -> CodeCopies:
    """The copies of one job's code; of a trial or step as its outermost job was submitted."""
    root, step = outermost(store, job)
    return CodeCopies(job_folder(store.home, job.id), _read(job_folder(store.home, root), step))


def _read(folder: Path, step: str) -> tuple[Path, ...]:
    try:
        data = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return ()
    found = data.get(step) or data.get("") or ()
    return tuple(Path(root) for root in dict.fromkeys(found))
