"""What torch's watchdog of NCCL says: which collective of which group it waited for, how far its rank had come."""

from __future__ import annotations

import re
from typing import Any

_GROUP = re.compile(r"\[PG (?:ID )?(?P<id>\d+)(?: PG GUID (?P<guid>\w+))?")
_WORK = re.compile(r"SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+)(?:, NumelIn=(?P<size>\d+))?")
_REACHED = re.compile(
    r"last enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    re.IGNORECASE,
)


def facts(text: str) -> dict[str, Any]:
    """Pieces of a line: ``group``, ``seq``, ``op``, ``size``, ``enqueued``, ``completed``, as far as it has them."""
    found: dict[str, Any] = {}
    if group := _GROUP.search(text):
        found["group"] = f"{group['id']}/{group['guid'] or ''}"
    if work := _WORK.search(text):
        found |= {"seq": int(work["seq"]), "op": work["op"], "size": work["size"] or ""}
    if reached := _REACHED.search(text):
        found |= {"enqueued": int(reached["enqueued"]), "completed": int(reached["completed"])}
    return found
