"""A part of the table that `make faults` prints: each resource of a stack meets one of its faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.sandbox import injected_faults
from tests.support.stack.infrastructure_faults import Ground, played

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]


def test_every_resource_under_a_fault_is_made_and_removed_by_plain_re_runs(own: Own, tmp_path: Path) -> None:
    operations = ("create", "delete")
    ground = Ground.made(own.stack, own.home, tmp_path, operations)
    ground.share(injected_faults.ALL)
    cells = played(ground, injected_faults.ALL, operations)
    assert [f"{kind}: {cell.wrong}" for found in cells.values() for kind, cell in found.items() if cell.wrong] == []
    fired = injected_faults.injected(own.home)
    assert {fault for fault, *_ in fired} == set(injected_faults.ALL)
    # Each of them met its fault; the rest of what the service holds comes with its parent.
    assert len({path.lower() for _, method, path in fired if method == "DELETE"}) >= 10
    assert {"error"} <= {word for cell in cells["create"].values() for word in cell.at_once}
