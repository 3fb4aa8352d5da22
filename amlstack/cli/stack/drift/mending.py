"""Mending of drift, either way: written into the settings, or put back by an `up` that looks first.

Paths of properties are in the engine's grammar: ``scaleSettings.maxNodeCount``, ``tags["a.b"]``, ``rules[0]``.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from amlstack.base.findings import Finding
from amlstack.cli.stack.drift.report import Declaring

if TYPE_CHECKING:
    from infra.settings import Reading

_PART: Final = re.compile(r'\.?(?P<name>[^.\[\]"]+)|\["(?P<quoted>(?:[^"\\]|\\.)*)"\]|\[(?P<index>\d+)\]')


def parts(path: str) -> list[str | int]:
    """The names and indices of a path."""
    found: list[str | int] = []
    for match in _PART.finditer(path):
        if match["index"] is not None:
            found.append(int(match["index"]))
        elif match["quoted"] is not None:
            found.append(re.sub(r"\\(.)", r"\1", match["quoted"]))
        else:
            found.append(match["name"])
    return found


def value_at(values: Any, path: str) -> Any:
    """The value of a path; None where there is none."""
    for part in parts(path):
        if isinstance(part, str):
            values = values.get(part) if isinstance(values, dict) else None
        else:
            values = values[part] if isinstance(values, list) and part < len(values) else None
    return values


def member(path: str, name: str) -> str:
    """The path of a member."""
    if name and not any(sign in name for sign in '.[]"'):
        return f"{path}.{name}" if path else name
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Path, old and new value of each difference; objects are gone through, lists are one value.

    Nothing there, None and an empty object are the same: services differ in which of them they answer.
    """
    old, new = (None if value == {} else value for value in (old, new))
    if old == new:
        return
    if isinstance(old, dict | None) and isinstance(new, dict | None):
        for name in dict.fromkeys((*(old or ()), *(new or ()))):
            yield from differences((old or {}).get(name), (new or {}).get(name), member(path, name))
        return
    yield path, old, new


CLUSTER: Final = "azure-native:machinelearningservices:Compute"
WORKSPACE: Final = "azure-native:machinelearningservices:Workspace"
ENVIRONMENT: Final = "amlstack:environments:Version"
_AS_WRITTEN: Final = frozenset({"friendlyName", "description"})
"""Properties of a workspace whose setting takes the same value."""


