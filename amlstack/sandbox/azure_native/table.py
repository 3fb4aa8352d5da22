"""The resource types that the stand-in knows: which input is part of the path, of the envelope, of ``properties``."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from amlstack.base import text as text_module
from amlstack.rpc import ErrorCode, ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    text = resources.files(__package__).joinpath("types.json").read_text("utf-8")
    return {token: ResourceType(token, **row) for token, row in json.loads(text)["types"].items()}
