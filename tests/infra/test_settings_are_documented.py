"""docs/settings.md says what the models say."""

from __future__ import annotations

from amlstack.base.paths import PROJECT
from infra.settings import CuratedEnvironment, CustomEnvironment, JobFile, Nodes, Settings, Workspace, reference
from infra.settings.model import Cluster


def test_the_page_is_up_to_date() -> None:
    page = (PROJECT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page == reference.page(), "run: python -m infra.settings.reference > docs/settings.md"


def test_every_setting_is_explained() -> None:
    for model in (Settings, Workspace, Cluster, Nodes, CuratedEnvironment, CustomEnvironment, JobFile):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert f"| `{field.alias or name}` |" in reference.page()
