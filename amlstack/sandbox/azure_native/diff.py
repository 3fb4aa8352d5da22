"""Differences between two sets of inputs, in the engine's words, and the effect of outside changes on the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pulumi.runtime.proto import provider_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from amlstack.sandbox.azure_native.table import ResourceType

RANDOMLY_NAMED = "__createBeforeDelete"
"""azure-native's mark on inputs whose name it made up: a replacement gets a name of its own and can come first."""

_ANSWER = provider_pb2.DiffResponse
_KINDS = provider_pb2.PropertyDiff
_REPLACING = {
    _KINDS.ADD: _KINDS.ADD_REPLACE,
    _KINDS.UPDATE: _KINDS.UPDATE_REPLACE,
    _KINDS.DELETE: _KINDS.DELETE_REPLACE,
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: its property path, the input it lies in, and ADD, UPDATE or DELETE."""

    path: str
    root: str
    kind: provider_pb2.PropertyDiff.Kind.ValueType


def response(
    kind: ResourceType, old: Mapping[str, Any], new: Mapping[str, Any], state: Mapping[str, Any]
) -> provider_pb2.DiffResponse:
    """The answer to the engine's ``Diff``.

    Args:
        kind: The type.
        old: Inputs of the last operation.
        new: Inputs now.
        state: Outputs of the last operation.
    """
    detailed: dict[str, provider_pb2.PropertyDiff] = {}
    found = list(changes(old, new))
    for change in found:
        code = change.kind
        # An input that says what the service had chosen anyway changes nothing.
        settled = change.path not in old and state.get(change.path) == new.get(change.path)
        if change.root in kind.replaces and not (code == _KINDS.ADD and settled):
            code = _REPLACING[code]
        detailed[change.path] = _KINDS(kind=code, inputDiff=True)
    if not detailed:
        return _ANSWER(changes=_ANSWER.DIFF_NONE)
    replaces = [path for path, each in detailed.items() if each.kind in _REPLACING.values()]
    return _ANSWER(
        changes=_ANSWER.DIFF_SOME,
        replaces=replaces,
        deleteBeforeReplace=bool(replaces) and old.get(RANDOMLY_NAMED) is not True,
        diffs=list(dict.fromkeys(change.root for change in found)),
        detailedDiff=detailed,
        hasDetailedDiff=True,
    )


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    """Every difference; letters and spaces of a location's name do not count, nor letter case in that of a group."""
    for change in _object(old, new, "", ""):
        if change.path == "location" and _same_place(old.get("location"), new.get("location")):
            continue
        if change.path == "resourceGroupName" and _same_group(old.get(change.path), new.get(change.path)):
            continue
        if change.root != RANDOMLY_NAMED:
            yield change


def merged(inputs: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs, with what changed between two readings of the service carried over, and nothing else.

    The service's defaults stand in both readings, so they do not turn into inputs.
    """
    result = {name: value for name, value in inputs.items() if name in after or name not in before}
    for name, value in after.items():
        if name not in before or before[name] != value:
            result[name] = _merged_value(inputs.get(name), before.get(name), value)
    return result


def _merged_value(given: Any, before: Any, after: Any) -> Any:
    match given, before, after:
        case dict(), dict(), dict():
            return merged(given, before, after)
        case list(), list(), list():
            known = min(len(given), len(before))
            pairs = (
                _merged_value(given[index], before[index], item) if index < known else item
                for index, item in enumerate(after)
            )
            return list(pairs)
        case _:
            # Unchanged parts of a list or map keep what the program says.
            return given if before == after and given is not None else after


def _object(old: Mapping[str, Any], new: Mapping[str, Any], path: str, root: str) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        at, top = member(path, name), root or name
        if old.get(name) is None and new.get(name) is None:
            continue
        if old.get(name) is None:
            yield Change(at, top, _KINDS.ADD)
        elif new.get(name) is None:
            yield Change(at, top, _KINDS.DELETE)
        else:
            yield from _value(old[name], new[name], at, top)


def _value(old: Any, new: Any, path: str, root: str) -> Iterator[Change]:
    match old, new:
        case dict(), dict():
            yield from _object(old, new, path, root)
        case list(), list():
            for index in range(max(len(old), len(new))):
                at = f"{path}[{index}]"
                if index >= len(old):
                    yield Change(at, root, _KINDS.ADD)
                elif index >= len(new):
                    yield Change(at, root, _KINDS.DELETE)
                else:
                    yield from _value(old[index], new[index], at, root)
        case _:
            if type(old) is not type(new) or old != new:
                yield Change(path, root, _KINDS.UPDATE)


def member(path: str, name: str) -> str:
    """The property path of a member, in the engine's grammar."""
    if name and not any(mark in name for mark in '.[]"'):
        return f"{path}.{name}" if path else name
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'{path}["{quoted}"]'


def _same_place(old: Any, new: Any) -> bool:
    return isinstance(old, str) and isinstance(new, str) and plain(old) == plain(new)


def _same_group(old: Any, new: Any) -> bool:
    return isinstance(old, str) and isinstance(new, str) and old.lower() == new.lower()


def plain(location: str) -> str:
    """``West US 2`` as ``westus2``."""
    return location.replace(" ", "").lower()
