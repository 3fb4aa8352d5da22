"""Code and what a component includes beside it, as one folder: the files and the hash that azure-ai-ml comes to."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
import zipfile
from typing import TYPE_CHECKING

import pytest

from amlstack.snapshot import scan, staged

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # azure-ai-ml leaves an empty folder there each time
    files = {
        "src/train.py": "import lib",
        "src/.amlignore": "*.log\n/notes.txt\n",
        "src/a.log": "left out",
        "src/__pycache__/train.pyc": "compiled",
        "lib/__init__.py": "x = 1",
        "lib/deep/more.py": "y = 2",
        "lib/.gitignore": "*.tmp\n",
        "lib/b.tmp": "left out",
        "lib/c.log": "left out too",
        "lib/__pycache__/lib.pyc": "compiled",
        "conf.yml": "z: 3",
        "notes.txt": "left out by the code's own rules",
        "pack/a.py": "packed",
        "pack/b.log": "left out",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@contextlib.contextmanager
def theirs(base: Path, includes: list[str]) -> Iterator[Path]:
    """The folder that azure-ai-ml makes of the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml.entities._component._additional_includes import AdditionalIncludes

        made = AdditionalIncludes(origin_code_value="src", base_path=base, configs=includes)
        assert made.validate().passed
        with made.merge_local_code_and_additional_includes() as folder:
            yield folder


def their_hash(folder: Path) -> str:
    """The hash by which azure-ai-ml looks for an earlier upload."""
    from azure.ai.ml._utils._asset_utils import get_content_hash
    from azure.ai.ml.entities._component.code import ComponentIgnoreFile

    return str(get_content_hash(folder, ComponentIgnoreFile(folder)))


@pytest.mark.parametrize(
    "includes", [["lib"], ["conf.yml", "lib"], ["notes.txt"], ["./lib/../conf.yml"], ["lib/deep"], ["lib", "pack"]]
)
def test_a_folder_has_the_hash_of_azure_ai_ml(includes: list[str], base: Path) -> None:
    made = staged(base / "src", [base / name for name in includes], base / "cache")
    with theirs(base, includes) as folder:
        assert scan(made).hash == their_hash(folder)


def test_a_folder_goes_along_as_the_same_zip_file(base: Path) -> None:
    made = staged(base / "src", [base / "lib.zip"], base / "cache")
    with theirs(base, ["lib.zip"]) as folder, zipfile.ZipFile(folder / "lib.zip") as expected:
        with zipfile.ZipFile(made / "lib.zip") as archive:
            assert archive.namelist() == expected.namelist()
        assert scan(made).hash == their_hash(folder)


def test_what_it_holds(base: Path) -> None:
    made = scan(staged(base / "src", [base / "lib", base / "conf.yml", base / "pack.zip"], base / "cache"))
    assert made.root.name == "code_with_additional_includes"
    assert [file.relative for file in made.files] == [
        ".amlignore", "conf.yml", "lib/.gitignore", "lib/__init__.py", "lib/deep/more.py", "pack.zip", "train.py",
    ]  # fmt: skip
    with zipfile.ZipFile(made.root / "pack.zip") as archive:
        assert archive.namelist() == ["pack/", "pack/a.py"]


def test_it_is_made_once_for_each_content(base: Path) -> None:
    def made() -> Path:
        return staged(base / "src", [base / "conf.yml"], base / "cache")

    first = made()
    assert made() == first
    (base / "conf.yml").write_text("z: 4")
    second = made()
    assert second != first
    assert (first / "conf.yml").read_text() == "z: 3"
    assert {path.name for path in (base / "cache").iterdir()} == {first.parent.name, second.parent.name}


def test_what_cannot_be_read_is_scanned_itself(base: Path) -> None:
    (base / "lib" / ".amlignore").write_text("!\n")
    assert staged(base / "src", [base / "lib"], base / "cache") == base / "lib"
    assert scan(base / "lib").findings
