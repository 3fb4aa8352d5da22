"""The logs of a job of any workspace, copied into a folder as they grow: for printing, diagnosis and report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from amlstack.cli.workspace.local_names import RefusedNameError, inside
from amlstack.provider.arm import ArmError, SignedFiles
from amlstack.provider.runs import Runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from amlstack.cli.workspace.place import WorkspacePlace

_PLACES: Final = ("user_logs/", "azureml-logs/")
"""What the job itself writes; the service's own logs are for its people."""
_GONE: Final = frozenset({403, 404})


@dataclass(slots=True)
class JobLogs:
    """One job's logs.

    Attributes:
        place: The workspace's.
        workspace: ARM id of the workspace.
        name: Of the job.
        folder: Where the copies grow; the files have the names that run history gives them.
        whole: Also the service's own logs.
        details: What run history answered last.
        refused: Names that lead out of the folder.
    """

    place: WorkspacePlace
    workspace: str
    name: str
    folder: Path
    whole: bool = False
    details: dict[str, Any] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    _files: SignedFiles | None = None

    def look(self) -> bool:
        """Copies what is new. The addresses are asked for each time, as their signatures end.

        Returns:
            Whether there was something new.

        Raises:
            ArmError: The service does not answer, or refuses.
        """
        self.details = Runs(self.place.arm).plane.details(self.workspace, self.name) or {}
        files = self._files = self._files or SignedFiles(self.place.arm.ca)
        grew = False
        for name, url in sorted((self.details.get("logFiles") or {}).items()):
            if not self.whole and not str(name).startswith(_PLACES):
                continue
            try:
                path = inside(self.folder, str(name))
            except RefusedNameError:
                self.refused.add(str(name))
                continue
            try:
                for part in self._new(files, path, str(url)):
                    grew = grew or bool(part)
            except ArmError as error:
                if error.status not in _GONE:
                    raise
        return grew

    def _new(self, files: SignedFiles, path: Path, url: str) -> Iterator[bytes]:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as copy:
            for part in files.read(url, copy.tell()):
                copy.write(part)
                yield part
