"""The resource types that the stand-in knows, from a table: the form of their inputs, findings, and differences.

Of each input the table says whether it is part of the path, of the envelope, or of ``properties``.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pulumi.runtime.proto import provider_pb2

from amlstack.base import text
from amlstack.base import text as text_module
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError

API_VERSION = "azureApiVersion"
"""The input and output by which azure-native records the REST version that it speaks."""

SCOPES = frozenset({"scope", "resourceUri"})
"""The parameters of paths that are themselves paths, with or without a slash before them."""

_TOKEN = re.compile(
    r"azure-native:(?P<module>\w+)(/v(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)(?P<label>[a-z]*))?:(?P<name>\w+)"
)
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One row of ``types.json``.

    Attributes:
        token: ``machinelearningservices:Compute``, without package and version.
        path: The ARM path with ``{parameter}`` for each name.
        version: The api-version it is spoken to with.
        top: Inputs that stand at the top of the body.
        flat: Inputs that stand under the body's ``properties``.
        outputs_top: Read-only outputs at the top of the answer.
        outputs_flat: Read-only outputs under the answer's ``properties``.
        renamed: Wire name by dotted path of an input or output, where the two differ.
        wrapped: Lists whose items have ``properties`` of their own on the wire, and none in azure-native.
        required: Body inputs that must be there.
        replaces: Body inputs whose change needs a new resource; path parameters always do.
        hidden: Dotted paths inside inputs that only an answer has (node counts, times): never read back as inputs.
        keeps: Dotted paths that other resources may write: an update that does not name them leaves them alone.
        delete_query: What a DELETE says beside the api-version.
        put_query: Inputs that a PUT says beside the api-version.
        write_only: Body inputs that no answer has.
        default: ``properties`` of one that nobody has changed, where each parent has one from the beginning: it is
            taken over by the first to declare it, and put back when it is deleted; else None.
        deletes: ARM has a DELETE for it; without one the engine forgets it and it stays.
    """

    token: str
    path: str
    version: str
    top: Sequence[str]
    flat: Sequence[str]
    outputs_top: Sequence[str]
    outputs_flat: Sequence[str]
    renamed: Mapping[str, str] = field(default_factory=dict)
    wrapped: Sequence[str] = ()
    required: Sequence[str] = ()
    replaces: Sequence[str] = ()
    hidden: Sequence[str] = ()
    keeps: Sequence[str] = ()
    delete_query: Mapping[str, str] = field(default_factory=dict)
    put_query: Sequence[str] = ()
    write_only: Sequence[str] = ()
    default: Mapping[str, Any] | None = None
    deletes: bool = True

    @property
    def parameters(self) -> tuple[str, ...]:
        """The inputs that make up the path."""
        return tuple(name for name in _PARAMETER.findall(self.path) if name != "subscriptionId")

    @property
    def autonamed(self) -> str:
        """The input that gets a name of its own when the program gives none: the last of the path."""
        return self.parameters[-1]

    @property
    def nested(self) -> bool:
        """The resource lies inside another one, so that its name need be unique only there."""
        return len(self.parameters) > 2

    @property
    def inputs(self) -> frozenset[str]:
        """Every input."""
        return frozenset((*self.parameters, *self.top, *self.flat, *self.put_query))

    def id_of(self, subscription: str, inputs: Mapping[str, Any]) -> str:
        """The ARM id that the inputs name."""
        values = {**inputs, "subscriptionId": subscription}
        values |= {name: str(values[name]).lstrip("/") for name in SCOPES & values.keys()}
        return _PARAMETER.sub(lambda found: str(values[found[1]]), self.path)

    def parse(self, resource_id: str) -> dict[str, str]:
        """The path parameters in an id (for an import).

        Raises:
            ProviderError: The id is not one of this type.
        """
        pattern = re.escape(self.path).replace(r"\{", "{").replace(r"\}", "}")
        # Alone of all names a scope is itself a path.
        parts = _PARAMETER.sub(lambda found: f"(?P<{found[1]}>{'.+' if found[1] in SCOPES else '[^/]+'})", pattern)
        found = re.fullmatch(parts, resource_id, re.IGNORECASE)
        if found is None:
            raise ProviderError(f"'{resource_id}' is no id of {self.token}, which look like {self.path}")
        return {name: value for name, value in found.groupdict().items() if name != "subscriptionId"}


