"""Conditional requests: what is done only to the state of a resource that the client has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.sandbox.arm.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amlstack.sandbox.store.store import ResourceRow


def check(headers: Mapping[str, str], before: ResourceRow | None) -> None:
    """Judges ``If-Match`` and ``If-None-Match`` of a write.

    Args:
        headers: Of the request, by names in lower-case letters.
        before: The resource as it is now; None when there is none.

    Raises:
        Refused: 412 PreconditionFailed.
    """
    wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
    seen = "there is none" if before is None else f'it is "{before.etag}" now'
    if wanted is not None and (before is None or not _names(wanted, before)):
        message = f"The condition 'If-Match: {wanted}' is not met: {seen}. Get the resource again and repeat."
        raise Refused(412, "PreconditionFailed", message)
    if unwanted is not None and before is not None and _names(unwanted, before):
        message = f"The condition 'If-None-Match: {unwanted}' is not met: {seen}."
        raise Refused(412, "PreconditionFailed", message)


def _names(tags: str, row: ResourceRow) -> bool:
    return any(tag.strip().removeprefix("W/").strip('"') in {"*", row.etag} for tag in tags.split(","))