@dataclass(frozen=True, slots=True)
class StackMending:
    """The commands and settings of one stack.

    Attributes:
        stack: As it was asked for.
        up: `amlstack up` of this stack, without further options.
        reading: Its settings.
        file: Its settings file.
        plain: Whether plain `pulumi` reaches the stack as it is called here.
    """

    stack: str
    up: str
    reading: Reading
    file: Path
    plain: bool

    def put_back(self) -> str:
        """The command that makes everything as declared; it looks first, as the state does not know of drift."""
        return f"{self.up} --refresh"

    def put_back_alone(self, urn: str) -> str:
        """The command for one resource."""
        return f"pulumi up --stack {self.stack} --refresh --target {shlex.quote(urn)}" if self.plain else ""

    def adopt(self, urn: str, kind: str, path: str, there: Any, inputs: Mapping[str, Any]) -> Declaring:
        """The way to declare a property.

        Args:
            urn: The resource.
            kind: Its type without an API version.
            path: The property.
            there: Its value in Azure.
            inputs: The resource as Azure has it.
        """
        names = parts(path)
        if kind == CLUSTER and (found := self._entry("clusters", urn.rsplit("::", 1)[-1])) is not None:
            return self._of_cluster(found, path, there, inputs)
        if names[0] == "tags" and kind.startswith("azure-native:"):
            tag = str(names[1]) if len(names) > 1 else ""
            return self._written(("tags", tag) if tag else ("tags",), there, "on every resource of the stack")
        if kind == WORKSPACE:
            return self._of_workspace(path, there)
        return Declaring("no setting of this project says it: put it back, or change the program")

    def adopt_absence(self, urn: str, kind: str, inputs: Mapping[str, Any]) -> Declaring:
        """The way to declare that a resource no longer exists."""
        key = {CLUSTER: "clusters", ENVIRONMENT: "environments"}.get(kind, "")
        name = urn.rsplit("::", 1)[-1] if kind == CLUSTER else str(inputs.get("name") or "")
        index = self._entry(key, name) if key else None
        if index is None:
            return Declaring("the stack needs it, or no setting of its own declares it: put it back")
        place = self._place((key, index))
        words = f"remove `{name}` from `amlstack:{key}` ({place}), then `{self.up}`"
        return Declaring(words, f"amlstack:{self._where((key, index))}", None, place)

    def _of_cluster(self, index: int, path: str, there: Any, inputs: Mapping[str, Any]) -> Declaring:
        from infra.properties import setting_of

        setting = setting_of(path)
        if not setting:
            return Declaring("no setting of a cluster says it: put it back, or change the program")
        loc: tuple[str | int, ...] = ("clusters", index, *setting)
        if setting == ("tags",):
            rest = parts(path)[1:]
            return self._written((*loc, *map(str, rest)), there)
        from amlstack.cli.stack import adoption

        body = {"name": "", **inputs, "properties": inputs.get("properties") or {}}
        value = value_at(adoption.cluster_settings(body, ""), ".".join(setting))
        return self._written(loc, there if value is None else value)

    def _of_workspace(self, path: str, there: Any) -> Declaring:
        from infra.properties import WORKSPACE_SETTINGS

        rows = [
            row for row in WORKSPACE_SETTINGS if path == row.wire or path.startswith((f"{row.wire}.", f"{row.wire}["))
        ]
        settings = max(rows, key=lambda row: len(row.wire)).settings if rows else ()
        if not settings:
            return Declaring("no setting of this project says it: put it back, or change the program")
        if path in _AS_WRITTEN:
            return self._written(tuple(settings[0].split(".")), there)
        listed = " and ".join(f"`amlstack:{name}`" for name in settings)
        return Declaring(
            f"decided by {listed} (docs/reference/settings.md): write there what is meant", f"amlstack:{settings[0]}"
        )

    def _written(self, loc: tuple[str | int, ...], value: Any, note: str = "") -> Declaring:
        """A value for a setting."""
        setting, place = f"amlstack:{self._where(loc)}", self._place(loc)
        beside = f" ({note})" if note else ""
        if value is None:
            return Declaring(f"remove `{setting}` in {place}{beside}, then `{self.up}`", setting, None, place)
        shown = json.dumps(value, ensure_ascii=False)
        command = ""
        is_included = self.reading.origins.written(loc)[0] is not None
        if self.plain and not isinstance(value, dict | list) and not is_included:
            text = shown if not isinstance(value, str) else value
            # `config set` takes a text that looks like a number or a truth value for one.
            if text == shown or (text not in {"true", "false"} and not text.lstrip("-").isdigit()):
                words = f"pulumi config set --path {shlex.quote(setting)} {shlex.quote(text)}"
                command = f"{words} --stack {self.stack}"
        return Declaring(
            f"write `{setting}: {shown}` in {place}{beside}, then `{self.up}`", setting, value, place, command
        )

    def _entry(self, key: str, name: str) -> int | None:
        """The index of a named entry of a setting."""
        entries = getattr(self.reading.partial, key, ())
        names = [str(getattr(each, "name", "")).lower() for each in entries]
        return names.index(name.lower()) if name.lower() in names else None

    def _where(self, loc: tuple[str | int, ...]) -> str:
        """The setting as its file has it, in the grammar of `pulumi config set --path`."""
        _, written = self.reading.origins.written(loc)
        text = ""
        for part in written:
            if isinstance(part, int):
                text += f"[{part}]"
            elif text and any(sign in part for sign in '.[]" '):
                text += f"[{json.dumps(part)}]"
            else:
                text += f".{part}" if text else part
        return text

    def _place(self, loc: tuple[str | int, ...]) -> str:
        """The file that has the setting, or would have it, and the line of what is closest."""
        found = self.reading.origins.located(loc, Finding("drift", "", "", ""))
        return f"{found.file or self.file.name}{f':{found.line}' if found.line else ''}"
