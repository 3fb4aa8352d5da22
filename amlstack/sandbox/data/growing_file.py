"""A file that is written while it is read, as the log of a running rank is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import FileResponse

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send


class GrowingFile(FileResponse):
    """Sends as many bytes as its headers announce.

    Starlette announces the length that the file has at first and then sends it to its end. What is written meanwhile
    would follow the announced bytes, and a client takes that for a broken download.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a range of it likewise."""
        left = 0

        async def within(message: Message) -> None:
            nonlocal left
            if message["type"] == "http.response.start":
                left = int(dict(message["headers"])[b"content-length"])
            elif message["type"] == "http.response.body":
                body = message.get("body", b"")[:left]
                left -= len(body)
                message = {**message, "body": body}
            await send(message)

        await super().__call__(scope, receive, within)
