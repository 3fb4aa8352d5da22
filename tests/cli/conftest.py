"""Fixtures that several test modules of the command line share."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from amlstack.cli.main import main
from tests.support.cli.changed_repository import FILES, commit, git, write

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "repository"
    for name, text in FILES.items():
        write(folder, name, text)
    git(folder, "init", "-q", "--template=")
    commit(folder)
    return folder


@pytest.fixture
def repository(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(shutil.copytree(original, tmp_path / "repository"))
    monkeypatch.chdir(folder)
    for name in ("GITHUB_BASE_REF", "GITHUB_REF", "GITHUB_SHA", "SYSTEM_PULLREQUEST_TARGETBRANCH"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def changed(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """The verb's output as JSON, and its exit status where it is not 0."""

    def ask(*words: str, code: int = 0) -> Any:
        assert main(["check", "--changed", *words, "--json"]) == code
        return json.loads(capsys.readouterr().out)

    return ask
