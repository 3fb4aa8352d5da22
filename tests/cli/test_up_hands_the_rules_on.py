"""``amlstack up`` gives the pack the configuration that the stack's settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.base import paths
from amlstack.cli.commands import up

if TYPE_CHECKING:
    from pathlib import Path

STACK = "config:\n  amlstack:location: westeurope\n  amlstack:workspace: aml-team\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "PROJECT", tmp_path)
    (tmp_path / "rules.json").write_text("{}")
    (tmp_path / "Pulumi.sandbox.yaml").write_text(STACK)
    return tmp_path


def test_the_file_of_the_settings_is_the_pack_s(project: Path) -> None:
    (project / "Pulumi.sandbox.yaml").write_text(f"{STACK}  amlstack:policies: rules.json\n")

    assert up._rules() == ("--policy-pack-config", str(project / "rules.json"))


@pytest.mark.parametrize("policies", ["", "  amlstack:policies: none.json\n"])
def test_without_one_the_pack_has_its_own(project: Path, policies: str) -> None:
    (project / "Pulumi.sandbox.yaml").write_text(STACK + policies)

    assert up._rules() == ()
