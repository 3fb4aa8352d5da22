"""A stack file as text: the values under ``config`` and where each of them stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from amlstack.base import yamltext
from amlstack.base.files import read_regular
from amlstack.base.findings import Finding, stated

Loc = tuple[str | int, ...]
"""A path in the settings: ``("clusters", 0, "nodes", "max")``."""

NAMESPACE = "amlstack"
ROOM = 10
"""A file of settings may be this many times larger than a job file."""


@dataclass(frozen=True, slots=True)
class StackFile:
    """One ``Pulumi.<stack>.yaml``.

    Attributes:
        name: The file's name, as findings show it.
        values: The settings of our namespace, its prefix taken off; values as YAML reads them.
        config: The settings of all namespaces, under the keys that they have there.
    """

    name: str
    values: dict[str, Any] = field(repr=False)
    config: dict[str, Any] = field(repr=False)
    _text: yamltext.Text = field(repr=False)
    _written: Mapping[str, Any]  # setting → key of ``config``

    def locate(self, loc: Loc) -> tuple[int, int] | tuple[None, None]:
        """1-based line and column of a setting, or of the closest one around it that is written down."""
        if not loc or loc[0] not in self._written:
            return None, None
        return self._text.spot(("config", self._written[str(loc[0])], *loc[1:])) or (None, None)


def read(path: Path) -> tuple[StackFile | None, tuple[Finding, ...]]:
    """Read a stack file.

    Returns:
        The file, or None and one finding when it cannot be read.
    """
    try:
        text = yamltext.parse(read_regular(path), path.name, room=ROOM)
    except OSError as error:
        return None, (_unreadable(path, error.strerror or str(error)),)
    for wrong in text.findings:  # a key that is given twice too: the engine refuses such a file
        return None, (_unreadable(path, wrong.seen[:1].lower() + wrong.seen[1:]).at(None, wrong.line, wrong.column),)
    config = text.data.get("config", {}) if isinstance(text.data, dict) else {}
    if not isinstance(config, dict):
        found = Finding("stack-file", "config", "`config` holds no keys", "`config` maps keys to values")
        return None, (found.at(path.name, *(text.spot(("config",)) or ())),)
    written = {}
    for key in config:
        # Pulumi also reads the older spelling, `amlstack:config:key`.
        namespace, _, name = str(key).partition(":")
        name = name.removeprefix("config:")
        if namespace == NAMESPACE and name:
            written[name] = key
    return StackFile(path.name, {name: config[key] for name, key in written.items()}, config, text, written), ()


def _unreadable(path: Path, why: str) -> Finding:
    return stated("stack-file", "", why=why).changed(file=path.name)
