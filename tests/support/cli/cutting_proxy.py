"""A proxy on loopback that can be cut and mended: its connections break, and new ones are refused meanwhile."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

_BYTES = 65_536


class CuttingProxy:
    """Carries what is asked for with CONNECT, as proxies of companies do; TLS passes through it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._is_cut = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.environ = {
            "HTTPS_PROXY": f"http://127.0.0.1:{self._listener.getsockname()[1]}",
            "NO_PROXY": "",
            "no_proxy": "",
        }
        self.carried = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listener.close()
        self.cut()

    def cut(self) -> None:
        """Every connection breaks, and so does each new one."""
        with self._lock:
            self._is_cut = True
            ending, self._open = self._open, []
        for one in ending:
            _end(one)

    def mend(self) -> None:
        """New connections reach the service again."""
        with self._lock:
            self._is_cut = False

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        words = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in words and (data := client.recv(_BYTES)):
                words += data
        with self._lock:
            asked = words.split()
            if self._is_cut or len(asked) < 2 or asked[0] != b"CONNECT":
                _end(client)
                return
            host, _, port = asked[1].decode().rpartition(":")
            service = socket.create_connection((host, int(port)))
            self._open += [client, service]
            self.carried += 1
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        for source, target in ((client, service), (service, client)):
            threading.Thread(target=_carry, args=(source, target), daemon=True).start()


def _carry(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)
    _end(source)
    _end(target)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
