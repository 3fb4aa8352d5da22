"""Faults of the service on request: between the port and the resource manager, as ``faults.json`` in its folder says.

The file is a list of rules; each is
``{"fault": NAME, "method": "PUT", "path": REGEX}``, with ``"times"`` (for each path; without it as long as the rule is
there), ``"skip"`` (so many of each path pass first) and ``"headers"``. The first rule that fits a request counts.
What was done is a line of ``faults.log``: fault, method, path. A request that is held has two lines: that it came, and
whether it was let go (its rule is gone) or its client hung up, in which case it has not taken effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from amlstack.sandbox.store.folders import folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, MutableMapping
    from pathlib import Path

    from amlstack.sandbox.protocol.kind import KindContext

    Message = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    AsgiApp = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

THROTTLED, BROKEN, QUOTA = "429", "500", "quota"
BROKEN_STORED, CUT, CUT_STORED, OPERATION = "500 stored", "cut", "cut stored", "operation failed"
ANSWERS: Final[Mapping[str, tuple[int, str, str]]] = {
    THROTTLED: (429, "TooManyRequests", "The request was throttled."),
    BROKEN: (500, "InternalServerError", "The service failed."),
    BROKEN_STORED: (500, "InternalServerError", "The service failed."),
    QUOTA: (409, "QuotaExceeded", "The operation would exceed the quota that the subscription has in this region."),
}
"""Fault → the answer in place of the service's; a cut connection has none."""
STORED: Final = frozenset({BROKEN_STORED, CUT_STORED})
"""Faults after which the request has taken effect."""
ALL: Final = (THROTTLED, BROKEN, BROKEN_STORED, CUT, CUT_STORED, OPERATION, QUOTA)
HELD, LET_GO, HUNG_UP = "held", "held: let go", "held: hung up"
"""No answer until its rule is gone; and the two ends of that."""
_LOOK: Final = 0.02
"""Seconds between two looks at the rules while a request is held."""
_FAILED: Final = "InternalOperationError: The operation was accepted and then failed."


class InjectedFaults:
    """An ASGI application in front of another one."""

    def __init__(self, app: AsgiApp, context: KindContext) -> None:
        self._app, self._context = app, context
        self._folder = folder(context.store.home)
        self._known: tuple[int, list[Mapping[str, Any]]] = (0, [])
        self._seen: Counter[tuple[int, str]] = Counter()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """See ASGI."""
        rules = self._rules() if scope["type"] == "http" else []
        found = self._fitting(rules, scope) if rules else None
        if found is None:
            await self._app(scope, receive, send)
            return
        number, rule = found
        fault, path = rule["fault"], _path(scope)
        if fault == OPERATION:
            await self._app(scope, receive, send)
            if self._fail_operation(path):
                self._note(number, fault, scope)
            return
        self._note(number, fault, scope)
        if fault == HELD:
            await self._hold(number, rule, scope, receive, send)
            return
        if fault in STORED:
            await self._app(scope, receive, _dropped)
        else:
            await _drained(receive)
        if fault in ANSWERS:
            await _answered(send, fault, rule.get("headers") or {})
        else:
            # An answer that is announced and does not come: the server closes the connection.
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})

    async def _hold(
        self, number: int, rule: Mapping[str, Any], scope: MutableMapping[str, Any], receive: Receive, send: Send
    ) -> None:
        """Answers as if nothing were wrong, but not before the rule is gone; not at all where the client has gone."""
        body = [await receive()]
        while body[-1].get("more_body"):
            body.append(await receive())
        hanging_up = asyncio.ensure_future(receive())
        try:
            while rule in self._rules() and not hanging_up.done():
                await asyncio.wait([hanging_up], timeout=_LOOK)
            if hanging_up.done():
                self._note(number, HUNG_UP, scope)
                return
        finally:
            hanging_up.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await hanging_up

        async def replayed() -> Message:
            return body.pop(0) if body else await receive()

        self._note(number, LET_GO, scope)
        await self._app(scope, replayed, send)

    def _rules(self) -> list[Mapping[str, Any]]:
        file = self._folder / "faults.json"
        try:
            changed = file.stat().st_mtime_ns
        except FileNotFoundError:
            return []
        if changed != self._known[0]:
            self._known = (changed, json.loads(file.read_text("utf-8")))
            self._seen.clear()
        return self._known[1]

    def _fitting(
        self, rules: list[Mapping[str, Any]], scope: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, Any]] | None:
        """The first rule that fits, with its number."""
        path = _path(scope)
        for number, rule in enumerate(rules):
            if rule["method"] != scope["method"] or not re.fullmatch(rule["path"], path, re.IGNORECASE):
                continue
            seen, skip = self._seen[number, path], rule.get("skip", 0)
            if seen < skip:
                self._seen[number, path] += 1
            elif rule.get("times") is None or seen < skip + rule["times"]:
                return number, rule
        return None

    def _note(self, number: int, fault: str, scope: Mapping[str, Any]) -> None:
        self._seen[number, _path(scope)] += 1
        with (self._folder / "faults.log").open("a", encoding="utf-8") as log:
            log.write(f"{fault}\t{scope['method']}\t{_path(scope)}\n")

    def _fail_operation(self, path: str) -> bool:
        """The operation that the request has begun ends as failed, and so does the resource; whether there was one."""
        store = self._context.store
        with store.transaction():
            found = store.operations.running(path)
            for operation in found:
                store.operations.fail(operation.id, _FAILED)
                store.resources.set_state(path, "Failed")
        return bool(found)


def inject(home: Path, *rules: Mapping[str, Any]) -> None:
    """Replaces the rules of a sandbox; without any nothing fails."""
    place = folder(home)
    fresh = place / "faults.json.new"
    fresh.write_text(json.dumps(rules), "utf-8")
    fresh.replace(place / "faults.json")


def injected(home: Path) -> list[tuple[str, str, str]]:
    """Fault, method and path of all that was done, oldest first."""
    try:
        lines = (folder(home) / "faults.log").read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [(fault, method, path) for fault, method, path in (line.split("\t") for line in lines)]


def _path(scope: Mapping[str, Any]) -> str:
    return unquote(scope["raw_path"].decode("latin-1").partition("?")[0]).rstrip("/")


async def _dropped(message: Message) -> None:
    """Takes the place of what sends an answer."""


async def _drained(receive: Receive) -> None:
    while (await receive()).get("more_body"):
        pass


async def _answered(send: Send, fault: str, headers: Mapping[str, str]) -> None:
    status, code, text = ANSWERS[fault]
    body = json.dumps({"error": {"code": code, "message": text}}).encode()
    given = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    length = (b"content-length", str(len(body)).encode())
    head = [(b"content-type", b"application/json"), length, *given]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
