"""Whatever an engine was writing when it was killed, the next one reads the stack."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from amlstack import engine as own

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Engine


@pytest.mark.engine
def test_no_side_car_stands_beside_the_state_to_be_left_empty(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty one no command reads the stack any more: "failed to load checkpoint: EOF"."""
    monkeypatch.setenv("AMLSTACK_HOME", str(tmp_path / "home"))
    (tmp_path / "Pulumi.yaml").write_text("name: scenario\nruntime: python\n")
    env = own.environ(own.Engine(engine.folders, engine.version, official=False), {})
    for words in (("stack", "init", "sandbox"), ("stack", "tag", "set", "a", "b"), ("stack", "export")):
        done = subprocess.run(
            ["pulumi", *words, "--non-interactive"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    written = {path.suffix for path in (tmp_path / "home" / "pulumi").rglob("*") if path.is_file()}
    assert ".json" in written
    assert ".attrs" not in written
