"""The record of what one of Microsoft's clients asked for in its test, held against the one that the page shows."""

from __future__ import annotations

import datetime as dt
import json
import os
from typing import TYPE_CHECKING

from tools.docs.witnesses import FOLDER, operation

if TYPE_CHECKING:
    from collections.abc import Iterable

AGAIN = "RECORD_WITNESSES=1 pytest of this file writes it anew"


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