def find(token: str) -> tuple[ResourceType, str]:
    """The row of a type token, versioned or not, and the api-version to speak.

    Raises:
        ProviderError: The sandbox does not know the type; near misses by name.
    """
    found = _TOKEN.fullmatch(token)
    row = _rows().get(f"{found['module']}:{found['name']}") if found else None
    if found is None or row is None:
        raise ProviderError(_unknown(token), ErrorCode.UNIMPLEMENTED)
    if not found["year"]:
        return row, row.version
    # `v20250901preview` is 2025-09-01-preview.
    return row, "-".join(filter(None, found.group("year", "month", "day", "label")))


def tokens() -> tuple[str, ...]:
    """Every token, without package and version."""
    return tuple(_rows())


def token_of(urn: str) -> str:
    """The type token in a URN (the last one of the chain of parents)."""
    return urn.split("::")[2].rpartition("$")[2]


def _unknown(token: str) -> str:
    plain = re.sub(r"^azure-native:|/v\d{8}\w*", "", token)
    hint = text_module.hint(plain, tokens()) or f" It does for: {', '.join(tokens())}."
    return (
        f"the sandbox does not stand in for {token}.{hint} On a stack with the real azure-native plugin the type is "
        "what that plugin makes of it."
    )


@functools.cache
def _rows() -> dict[str, ResourceType]:
    text = Path(__file__).with_name("types.json").read_text("utf-8")
    return {token: ResourceType(token, **row) for token, row in json.loads(text)["types"].items()}


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


