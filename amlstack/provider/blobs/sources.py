"""Blobs of a storage account by content, as this machine's earlier uploads left them.

Azure ML gives every upload a container of its own, with a SAS for that container alone. Reading a file of an earlier
upload takes the caller's own right to read blobs (`Storage Blob Data Reader`). The storage checks the content itself
when it copies; what is kept here only says where to look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from amlstack.base import paths
from amlstack.base.kept import Kept

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.snapshot import Snapshot

LEAST_BYTES: Final = 4096
"""A smaller file is sent: a request for a copy is as long."""
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_UPLOADS: Final = 8
_VERSION: Final = "1"


@dataclass(frozen=True, slots=True)
class UploadSources:
    """The earlier uploads into one storage account.

    Attributes:
        account: Its address, as the workspace gives those of containers.
        kept: Where they are kept.
    """

    account: str
    kept: Kept

    @classmethod
    def of(cls, container: str) -> UploadSources:
        """Those of the account that a container is in; ``container`` is its address without a signature."""
        return cls(container.rstrip("/").rpartition("/")[0], Kept(paths.cache() / "uploads", _VERSION, _MOST_BYTES))

    def read(self) -> dict[str, str]:
        """The address of a blob, without a signature, by the SHA-256 of its content; of two, the newer."""
        found: dict[str, str] = {}
        for folder, names in self._uploads():
            found |= {digest: f"{folder}/{quote(name)}" for digest, name in names.items()}
        return found

    def add(self, folder: str, snapshot: Snapshot) -> None:
        """Keeps where the files of an upload are; the oldest uploads are forgotten.

        Args:
            folder: Address of the files' folder, without a signature.
            snapshot: The files.
        """
        names = {snapshot.digests[file.relative]: file.relative for file in snapshot.files if file.size >= LEAST_BYTES}
        if names:
            self.kept.write(self.account, [*self._uploads()[1 - _MOST_UPLOADS :], [folder, names]])

    def _uploads(self) -> list[tuple[str, Mapping[str, str]]]:
        """From the oldest to the newest."""
        return self.kept.read(self.account) or []
