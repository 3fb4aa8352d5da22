"""Pulumi's SDK as this program uses it: without most of what a registration costs, and with a quick end after Ctrl-C.

The SDK has no settings for it. Where a later SDK has other functions, nothing is left out and nothing else changes;
`tests/infra/test_the_engine_sees_what_typed_classes_register.py` sees it.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import config as engine_config
from pulumi.runtime import resource as sdk
from pulumi.runtime import rpc
from pulumi.runtime.proto import source_pb2

from infra import resource_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEBUG = "AMLSTACK_DEBUG"
"""Any value has the SDK send its debug messages, which `pulumi up --debug` prints, and where each resource is made."""

_READ: Mapping[str, frozenset[str]] = {
    resource_types.JOB: frozenset({"jobId", "status"}),
    resource_types.COMPUTE: frozenset({"identity"}),
}
"""The properties that the program reads of resources that come by the thousand, by their type."""

_transfer: Callable[[pulumi.Resource, pulumi.Inputs, bool], Any] = rpc.transfer_properties


def leave_out_unread() -> None:
    """Have the SDK leave out what nothing reads, from here on."""
    rpc.transfer_properties = _transfer_what_is_read
    if not os.environ.get(DEBUG):
        pulumi.log.debug = _without_words
        # Where a resource was made is a dozen lines of ours and of the SDK's in the state, which the engine writes
        # after every step. A resource comes from a setting or a job file, and those lines do not name it.
        sdk._get_stack_trace = source_pb2.StackTrace  # noqa: SLF001


def config() -> Mapping[str, str]:
    """The engine's configuration, ``namespace:key`` → value."""
    return {**engine_config.get_config_env(), **engine_config.CONFIG.get()}


def _transfer_what_is_read(res: pulumi.Resource, props: pulumi.Inputs, custom: bool) -> Any:
    # The SDK makes an output of every property, eight objects each: of ten thousand jobs they were most of 1.5 GB.
    read = _READ.get(res.pulumi_resource_type)
    if read is not None:
        props = {name: value for name, value in props.items() if name in read}
    return _transfer(res, props, custom)


def _without_words(*_: object, **__: object) -> None:
    # The SDK sends four debug messages for each resource, and waits for each: a fifth of a large preview. The engine
    # does not let the program know whether anybody reads them.
    return


_INTERRUPTED = 130


def leave_at_once() -> None:
    """Have this process end without a wait where the engine, or a signal, has ended the program.

    The engine's Python host runs registrations in threads and, whatever ended the program, waits for all of them. After
    a Ctrl-C the engine answers none of them any more, and kills the host after five seconds of that. What was in flight
    is the engine's to record.

    To be called while the program runs. Where the SDK has another way of running it, nothing changes.
    """
    executor = getattr(asyncio.get_running_loop(), "_default_executor", None)
    if executor is not None:
        executor.shutdown = _leaving(executor.shutdown)


def _leaving(shutdown: Callable[..., Any]) -> Callable[..., Any]:
    def left(*args: Any, **kwargs: Any) -> Any:
        # A signal is a KeyboardInterrupt; an engine that is ending, a SystemExit of the SDK. An error that the program
        # has shown was handled by now: what is under way then goes on, and is waited for.
        ended = sys.exc_info()[1]
        if isinstance(ended, KeyboardInterrupt | SystemExit):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(_INTERRUPTED)
        return shutdown(*args, **kwargs)

    return left
