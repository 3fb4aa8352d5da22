"""The place of uploaded data is azure-ai-ml's, so that both find each other's uploads: its own functions decide."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

from amlstack.snapshot import scan_data
from amlstack.snapshot.folder import address, folder_in_datastore, name_of
from tests.support import azure_ai_ml
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("a.txt", "A2.csv", "b", "sub.d", "sub", "_x", "é.bin", "Zeta", "a-b", "MLTable")


def theirs(path: Path) -> tuple[str, set[str]]:
    assets = azure_ai_ml.module("_utils._asset_utils")
    ignore = assets.get_ignore_file(path)
    digest = assets.get_object_hash(path, ignore)
    if path.is_file():
        return digest, {path.name}
    return digest, {name for _, name in assets.get_upload_files_from_folder(path, ignore_file=ignore)}


def ours(path: Path) -> tuple[str, set[str]]:
    found = scan_data(path)
    return found.hash, {file.relative for file in found.files}


def grow(folder: Path, draw: random.Random, depth: int = 0) -> None:
    for name in draw.sample(NAMES, draw.randint(0 if depth else 1, 5)):
        if draw.random() < 0.4 and depth < 3:
            (folder / name).mkdir()
            grow(folder / name, draw, depth + 1)
        else:
            (folder / name).write_bytes(draw.randbytes(draw.choice((0, 1, 5000))))
    (folder / f"last{depth}.txt").write_text("x")


@for_each("seed", range(30))
def test_any_folder_has_the_hash_and_the_files_of_azure_ai_ml(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    folder = tmp_path / "data"
    folder.mkdir()
    grow(folder, draw)
    rules = draw.sample(["sub", "sub/", "*.txt", "b/", "!sub/a.txt", "/Zeta", "*.csv", "# no", "!*.bin"], 3)
    if seed % 3:
        (folder / draw.choice([".amlignore", ".gitignore"])).write_text("\n".join(rules) + "\n")
    assert ours(folder) == theirs(folder)


def test_links_are_uploaded_as_what_they_lead_to(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "real").mkdir(parents=True)
    (folder / "real" / "x.bin").write_bytes(b"x" * 10)
    (folder / "alias").symlink_to("real")
    (folder / "y.bin").symlink_to("real/x.bin")
    assert ours(folder) == theirs(folder)


def test_one_file_is_an_upload_by_itself(tmp_path: Path) -> None:
    file = tmp_path / "iris.csv"
    file.write_text("1,2\n")
    (tmp_path / ".amlignore").write_text("*.csv\n")  # counts for folders
    found = scan_data(file)
    assert (found.hash, {one.relative for one in found.files}) == theirs(file)
    assert folder_in_datastore(found, name_of(file)) == f"LocalUpload/{found.hash}"
    assert address(found, name_of(file), "workspaceblobstore", "uri_file") == (
        f"azureml://datastores/workspaceblobstore/paths/LocalUpload/{found.hash}/iris.csv"
    )


def test_a_large_folder_that_did_not_change_is_not_read_again(tmp_path: Path, memory: Path, reads: list[str]) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    grow(folder, random.Random(4))
    first = scan_data(folder)
    assert len(reads) == len(first.files)
    assert memory.is_dir()

    reads.clear()
    again = scan_data(folder)
    assert (again.hash, again.digests, reads) == (first.hash, first.digests, [])

    (folder / "empty").mkdir()  # a name that counts, and no file
    assert ours(folder) == theirs(folder)
    (folder / "last0.txt").write_text("y")
    assert ours(folder) == theirs(folder)
    assert "last0.txt" in reads


def test_what_cannot_be_uploaded_is_a_finding(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    folder = tmp_path / "data"
    folder.mkdir()
    assert [each.code for each in scan_data(folder).findings] == ["data-folder-empty"]
    (folder / "link").symlink_to(outside)
    (found,) = scan_data(folder).findings
    assert (found.code, "outside of the data folder" in found.seen) == ("link-leaves-folder", True)
    shutil.rmtree(folder)
    assert [each.code for each in scan_data(folder).findings] == ["input-path-missing"]


def test_data_that_look_like_a_secret_are_a_warning(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / ".env").write_text("x=1\n")
    found = scan_data(folder)
    assert found.hash
    assert [(each.code, str(each.level)) for each in found.findings] == [("secret-in-data", "warning")]
