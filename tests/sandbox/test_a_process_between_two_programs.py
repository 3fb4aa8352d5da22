"""A process that is just being executed shows neither name nor environment for a moment, and is one of ours."""

from __future__ import annotations

from typing import Any

from amlstack import processes
from tests.support.rows import for_each

MARKED = b"A=1\0MARK=ours\0"


class Entry:
    """A folder of /proc whose files say one thing after the other; the last one stays."""

    def __init__(self, **contents: list[bytes]) -> None:
        self.contents = contents

    def __truediv__(self, name: str) -> Entry:
        return Entry(file=self.contents[name])

    def read_bytes(self) -> bytes:
        answers = self.contents["file"]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def read_text(self) -> str:
        return self.read_bytes().decode()


def stat(state: str = "R", flags: int = 0) -> list[bytes]:
    return [f"7 (a) b) {state} 1 7 7 0 -1 {flags} 0 0".encode()]


@for_each(
    "entry, seen",
    [
        (Entry(environ=[MARKED], cmdline=[b"x\0"], stat=stat()), MARKED),
        (Entry(environ=[b"", b"", MARKED], cmdline=[b""], stat=stat()), MARKED),
        (Entry(environ=[b"", MARKED], cmdline=[b"x\0"], stat=stat()), MARKED),
        (Entry(environ=[b""], cmdline=[b"x\0"], stat=stat()), b""),
        (Entry(environ=[b""], cmdline=[b""], stat=stat("Z")), b""),
        (Entry(environ=[b""], cmdline=[b""], stat=stat(flags=0x400004)), b""),
        (Entry(environ=[b""], cmdline=[b""], stat=stat("I", 0x208040)), b""),
    ],
)
def test_it_is_looked_at_again(entry: Entry, seen: bytes) -> None:
    watched: Any = Entry(**{name: list(contents) for name, contents in entry.contents.items()})
    assert processes.environment(watched) == seen
