"""One value of an Azure ML file, where it stands, and how a fault of it is reported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding, Level
from jobs.model.location import Place, Source

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amlstack.base.yamltext import Text

Keys = tuple[Any, ...]


class _Bad:
    """What a reader returns after it has reported a fault."""

    def __repr__(self) -> str:
        return "Bad"


Bad: Final = _Bad()


@dataclass(slots=True, eq=False)  # frozen ones take thrice as long to make, and a job file has some thirty values
class Cursor:
    """One value of a file; nothing writes into it.

    Attributes:
        value: The value as YAML has it.
        path: Keys and indices that lead to it.
        findings: Where faults are gathered, with the path of each; shared by all cursors of a file.
        base: Folder of the file, where its relative paths start.
    """

    value: Any
    path: Keys
    findings: list[tuple[Keys, Finding]]
    base: Path

    def at(self, key: Any) -> Cursor:
        """The value under a key or index."""
        return Cursor(self.value[key], (*self.path, key), self.findings, self.base)

    def bad(
        self, code: str, seen: str, rule: str, remedy: str = "", *, level: Level = Level.ERROR, key: Any = None
    ) -> Any:
        """Report a fault of this value, or of one of its keys."""
        path = self.path if key is None else (*self.path, key)
        self.findings.append((path, Finding(code, dotted(path), seen, rule, remedy, level)))
        return Bad

    def wrong(self, wanted: str, remedy: str = "") -> Any:
        """Report that the value is of another kind."""
        return self.bad("value-kind", self.must(f"be {wanted}"), "", remedy)

    def must(self, rule: str) -> str:
        """What must hold and what the file has: `` `nodes` must be an integer, got `two` ``."""
        named = next((index for index in reversed(range(len(self.path))) if isinstance(self.path[index], str)), 0)
        return f"`{dotted(self.path[named:])}` must {rule}, got {shown(self.value)}"


def source_of(
    content: Text,
    base: Path,
    path_of: Callable[[str], tuple[str, ...]],
    unreadable: frozenset[tuple[str, ...]] = frozenset(),
) -> Source:
    """The file that a declaration was read from, with the places in it.

    Args:
        content: The file.
        base: Folder that the declaration's relative paths start from.
        path_of: From a path in the declaration to the keys in the file.
        unreadable: Keys in the file whose values could not be read.
    """

    def place(where: str) -> Place:
        path = path_of(where)
        return ".".join(path), *(content.spot(path) or (None, None))

    return Source(content.file, base, place, unreadable)


def dotted(path: Keys) -> str:
    """``inputs.data.path``, ``resources.locations[0]``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def shown(value: Any) -> str:
    """A value as a message shows it: short, and a collection by its kind."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    shown = str(value) if not isinstance(value, str) or len(value) < 60 else f"{value[:57]}…"
    return f"`{shown}`"
