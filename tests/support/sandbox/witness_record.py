"""The record of what one of Microsoft's clients asked for in its test, held against the one that the page shows."""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from amlstack.sandbox import kinds
from amlstack.sandbox.protocol.addresses import parse

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = PROJECT / "tests" / "support" / "sandbox"
RECORDS = ("clients.json", "other_clients.json")
"""Files of what was recorded, one for each test of clients."""
AGAIN = "RECORD_WITNESSES=1 pytest of this file writes it anew"


def operation(method: str, path: str) -> str | None:
    """The operation of a request: ``GET <type>``, ``list <type>``, ``POST <type>/<action>``; None for no type."""
    place = parse(path)
    if method == "POST":
        above, _, action = path.rstrip("/").rpartition("/")
        place = parse(above)
        kind = None if place is None or place.collection else kinds.find(place.type)
        known = None if kind is None else next((one for one in kind.actions if one.lower() == action.lower()), None)
        return None if kind is None or known is None else f"POST {kind.type}/{known}"
    kind = None if place is None else kinds.find(place.type)
    if place is None or kind is None:
        return None
    return f"{'list' if method == 'GET' and place.collection else method} {kind.type}"


def check(name: str, client: str, test: str, requests: Iterable[tuple[str, str]]) -> None:
    """Fails unless a record of that name says what was asked; writes it where `RECORD_WITNESSES` is set.

    Args:
        name: A file of `RECORDS`.
        client: Packages with their versions.
        test: The test's file, from the project's folder.
        requests: Method and path of each request.
    """
    asked = [(method, path) for method, path in requests]
    operations = {operation(*one) for one in asked} - {None}
    record = {
        "client": client,
        "test": test,
        "recorded": dt.datetime.now(dt.UTC).date().isoformat(),
        "operations": sorted(one for one in operations if one),
    }
    file = FOLDER / name
    if os.environ.get("RECORD_WITNESSES"):
        file.write_text(json.dumps(record, indent=2) + "\n")
    known = json.loads(file.read_text())
    assert {**known, "recorded": ""} == {**record, "recorded": ""}, AGAIN
