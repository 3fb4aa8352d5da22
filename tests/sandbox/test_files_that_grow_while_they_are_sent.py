"""Logs of running ranks: a client gets as many bytes as it was announced, whatever is written meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.sandbox.service.app import GrowingFile

if TYPE_CHECKING:
    from pathlib import Path

LINES = b"step 1\nstep 2\n"


@pytest.mark.parametrize(
    ("ranges", "status", "body"),
    [(None, 200, LINES), (b"bytes=7-", 206, LINES[7:]), (b"bytes=0-5", 206, LINES[:6])],
    ids=["whole", "from a byte on", "between two bytes"],
)
def test_a_file_that_grows_is_sent_as_long_as_it_was_announced(
    tmp_path: Path, ranges: bytes | None, status: int, body: bytes
) -> None:
    log = tmp_path / "std_log_process_00.txt"
    log.write_bytes(LINES)
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.start":
            with log.open("ab") as file:
                file.write(b"step 3\n")

    async def receive() -> Any:
        return await asyncio.Event().wait()

    headers = [(b"range", ranges)] if ranges else []
    scope = {"type": "http", "method": "GET", "headers": headers, "asgi": {"spec_version": "2.4"}}
    asyncio.run(GrowingFile(log, media_type="text/plain")(scope, receive, send))

    start, *rest = sent
    assert start["status"] == status
    assert int(dict(start["headers"])[b"content-length"]) == len(body)
    assert b"".join(message["body"] for message in rest) == body
