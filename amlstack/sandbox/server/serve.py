"""``python -m amlstack.sandbox.server.serve``: the server process of one sandbox home."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvicorn

from amlstack.base import home as homes
from amlstack.base import paths
from amlstack.base.files import sentence, write_whole
from amlstack.sandbox import kinds, processes, scheduler
from amlstack.sandbox.protocol import entra, typecheck
from amlstack.sandbox.protocol.kind import KindContext
from amlstack.sandbox.server import daemon
from amlstack.sandbox.server.daemon import TOLD
from amlstack.sandbox.service import app, manager
from amlstack.sandbox.store.database import StateError
from amlstack.sandbox.store.folders import PRIVATE, private
from amlstack.sandbox.store.store import Store, folder

HEAD_BYTES = 1 << 16
"""The most of a request's first line and headers."""
WRAPPER = "AMLSTACK_SANDBOX_WRAPPER"
"""Variable that names ``module:function``, by which tests put an ASGI application in front of the service."""
TICK_SECONDS = 1.0
"""Operations that no client polls advance at this interval."""
GATHER_SECONDS = 0.02
"""Between two looks of the scheduler at what changed, at least."""


def main() -> int:
    """Serves until a signal ends it (SIGTERM, SIGINT); 3 when another server has this home, 1 when it is not ours.

    `TOLD` when its files cannot be used; the last line that it has printed says why.
    """
    home = paths.home()
    os.umask(PRIVATE)
    try:
        homes.claim(home)
    except homes.ForeignHomeError as error:
        print(error, file=sys.stderr)  # noqa: T201 - goes to its log
        return 1
    place = private(folder(home))
    with (place / "serve.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another server already serves {place}", file=sys.stderr)  # noqa: T201 - goes to its log
            return 3
        try:
            asyncio.run(_serve(home))
        except (StateError, OSError) as error:
            told = str(error) if isinstance(error, StateError) else sentence(error, place=place)
            if not told:
                raise
            print(told, file=sys.stderr)  # noqa: T201 - goes to its log, and to who started it
            return TOLD
    return 0


async def _serve(home: Path) -> None:
    """Opens the port, writes ``endpoint.json``, runs the scheduler, and serves."""
    place = folder(home)
    server_pem = daemon.prepare(place)
    daemon.bundle(place)
    federated = entra.secret_file(place / "token")
    with contextlib.closing(Store(home)) as store, _listen(place, "url") as listener, _listen(place, "proxy") as names:
        store.database.check()
        port = listener.getsockname()[1]
        base = f"https://127.0.0.1:{port}"
        key = entra.secret_file(place / "key")
        context = KindContext(store, base, key, asyncio.Event())
        manager.settle(context)
        store.blobs.sweep()
        config = uvicorn.Config(
            _wrapped(app.make(context, federated), context),
            ssl_certfile=str(server_pem),
            h11_max_incomplete_event_size=HEAD_BYTES,
            log_level="warning",
            ws="none",
            # Clients keep connections between polls; one closed under them costs a retry.
            timeout_keep_alive=600,
            timeout_graceful_shutdown=1,
        )
        wake = asyncio.Event()
        work = (_ticks(context), daemon.serve(names, port), _schedule(store, home, wake), _gather(context.wake, wake))
        tasks = [asyncio.create_task(each) for each in work]
        # Where no shapes are kept, azure-native is imported for a second: the port is open meanwhile.
        threading.Thread(target=typecheck.warm, args=(kinds.ALL,), daemon=True).start()
        _announce(place, base, f"http://127.0.0.1:{names.getsockname()[1]}")
        await uvicorn.Server(config).serve(sockets=[listener])
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _wrapped(served: Any, context: KindContext) -> Any:
    module, _, function = os.environ.get(WRAPPER, "").partition(":")
    return getattr(importlib.import_module(module), function)(served, context) if module else served


async def _ticks(context: KindContext) -> None:
    held = False
    while True:
        await asyncio.sleep(TICK_SECONDS)
        manager.advance_all(context, begun=time.time() - TICK_SECONDS)
        before, held = held, context.store.holds_jobs()
        if before and not held:  # another process has let them start
            context.wake.set()


async def _gather(first: asyncio.Event, second: asyncio.Event) -> None:
    """Passes a signal on at once, but then for a moment none: a thousand clusters made in a row are a few signals."""
    while True:
        await first.wait()
        first.clear()
        second.set()
        await asyncio.sleep(GATHER_SECONDS)


async def _schedule(store: Store, home: Path, wake: asyncio.Event) -> None:
    """A scheduler that raises is started again: jobs in flight must not wait for a person to notice."""
    while True:
        try:
            await scheduler.run(store, home, wake)
        except Exception:  # noqa: BLE001 - whatever it is, it belongs into the log
            sys.excepthook(*sys.exc_info())
        await asyncio.sleep(TICK_SECONDS)


@contextlib.contextmanager
def _listen(place: Path, name: str) -> Iterator[socket.socket]:
    """A socket on the port of last time, so that addresses written down then still lead here; else on a free one.

    Args:
        place: The sandbox's folder.
        name: Under which ``endpoint.json`` has the address.
    """
    last = 0
    with contextlib.suppress(OSError, ValueError, KeyError):
        last = int(json.loads((place / "endpoint.json").read_text())[name].rsplit(":", 1)[1])
    # Not of the kernel's own choice: what it gives to a client meanwhile would keep the address from coming back.
    for port in (last, processes.free_port(), 0):
        # The protocol is named because asyncio sets TCP_NODELAY only then: 40 ms per answer otherwise.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # A port in TIME_WAIT is free to us; one that another server listens on is still refused.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            listener.close()
            continue
        listener.listen(512)
        with listener:
            yield listener
        return


def _announce(place: Path, base: str, proxy: str) -> None:
    known = {
        "url": base,
        "proxy": proxy,
        "pid": os.getpid(),
        "started": processes.started(os.getpid()),
        "ca": str(place / "ca.pem"),
        "bundle": str(place / "ca-bundle.pem"),
        "token": str(place / "token"),
    }
    write_whole(place / "endpoint.json", json.dumps(known, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
