"""The recorded state of a stack; that of the sandbox's file backends is read without the engine, which takes a second.

The file is the engine's own: what is not found in the form that is known here counts as not recorded.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from amlstack.base import paths, pulumi_wire
from amlstack.engine import STACK

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_VERSION: Final = re.compile(r"/v\d{8}[^:]*(?=:)")


@dataclass(frozen=True, slots=True)
class State:
    """A stack as the backend has it.

    Attributes:
        resources: The resources, as the engine writes them (``urn``, ``type``, ``id``, ``inputs``, …).
        pending: URNs of operations that were cut off.
    """

    resources: tuple[Mapping[str, Any], ...] = ()
    pending: tuple[str, ...] = field(default=())

    def outputs(self) -> Mapping[str, Any] | None:
        """The stack's outputs; None where they are not recorded as plain values (a secret among them, say)."""
        stacks = [one for one in self.resources if one.get("type") == "pulumi:pulumi:Stack"]
        if len(stacks) != 1 or pulumi_wire.SIGNATURE in json.dumps(outputs := stacks[0].get("outputs") or {}):
            return None
        return outputs

    @property
    def protected(self) -> tuple[str, ...]:
        """URNs of the resources that the engine refuses to delete."""
        return tuple(str(one["urn"]) for one in self.resources if one.get("protect") and not one.get("delete"))

    @property
    def retained(self) -> tuple[str, ...]:
        """URNs of the resources that stay in Azure when the stack forgets them."""
        return tuple(str(one["urn"]) for one in self.resources if one.get("retainOnDelete"))


def backend_of(stack: str, home: Path | None = None) -> Path:
    """The folder of a stack's state on the sandbox of a home: the sandbox's own stack has one, each other its own."""
    root = paths.home() if home is None else home
    return root / "pulumi" if stack == STACK else root / "stacks" / stack / "state"


def files(backend: Path) -> dict[str, Path]:
    """Name → file of every stack of a file backend in a folder."""
    return {path.stem: path for path in sorted((backend / ".pulumi" / "stacks").rglob("*.json"))}


def read(backend: Path, stack: str) -> State:
    """A stack of a file backend; empty when nothing is recorded there in the form that is known."""
    file = files(backend).get(stack)
    if file is None:
        return State()
    try:
        return state_of(json.loads(file.read_text("utf-8"))["checkpoint"]["latest"] or {})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return State()


def state_of(latest: Mapping[str, Any]) -> State:
    """A stack as the engine writes it: a checkpoint's latest deployment, or what `pulumi stack export` prints.

    Raises:
        KeyError, TypeError, AttributeError: It has another form.
    """
    resources = tuple(latest.get("resources") or ())
    pending = tuple(one["resource"]["urn"] for one in latest.get("pending_operations") or ())
    return State(resources, pending)


def type_of(token: object) -> str:
    """A resource's type without its API version."""
    return _VERSION.sub("", str(token))
