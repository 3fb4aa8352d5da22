"""The value of the fixture ``stand_in``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.azure_native.stand_in_wire import StandIn


class MakeStandIn(Protocol):
    def __call__(self, environ: Mapping[str, str], **config: str) -> StandIn: ...
