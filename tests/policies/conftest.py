"""Shows resources to the pack through the analyzer protocol, as the engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policies.pack.server import NAME, Pack
from tests.support.policies.showing import SIZE_RULES_ALONE, TODAY, request, shown

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def analyze() -> Callable[..., list[tuple[str, str, str]]]:
    """Judges one resource by the rules on sizes, or as configured: ``(type, properties, config=…) -> [(level, …)]``."""

    def judge(token: str, props: dict[str, Any], config: dict[str, Any] | None = None) -> list[tuple[str, str, str]]:
        pack = Pack(NAME, "0.0.1", TODAY, SIZE_RULES_ALONE if config is None else config)
        return shown(pack.Analyze(request(token, props), None))

    return judge
