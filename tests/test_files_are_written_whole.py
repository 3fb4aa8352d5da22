"""Files for a person or a later command are written whole or not at all, by one function."""

from __future__ import annotations

import ast
import re
from typing import Final

from amlstack.base import paths
from tests.support.source_trees import tree_of

ROOMS: Final = (
    "amlstack/base", "amlstack/cli", "amlstack/engine", "amlstack/images", "amlstack/report", "amlstack/sandbox",
    "infra", "policies",
)  # fmt: skip
OTHERWISE: Final = {
    "amlstack/base/files.py": "the function itself, and a cache: what is cut off counts as not kept",
    "amlstack/base/home.py": "a new name beside the marker, put in place by a link or a rename",
    "amlstack/sandbox/protocol/entra.py": "a new name, then a rename: read by the server alone",
    "amlstack/sandbox/azure_native/server.py": "a new name, then a rename: one for each resource, too many to wait for",
    "amlstack/sandbox/planes/blobs/content.py": "a new file, which the tables name when it is whole",
    "amlstack/sandbox/planes/blobs/wire.py": "a new file, which the tables name when it is whole",
    "amlstack/sandbox/gpu_code.py": "made anew for each job",
    "amlstack/images/building.py": "a lock, and a scratch folder of this process",
    "amlstack/sandbox/store/folders.py": "made anew for each job",
    "amlstack/sandbox/runner/namespace.py": "files of the kernel",
    "amlstack/sandbox/runner/prepare.py": "made anew for each job",
    "amlstack/sandbox/runner/pip_layer.py": "made anew for each job",
    "amlstack/sandbox/scale.py": "made anew for each job",
    "amlstack/sandbox/scheduling.py": "a new name, then a rename",
    "amlstack/sandbox/server/serve.py": "a lock without content",
    "amlstack/sandbox/server/daemon.py": "a lock without content, and an authority that nobody has seen yet",
    "policies/pack/archive.py": "a tar in memory",
}
"""Files that write in another way, and why that is no loss."""
WRITES: Final = re.compile(r"write_(text|bytes)|open\b")
"""The words without which no file is written: most of the time goes into looking at every node."""


def test_files_are_written_whole_or_a_reason_stands_here() -> None:
    found = {
        str(path.relative_to(paths.PROJECT))
        for room in ROOMS
        for path in sorted((paths.PROJECT / room).rglob("*.py"))
        if WRITES.search(path.read_text("utf-8")) and any(map(_writes, ast.walk(tree_of(path))))
    }
    assert found - set(OTHERWISE) == set(), "write by amlstack.base.files.write_whole"
    assert set(OTHERWISE) - found - {"amlstack/base/files.py"} == set()


def _writes(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    given = (*node.args, *(word.value for word in node.keywords))
    modes = {str(each.value) for each in given if isinstance(each, ast.Constant)}
    return name in {"write_text", "write_bytes"} or (name == "open" and not modes.isdisjoint({"w", "wb", "w+", "wb+"}))
