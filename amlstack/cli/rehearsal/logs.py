"""The growing logs of a job's folder, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Tail:
    """The lines that a growing file gained since the last look; an unfinished line waits for its end."""

    path: Path
    offset: int = 0
    rest: bytes = b""

    def lines(self, *, last: bool = False) -> list[str]:
        """Whole new lines, and with ``last`` the unfinished one too."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                chunk = file.read()
        except FileNotFoundError:
            return []
        self.offset += len(chunk)
        *whole, self.rest = (self.rest + chunk).split(b"\n")
        if last and self.rest:
            whole.append(self.rest)
            self.rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in whole]


@dataclass(slots=True)
class Logs:
    """All rank logs of one job folder."""

    folder: Path
    only_first: bool = False
    tails: dict[str, Tail] = field(default_factory=dict)

    def new(self, *, last: bool = False) -> list[tuple[str, str]]:
        """Pairs of log name and line, in the order of the ranks."""
        for path in sorted((self.folder / "user_logs").glob("std_log_process_*.txt")):
            if not self.only_first or not self.tails:
                self.tails.setdefault(path.stem.removeprefix("std_log_process_"), Tail(path))
        return [(name, line) for name, tail in sorted(self.tails.items()) for line in tail.lines(last=last)]
