"""What the SDK does for each resource and this program has no use for, left out: most of what a registration costs.

The SDK has no settings for it, so functions of it are replaced while the program runs. Where a later SDK has others,
nothing is left out and nothing else changes; `tests/infra/test_the_engine_sees_what_typed_classes_register.py` sees it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.runtime import resource as sdk
from pulumi.runtime import rpc
from pulumi.runtime.proto import source_pb2

from infra.components import tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

DEBUG = "AMLSTACK_DEBUG"
"""Any value has the SDK send its debug messages, which `pulumi up --debug` prints, and where each resource is made."""

_READ: Mapping[str, frozenset[str]] = {
    tokens.JOB: frozenset({"jobId", "status"}),
    tokens.COMPUTE: frozenset({"identity"}),
}
"""The properties that the program reads of resources that come by the thousand, by their type."""

_transfer: Callable[[pulumi.Resource, pulumi.Inputs, bool], Any] = rpc.transfer_properties


def use() -> None:
    """Have the SDK leave out what nothing reads, from here on."""
    rpc.transfer_properties = _transfer_what_is_read
    if not os.environ.get(DEBUG):
        pulumi.log.debug = _without_words
        # Where a resource was made is a dozen lines of ours and of the SDK's in the state, which the engine writes
        # after every step. A resource comes from a setting or a job file, and those lines do not name it.
        sdk._get_stack_trace = source_pb2.StackTrace  # noqa: SLF001


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
