"""A stack's resources as the program registers them, without an engine: what a preview would send, for those who judge.

The program itself runs, against a monitor that keeps what it is asked to register. What only Azure gives (the id of a
new identity's principal) is not known.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from amlstack.base.paths import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.account import Account
    from infra.settings import Settings


@dataclass(frozen=True, slots=True)
class RegisteredResource:
    """One resource as the program registers it.

    Attributes:
        token: Its Pulumi type.
        name: Its name in the stack.
        properties: Its inputs, plain; `amlstack.base.pulumi_wire.UNKNOWN` for what only Azure gives.
        subscription: That of its provider.
    """

    token: str
    name: str
    properties: Mapping[str, Any]
    subscription: str


_STATE = (
    "callbacks",
    "dry_run",
    "engine",
    "monitor",
    "monitor_features",
    "organization",
    "project",
    "rpc_manager",
    "stack",
)
"""Of the SDK, what a run of the program sets."""


_OUTPUTS = {"amlstack:network:Isolation": {"mode": "wanted"}}
"""Of our provider, what it decides: a workspace that is made now gets the isolation that is wanted."""


class NotRenderedError(Exception):
    """The program refuses the stack; the message is what it shows."""


def resources_of(settings: Settings, who: Account, *, stack: str) -> tuple[RegisteredResource, ...]:
    """The custom resources of a stack, by type and name; its runs are left out.

    Args:
        settings: The settings, with nothing wrong.
        who: Subscription and tenant.
        stack: The stack's name.

    Raises:
        NotRenderedError: The program refuses the stack.
    """
    from pulumi.runtime.settings import SETTINGS

    found: list[RegisteredResource] = []
    before = {name: getattr(SETTINGS, name) for name in _STATE}
    try:
        # The SDK keeps its state in context variables: those of a copy end with it.
        contextvars.copy_context().run(_run, settings, who, stack, found)
    finally:
        # Yet what is first set in any context becomes the default of all.
        for name, value in before.items():
            setattr(SETTINGS, name, value)
    # Registrations run beside each other, in another order each time.
    return tuple(sorted(found, key=lambda one: (one.token, one.name)))


def _run(settings: Settings, who: Account, stack: str, found: list[RegisteredResource]) -> None:
    from pulumi import RunError
    from pulumi.runtime import mocks
    from pulumi.runtime.stack import run_pulumi_func

    from amlstack.cli.stack.tenant.keeping_monitor import KeepingMonitor, NoMocks
    from infra import program
    from infra.components.workspace.lookup import FUNCTION as LOOK_UP

    async def declared() -> None:
        await program.build(settings, (), who)

    async def whole() -> None:
        subscriptions: dict[str, str] = {}

        def keep(token: str, name: str, inputs: dict[str, Any], urn: str, provider: str) -> None:
            if token.startswith("pulumi:providers:"):
                subscriptions[urn] = str(inputs.get("subscriptionId") or "")
            else:
                # A reference to a provider is its URN and its id.
                subscription = subscriptions.get(provider.rpartition("::")[0]) or who.subscription
                found.append(RegisteredResource(token, name, inputs, subscription))

        # What the settings give by `existing` is taken to be there.
        monitor = KeepingMonitor(keep, {LOOK_UP: {"status": 200, "properties": {}}}, _OUTPUTS)
        mocks.set_mocks(
            NoMocks(), project=_project(), stack=stack, preview=True, logger=_logger(shown), monitor=monitor
        )
        await run_pulumi_func(declared)

    shown: list[str] = []
    with asyncio.Runner() as runner:
        try:
            runner.run(whole())
        except RunError as error:
            raise NotRenderedError(" ".join(shown) or str(error)) from None


def _logger(shown: list[str]) -> logging.Logger:
    """A logger that keeps errors, and prints nothing."""

    class Kept(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            shown.append(record.getMessage())

    logger = logging.Logger("amlstack.rendered", logging.ERROR)
    logger.addHandler(Kept())
    return logger


def _project() -> str:
    import yaml

    return str(yaml.safe_load((PROJECT / "Pulumi.yaml").read_text("utf-8"))["name"])
