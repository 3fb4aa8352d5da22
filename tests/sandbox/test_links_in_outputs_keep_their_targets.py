"""A link that a job leaves among its outputs: its blob has the text, and what it leads to is not touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.files import storage

if TYPE_CHECKING:
    from pathlib import Path

    from amlstack.sandbox.store.store import Store


@pytest.mark.parametrize("linked", [True, False])
def test_a_blob_of_an_output_has_its_text_and_a_links_target_stays_writable(
    store: Store, tmp_path: Path, linked: bool
) -> None:
    own, output = tmp_path / "own.txt", tmp_path / "output.txt"
    own.write_text("words")
    own.chmod(0o644)
    if linked:
        output.symlink_to(own)
    else:
        output.write_text("words")

    fresh = store.blobs.fresh()
    storage.second_name(output, fresh)
    blob = store.blobs.put("account", "container", "outputs/output.txt", fresh)

    assert blob.path.read_text() == "words"
    assert not blob.path.is_symlink()
    assert own.stat().st_mode & 0o777 == 0o644
