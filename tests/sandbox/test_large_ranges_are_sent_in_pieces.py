"""A blob's bytes are never all in memory: what is longer than a few megabytes is read as it is sent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request

from amlstack.sandbox.planes.blobs import content

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any

    from amlstack.sandbox.store.blobs import Blob
    from amlstack.sandbox.store.store import Store

SIZE = 3 * content.AT_ONCE


@pytest.fixture
def blob(store: Store) -> Blob:
    """Numbers of its places in steps of 4 KiB, and nothing between."""
    fresh = store.blobs.fresh()
    with fresh.open("wb") as stream:
        for place in range(0, SIZE, 4096):
            stream.seek(place)
            stream.write(f"{place:08}".encode())
        stream.truncate(SIZE)
    return store.blobs.put("account", "container", "large", fresh)


def sent(blob: Blob, wanted: str) -> list[MutableMapping[str, Any]]:
    """The messages that a server is given for a GET with this range."""
    scope = {"type": "http", "method": "GET", "headers": [(b"x-ms-range", wanted.encode())]}
    answer, messages = content.download(Request(scope), blob), []

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    async def receive() -> dict[str, str]:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    asyncio.run(answer(scope, receive, send))
    return messages


@pytest.mark.parametrize("first", [0, 4096, content.AT_ONCE - 1])
def test_a_long_range_is_sent_whole_in_pieces(blob: Blob, first: int) -> None:
    whole = blob.path.read_bytes()

    head, *bodies = sent(blob, f"bytes={first}-{SIZE - 2}")

    assert head["status"] == 206
    assert dict(head["headers"])[b"content-length"] == str(SIZE - 1 - first).encode()
    assert b"".join(each["body"] for each in bodies) == whole[first : SIZE - 1]
    assert max(len(each["body"]) for each in bodies) == content.PIECE


def test_a_short_range_is_sent_at_once(blob: Blob) -> None:
    head, body = sent(blob, "bytes=4096-4103")
    assert (head["status"], body["body"]) == (206, b"00004096")


def test_pieces_of_a_file_that_is_replaced_are_of_the_old_one(store: Store, blob: Blob) -> None:
    whole = blob.path.read_bytes()
    pieces = content.pieces(blob.path.open("rb"), SIZE)
    first = next(pieces)
    store.blobs.delete(blob)
    assert first + b"".join(pieces) == whole
