"""Every setting has a description, and docs/settings.md shows it."""

from __future__ import annotations

from infra.settings import CuratedEnvironment, CustomEnvironment, JobFile, Nodes, Settings, Workspace
from infra.settings.model import Cluster
from tools.docs import settings


def test_every_setting_is_explained() -> None:
    for model in (Settings, Workspace, Cluster, Nodes, CuratedEnvironment, CustomEnvironment, JobFile):
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name}"
            assert f"| `{field.alias or name}` |" in settings.page()
