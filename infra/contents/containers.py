"""The containers and shares of a stack's datastores: which of them the stack creates, and what is wrong with those."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from amlstack.base.findings import Finding, Level
from infra.contents.datastores import is_created

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.settings import Datastore, Reading, Settings

_NAME: Final = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(-[a-z0-9]+)*\Z")
"""Of containers and shares alike (learn.microsoft.com/rest/api/storageservices, 'Naming and Referencing Containers,
Blobs, and Metadata' and '… Shares, Directories, Files, and Metadata', 2026-11-22)."""
_WORDS: Final = {"blob": "container", "adls_gen2": "file system", "file": "share"}


def check(reading: Reading, settings: Settings) -> Iterator[Finding]:
    """Containers that cannot be created as they are declared, and those that a person may wait for in vain.

    Args:
        reading: Where things were written, and what of it is made up.
        settings: The settings, mended.
    """
    for index, spec in enumerate(settings.datastores):
        if reading.doubts("datastores", index) or reading.doubts("workspace"):
            continue
        key, finding = _judged(spec, created=is_created(spec, settings))
        if finding is not None:
            yield reading.about(("datastores", index, key), finding)


def _judged(spec: Datastore, *, created: bool) -> tuple[str, Finding | None]:
    """The key that a finding is about, and the finding."""
    word = _WORDS[spec.kind]
    if created and spec.kind == "adls_gen2":
        return "kind", Finding(
            "datastore-without-namespace",
            "",
            f"`{spec.name}` is of the kind adls_gen2, in the storage account of the workspace",
            "A file system needs an account with hierarchical namespace, and Azure ML takes none such as the account "
            "of a workspace",
            "Write kind: blob, or name another account by `account`",
        )
    if created and not _NAME.match(spec.container):
        return "container", Finding(
            "datastore-container-name",
            "",
            f"`{spec.container}` is no name for a {word}",
            "The stack creates it, and a name has 3 to 63 lower-case letters, digits and single hyphens, none at "
            "either end",
        )
    if spec.account is None and not created:
        return "container", Finding(
            "datastore-container-exists",
            "",
            f"The {word} `{spec.container}` is expected in the storage account of the workspace",
            f"The stack creates no {word} in an account that it does not create: it names the one that is there",
            f"Create it before a job reads or writes there, if it is not there yet: {_command(spec)}",
            Level.INFO,
        )
    return "", None


def _command(spec: Datastore) -> str:
    """How to create a container in an account that exists, without a key."""
    if spec.kind == "file":
        return f"az storage share-rm create --storage-account ACCOUNT --name {spec.container}"
    return f"az storage container create --account-name ACCOUNT --auth-mode login --name {spec.container}"
