"""Files of this machine whose hash a resource was planned with, read once more before they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.findings import errors
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from amlstack.snapshot import Snapshot


def unchanged(found: Snapshot, digest: str, what: str) -> Snapshot:
    """The files, when they still have the content that was planned.

    Args:
        found: The files as they are now.
        digest: The hash that was planned.
        what: The files, for the message.

    Raises:
        ProviderError: Something is wrong with the files, or they have changed.
    """
    if wrong := errors(found.findings):
        raise ProviderError("; ".join(str(finding) for finding in wrong))
    if found.hash != digest:
        raise ProviderError(
            f"{what} has changed since it was hashed ({digest[:10]}… is now {found.hash[:10]}…). "
            "Run `up` again while nothing writes to it",
            ErrorCode.ABORTED,
        )
    return found
