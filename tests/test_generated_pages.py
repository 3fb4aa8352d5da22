"""Pages of docs that are generated are what the code renders now."""

from __future__ import annotations

import pytest

from amlstack.base.paths import PROJECT
from tools.docs.tables import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_generated_page_is_current(name: str) -> None:
    assert (PROJECT / "docs" / name).read_text("utf-8") == PAGES[name](), "run: make docs"
