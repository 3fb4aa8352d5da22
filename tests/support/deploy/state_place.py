"""A place for states on a sandbox, made by deploy/state; the engine reaches it under Azure's own host names."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from tests.support.harness import STAND_IN, Stack
from tests.support.stack.small_jobs import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.running import Engine, Sandbox


@dataclass(frozen=True)
class Place:
    """The place where states lie, and the key of their secrets.

    Attributes:
        backend: ``azblob://…``, for ``PULUMI_BACKEND_URL``.
        secrets: ``azurekeyvault://…``, for ``--secrets-provider``.
        stacks: What each stack has of its own, by the names of the outputs.
    """

    backend: str
    secrets: str
    account: str
    sandbox: Sandbox
    stacks: dict[str, dict[str, str]] = field(default_factory=dict)

    def blobs(self, stack: str = "") -> dict[str, str]:
        """Name → ETag of each blob in the container, or in that of a stack."""
        return blobs_of(self.sandbox, self.account, f"state-{stack}" if stack else "state")


@contextlib.contextmanager
def unmade(engine: Engine, sandbox: Sandbox, folder: Path) -> Iterator[Stack]:
    """The stack of deploy/state without settings."""
    env = environ(sandbox)
    stack = Stack(PROJECT / "deploy" / "state", folder, engine.folders, name="state", env=env, path=(STAND_IN,))
    try:
        yield stack
    finally:
        stack.close()


def made(engine: Engine, sandbox: Sandbox, folder: Path, name: str, stacks: tuple[str, ...] = ()) -> Place:
    """The place of a team of that name, with a part of its own for each stack."""
    with unmade(engine, sandbox, folder) as stack:
        for key, value in (("name", name), ("location", "westeurope")):
            stack.set(key, value)
        if stacks:
            stack.set("stacks", dict.fromkeys(stacks, "team/training"), path=False)
            stack.set("subscriptions", dict.fromkeys(stacks, sandbox.environ["AZURE_SUBSCRIPTION_ID"]), path=False)
        stack.up().ok()
        outputs = stack.outputs()
    return Place(outputs["backend"], outputs["secrets_provider"], f"{name}state", sandbox, outputs.get("stacks", {}))


def environ(sandbox: Sandbox) -> dict[str, str]:
    """The variables that make all clients use the sandbox, the engine's own drivers for states and secrets too."""
    return {**sandbox.environ, **sandbox.endpoint.azure_names()}


def blobs_of(sandbox: Sandbox, account: str, container: str = "state") -> dict[str, str]:
    """Name → ETag of each blob in an account's container for states."""
    with store_of(sandbox.home) as store:
        return {blob.name: blob.etag for blob in store.blobs.under(account, container)}
