"""Every setting has a description, and docs/reference/settings.md shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from amlstack.base.models import described
from amlstack.base.paths import PROJECT
from tests.support.rows import for_each
from tools.docs.tables import SETTINGS

if TYPE_CHECKING:
    from pydantic import BaseModel


@for_each("model", SETTINGS)
def test_every_setting_is_explained(model: type[BaseModel]) -> None:
    page = (PROJECT / "docs/reference/settings.md").read_text("utf-8")
    meanings = described(model)
    for name, field in model.model_fields.items():
        assert meanings.get(name), f"{model.__name__}.{name}"
        assert f"| `{field.alias or name}` |" in page
