"""What both gRPC servers (our provider and the sandbox's stand-in) need of Pulumi's wire."""

from __future__ import annotations

from amlstack.rpc.errors import Code, Failures, InitFailedError, ProviderError
from amlstack.rpc.host import Host
from amlstack.rpc.plugin import Plugin, serve, start
from amlstack.rpc.values import (
    UNKNOWN,
    Secret,
    Unknown,
    ValueRefusedError,
    bare,
    changed_paths,
    decode,
    encode,
    secret_paths,
    unknown_paths,
)

__all__ = [
    "UNKNOWN",
    "Code",
    "Failures",
    "Host",
    "InitFailedError",
    "Plugin",
    "ProviderError",
    "Secret",
    "Unknown",
    "ValueRefusedError",
    "bare",
    "changed_paths",
    "decode",
    "encode",
    "secret_paths",
    "serve",
    "start",
    "unknown_paths",
]
