"""Pulumi's wire, for both gRPC servers: this project's provider and the sandbox's stand-in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from amlstack.base.pulumi_wire import UNKNOWN
from amlstack.rpc.host import ErrorCode, Failures, Host, InitFailedError, ProviderError
from amlstack.rpc.values import (
    NOTHING,
    Secrecy,
    Secret,
    ValueRefusedError,
    all_of,
    bare,
    changed_paths,
    opened,
    unknown_paths,
)

if TYPE_CHECKING:
    from amlstack.rpc.plugin import Plugin, serve, start
    from amlstack.rpc.wire import decode, encode


_LATE = {"Plugin": "plugin", "serve": "plugin", "start": "plugin", "decode": "wire", "encode": "wire"}
"""Modules that need gRPC and Pulumi's protocol, a fifth of a second to load: found when it is asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
