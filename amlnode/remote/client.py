"""The program that stands for `ssh` and `pdsh` on the first node: ``python -m amlnode.remote.client PROGRAM WORD…``."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path

from amlnode.rank import NodeError
from amlnode.remote.command_lines import RemoteCommand, parse
from amlnode.remote.hub import SOCKET, Connection, HungUpError, short

_printing = threading.Lock()


def main(words: list[str]) -> int:
    """Run the command on its nodes, all at once; 255 where a node cannot be reached, as ssh has it."""
    program, *rest = words
    try:
        command = parse(program, rest)
    except NodeError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 255
    codes = [255] * len(command.hosts)

    def ask(place: int) -> None:
        codes[place] = _one(command, command.hosts[place])

    threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(len(codes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(codes) if command.worst else 0


def _one(command: RemoteCommand, host: str) -> int:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short(Path(os.environ[SOCKET])) as path:
            link.connect(path)
        line = Connection(link)
        line.send(node=host, run=command.on(host), folder=os.environ.get("AMLNODE_FOLDER", ""))
        begun = {1: b"", 2: b""}
        while True:
            message = line.receive()
            if "code" in message:
                for to, rest in begun.items():
                    _print(to, rest + b"\n" if rest else b"", host, command)
                if message.get("why"):
                    _print(2, f"{message['why']}\n".encode(), host, command)
                return int(message["code"])
            # Whole lines: those of several nodes must not mix.
            *lines, begun[message["to"]] = (begun[message["to"]] + message["out"].encode("latin-1")).split(b"\n")
            for one in lines:
                _print(message["to"], one + b"\n", host, command)
    except (OSError, KeyError, HungUpError) as error:
        _print(2, f"connect to host {host}: {error}\n".encode(), host, command)
        return 255
    finally:
        link.close()


def _print(to: int, line: bytes, host: str, command: RemoteCommand) -> None:
    if line:
        with _printing:
            out = sys.stdout if to == 1 else sys.stderr
            out.buffer.write(f"{host}: ".encode() + line if command.named else line)
            out.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