def diff(
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
        if change.root in (*kind.parameters, *kind.replaces) and not (code == _KINDS.ADD and settled):
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


STABLE = ("name", "location")
"""Outputs that no update changes: known at preview, so that what depends on them is not shown as changing."""

_OUTER = ("id", "name", "type", "etag")
"""An item with ``properties`` has these keys beside them."""

_ID_SETS = frozenset({"identity.userAssignedIdentities"})
"""Lists of ids in a program that are maps with empty values on the wire."""


def body(kind: ResourceType, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a PUT."""
    result: dict[str, Any] = {name: _out(kind, inputs[name], name) for name in kind.top if _given(inputs, name)}
    flat = {_wire(kind, "", name): _out(kind, inputs[name], name) for name in kind.flat if _given(inputs, name)}
    if kind.flat:
        result["properties"] = flat
    return result


def put_query(kind: ResourceType, inputs: Mapping[str, Any]) -> dict[str, str]:
    """The parts of a PUT beside its body."""
    given = {name: inputs[name] for name in kind.put_query if _given(inputs, name)}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


def outputs(kind: ResourceType, answer: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The outputs that an answer holds."""
    inner = answer.get("properties") or {}
    top = (*(name for name in kind.top if name not in kind.write_only), *kind.outputs_top)
    flat = {name: _wire(kind, "", name) for name in (*kind.flat, *kind.outputs_flat)}
    found = {name: _in(kind, answer[name], name) for name in top if _given(answer, name)}
    found |= {name: _in(kind, inner[wire], name) for name, wire in flat.items() if _given(inner, wire)}
    return {**found, "azureApiVersion": version}


def preview(kind: ResourceType, inputs: Mapping[str, Any], old: Mapping[str, Any], version: str) -> dict[str, Any]:
    """The outputs as foreseen before anything is done: the inputs that come back, and what never changes."""
    names = [
        name for name in (*kind.top, *kind.flat, *kind.outputs_top, *kind.outputs_flat) if name not in kind.write_only
    ]
    result = {name: _foreseen(kind, inputs, old, name) if _given(inputs, name) else UNKNOWN for name in names}
    return {**result, **{name: old[name] for name in STABLE if name in old}, "azureApiVersion": version}


def _foreseen(kind: ResourceType, inputs: Mapping[str, Any], old: Mapping[str, Any], name: str) -> Any:
    """An input as the answer will have it: what only an answer has (a principal's id) stays while the input does."""
    given, before = inputs[name], old.get(name)
    if not isinstance(given, dict):
        return given
    later = {path for path in (*kind.hidden, *_ID_SETS) if path.count(".") == 1 and path.startswith(f"{name}.")}
    below = {path.split(".")[1] for path in later if path in kind.hidden or _given(given, path.split(".")[1])}
    if isinstance(before, dict) and _without_hidden(kind, before, name) == given:
        return before
    return {**given, **dict.fromkeys(below, UNKNOWN)}


def writable(kind: ResourceType, state: Mapping[str, Any]) -> dict[str, Any]:
    """The part of outputs that could be inputs: body inputs without what only an answer has."""
    shown = {name: state[name] for name in (*kind.top, *kind.flat) if _given(state, name)}
    return {name: _without_hidden(kind, value, name) for name, value in shown.items()}


def significant(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of an import as azure-native writes them: without lists and maps that hold nothing, however deep.

    Everything else stays, ``false`` and empty texts included (``provider/pkg/convert/responseToSdkInputs.go`` of
    pulumi-azure-native, read 2026-11-22).
    """
    return {name: kept for name, value in inputs.items() if (kept := _without_empty(value)) is not None}


def _without_empty(value: Any) -> Any:
    match value:
        case dict():
            return {name: kept for name, item in value.items() if (kept := _without_empty(item)) is not None} or None
        case list():
            return [kept for item in value if (kept := _without_empty(item)) is not None] or None
        case _:
            return value


def keep(kind: ResourceType, request: dict[str, Any], current: Mapping[str, Any] | None) -> None:
    """Fills in what other resources may write: as it stands now, empty on a new resource."""
    for path in kind.keeps:
        *parents, last = path.split(".")
        target: dict[str, Any] = request
        source: Mapping[str, Any] = current or {}
        for name in parents:
            target = target.setdefault(name, {})
            source = source.get(name) or {}
        target.setdefault(last, source.get(last, []))


def is_untouched(kind: ResourceType, answer: Mapping[str, Any]) -> bool:
    """True where a resource that its parent has from the beginning is as it was then."""
    return kind.default is not None and _holds(answer.get("properties") or {}, kind.default)


def _holds(value: Any, part: Any) -> bool:
    if isinstance(value, dict) and isinstance(part, dict):
        return all(_holds(value.get(name), inner) for name, inner in part.items())
    return bool(value == part)


def _given(values: Mapping[str, Any], name: str) -> bool:
    return values.get(name) is not None


def _wire(kind: ResourceType, above: str, name: str) -> str:
    return kind.renamed.get(f"{above}.{name}" if above else name, name)


def _out(kind: ResourceType, value: Any, path: str) -> Any:
    """A value as the wire has it; the items of a list have the path of their list."""
    if path in _ID_SETS and isinstance(value, list):
        return {name: {} for name in value}
    match value:
        case dict():
            given = {name: item for name, item in value.items() if item is not None}
            return {_wire(kind, path, name): _out(kind, item, f"{path}.{name}") for name, item in given.items()}
        case list():
            items = [_out(kind, item, path) for item in value]
            return [_wrapped(item) for item in items] if path in kind.wrapped else items
        case _:
            return value


def _wrapped(item: Any) -> Any:
    """An item with ``properties`` of its own, as the wire has it."""
    outer = {name: item[name] for name in _OUTER if name in item}
    return {**outer, "properties": {name: value for name, value in item.items() if name not in outer}}


def _unwrapped(item: Any) -> Any:
    """The same as azure-native has it."""
    outer = {name: value for name, value in item.items() if name != "properties"}
    return {**outer, **(item.get("properties") or {})}


def _in(kind: ResourceType, value: Any, path: str) -> Any:
    """A value of the wire under azure-native's names."""
    match value:
        case dict():
            ours = {wire: name for above, name, wire in _renamed(kind) if above == path}
            given = {ours.get(name, name): item for name, item in value.items() if item is not None}
            return {name: _in(kind, item, f"{path}.{name}") for name, item in given.items()}
        case list():
            wrapped = path in kind.wrapped
            return [_in(kind, _unwrapped(item) if wrapped else item, path) for item in value]
        case _:
            return value


def _renamed(kind: ResourceType) -> Iterator[tuple[str, str, str]]:
    """(path above, our name, wire name) of everything nested that has two names."""
    for path, wire in kind.renamed.items():
        above, _, name = path.rpartition(".")
        if above:
            yield above, name, wire


def _without_hidden(kind: ResourceType, value: Any, path: str) -> Any:
    if path in _ID_SETS and isinstance(value, dict):
        return sorted(value)
    match value:
        case dict():
            shown = {name: item for name, item in value.items() if f"{path}.{name}" not in kind.hidden}
            return {name: _without_hidden(kind, item, f"{path}.{name}") for name, item in shown.items()}
        case list():
            return [_without_hidden(kind, item, path) for item in value]
        case _:
            return value


PROPOSE, ENFORCE, DISABLE = range(3)
"""Modes of ``pulumi:autonaming`` on the wire."""


def name(
    kind: ResourceType, logical: str, seed: bytes, old: Mapping[str, Any], proposal: tuple[int, str] | None
) -> dict[str, Any]:
    """The inputs that a resource gets whose program names none.

    Args:
        kind: The type.
        logical: The resource's name in the program.
        seed: Randomness of this resource from the engine; the same for preview and update.
        old: Its inputs so far: a name once given stays.
        proposal: Mode and name from the stack's ``pulumi:autonaming`` setting.
    """
    key = kind.autonamed
    if key in old:
        return {name: old[name] for name in (key, RANDOMLY_NAMED) if name in old}
    if proposal is not None:
        mode, proposed = proposal
        return {} if mode == DISABLE else {key: proposed, RANDOMLY_NAMED: True}
    if kind.nested:
        return {key: logical}
    suffix = hmac.new(seed, logical.encode(), hashlib.sha256).hexdigest()[:8]
    return {key: f"{logical}{suffix}", RANDOMLY_NAMED: True}


def location(
    old: Mapping[str, Any], new: Mapping[str, Any], config: Mapping[str, str], of_group: Callable[[str], str | None]
) -> Any:
    """The location of a resource whose program names none: as before, as the stack says, with its group, or nowhere."""
    group = new.get("resourceGroupName")
    if old.get("location"):
        return old["location"]
    if config.get("location"):
        return config["location"]
    if group is UNKNOWN:
        return UNKNOWN
    return of_group(group) if isinstance(group, str) else None


def failures(kind: ResourceType, inputs: Mapping[str, Any]) -> Failures:
    """The properties that are missing, and those that the type does not have."""
    found = Failures()
    for needed in dict.fromkeys((*kind.parameters, *kind.required)):
        if inputs.get(needed) is None:
            hint = (
                ". Either set it explicitly or configure it with 'pulumi config set azure-native:location <value>'."
                if needed == "location"
                else ""
            )
            found.add(needed, f"missing required property '{needed}'{hint}")
    for given in inputs:
        if given not in kind.inputs and given not in {API_VERSION, RANDOMLY_NAMED}:
            hint = text.hint(given, kind.inputs)
            found.add(given, f"'{given}' is no property of azure-native:{kind.token}.{hint}")
    for parameter in kind.parameters:
        value = inputs.get(parameter)
        if value is None or value is UNKNOWN:
            continue
        if not isinstance(value, str) or not value or ("/" in value and parameter not in SCOPES):
            found.add(parameter, f"'{parameter}' must be a name (a string without '/'), not {value!r}")
    return found
