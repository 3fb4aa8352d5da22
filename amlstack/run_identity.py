"""The identity of a run: pure functions of its declaration that say when it is another run.

A run is its name, its declaration, its code's content hash, the ``rerun`` word and its owner; nothing that is derived
from these (NCCL variables, shared memory, launch scripts) takes part, so that an upgrade never runs anything again.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

IDENTITY: Final = "amlstack.run_identity"
"""Property of a record: `digest` of what it runs."""

OWNER: Final = "amlstack.owner"
"""Property of a record: ``project/stack`` that created it."""

DERIVED: Final = "amlstack.derived"
"""Property of a record: digest of the body it was created with, metadata left out."""

STACK: Final = "amlstack.stack"
"""Property of a record: the random id of the stack that created it, where that stack has one."""

NAME: Final = "amlstack.name"
"""Property of a record: the job's name."""

RESOURCE: Final = "amlstack.resource"
"""Property of a record: `resource_of` its URN, so that two resources of one name do not end each other's runs."""

ON_EDIT: Final = "amlstack.onEdit"
"""Property of a record: what its job's ``on_edit`` was when it was submitted."""

KEPT_FOR: Final = "amlstack.keptFor"
"""Tag of a record that goes on although its job has moved on: the id of the run that replaced it, or `NO_JOB`."""

NO_JOB: Final = "-"
"""Value of `KEPT_FOR` for a run that goes on although its job was removed from the program."""


def canonical(value: Any) -> str:
    """JSON text that is equal for equal values: sorted keys, no spaces, 1.0 written as 1."""
    return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


def sha256(value: Any) -> str:
    """Hex digest of the canonical JSON of ``value``."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def slow_digest(value: Any, salt: str) -> str:
    """Hex digest of the canonical JSON of secrets, 64 hex digits.

    A run's id has to be the same when nothing is left of the state, so no random key can take part. What stands between
    a digest and the guessing of a secret is the cost of a guess: a tenth of a second and 32 MiB.
    """
    text = canonical(value).encode()
    return hashlib.scrypt(text, salt=salt.encode(), n=2**15, r=8, p=1, maxmem=2**26, dklen=32).hex()


def digest(name: str, declaration: Any, code_hash: str, rerun: str) -> str:
    """Identity without the owner, 64 hex digits: what the state and the record keep.

    A renamed stack or project therefore compares equal to what it was.
    """
    return sha256([name, declaration, code_hash, rerun])


def job_id(name: str, declaration: Any, code_hash: str, rerun: str, owner: str) -> str:
    """The id of the run in the workspace: its name and ten hex digits of its identity, the owner included."""
    return f"{name}-{sha256([name, declaration, code_hash, rerun, owner])[:10]}"


def environment_version(body: dict[str, Any]) -> str:
    """The version of an environment: sixteen hex digits of its content."""
    return content_version(body)


def content_version(content: dict[str, Any]) -> str:
    """A version that is made from content: sixteen hex digits."""
    return sha256(content)[:16]


def owner_of(urn: str) -> str:
    """``project/stack`` out of ``urn:pulumi:stack::project::type::name``.

    Raises:
        ValueError: It is no URN.
    """
    parts = urn.split("::")
    head = parts[0].split(":")
    if len(parts) < 4 or head[:2] != ["urn", "pulumi"] or len(head) != 3:
        raise ValueError(f"{urn} is no resource URN")
    return f"{parts[1]}/{head[2]}"


def resource_of(urn: str) -> str:
    """``type::name`` out of a URN: what a renamed stack or project does not change."""
    return "::".join(urn.split("::")[2:])
