"""What runs as `ssh` and as `pdsh` on the first node: ``python -m amlnode.remote.client PROGRAM WORD…``."""

from __future__ import annotations

import os
import socket
import sys
import threading

from amlnode.errors import NodeError
from amlnode.remote.wire import DOOR, HungUpError, Line
from amlnode.remote.words import Asked, asked

_speaking = threading.Lock()


def main(words: list[str]) -> int:
    """Run the command on its nodes, all at once; 255 where a node cannot be reached, as ssh has it."""
    program, *rest = words
    try:
        wish = asked(program, rest)
    except NodeError as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 255
    codes = [255] * len(wish.hosts)

    def ask(place: int) -> None:
        codes[place] = _one(wish, wish.hosts[place])

    threads = [threading.Thread(target=ask, args=(place,), daemon=True) for place in range(len(codes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(codes) if wish.worst else 0


def _one(wish: Asked, host: str) -> int:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        link.connect(os.environ[DOOR])
        line = Line(link)
        line.tell(node=host, run=wish.on(host), folder=os.environ.get("AMLNODE_FOLDER", ""))
        begun = {1: b"", 2: b""}
        while True:
            said = line.hear()
            if "code" in said:
                for to, rest in begun.items():
                    _say(to, rest + b"\n" if rest else b"", host, wish)
                if said.get("why"):
                    _say(2, f"{said['why']}\n".encode(), host, wish)
                return int(said["code"])
            # Whole lines: those of several nodes must not mix.
            *lines, begun[said["to"]] = (begun[said["to"]] + said["out"].encode("latin-1")).split(b"\n")
            for one in lines:
                _say(said["to"], one + b"\n", host, wish)
    except (OSError, KeyError, HungUpError) as error:
        _say(2, f"connect to host {host}: {error}\n".encode(), host, wish)
        return 255
    finally:
        link.close()


def _say(to: int, line: bytes, host: str, wish: Asked) -> None:
    if line:
        with _speaking:
            out = sys.stdout if to == 1 else sys.stderr
            out.buffer.write(f"{host}: ".encode() + line if wish.named else line)
            out.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
