"""The oracle is azure-ai-ml itself: what it would upload and the hash that it would register."""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amlstack.base.findings import errors
from amlstack.snapshot import scan
from amlstack.snapshot.walk import PatternError, parse
from tests.support.examples import examples

if TYPE_CHECKING:
    from types import ModuleType


@pytest.fixture(scope="module")
def azure() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies deprecate each other
        from azure.ai.ml._utils import _asset_utils

    module: ModuleType = _asset_utils
    return module


@pytest.fixture(scope="module")
def wildmatch() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from azure.ai.ml._utils._pathspec import GitWildMatchPattern

    return GitWildMatchPattern


def build(root: Path, tree: dict[str, str]) -> Path:
    """``name -> content``; a content that starts with ``-> `` makes a link."""
    for name, content in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            path.symlink_to(content[3:])
        else:
            path.write_text(content, encoding="utf-8")
    return root


def oracle(azure: ModuleType, root: Path) -> tuple[str, list[str]]:
    ignore = azure.get_ignore_file(root)
    files = azure.get_upload_files_from_folder(root, ignore_file=ignore)
    return azure.get_content_hash(root, ignore), sorted(name for _, name in files)


TREES = {
    "flat": {"train.py": "print(1)", "README.md": "x"},
    "nested, mixed case": {"b/B.py": "1", "B/a.py": "2", "a.py": "3", "Z.py": "", "b/c/d/e.txt": "deep"},
    "empty file only": {"empty": ""},
    "unicode names": {"größe.py": "ä", "日本/語.txt": "x"},
    "gitignore": {".gitignore": "*.pyc\n/data/\n# note\n\n", "a.pyc": "", "x/b.pyc": "", "data/1": "", "x/data/2": "2"},
    "amlignore wins": {".amlignore": "a.txt\n", ".gitignore": "b.txt\n", "a.txt": "a", "b.txt": "b"},
    "empty amlignore wins too": {".amlignore": "", ".gitignore": "b.txt\n", "b.txt": "b"},
    "inner ignore file does not count": {"x/.gitignore": "*\n", "x/a": "1", "b": "2"},
    "negation under an ignored folder": {
        ".gitignore": "out/\n!out/keep.txt\n",
        "out/keep.txt": "k",
        "out/x": "x",
        "y": "",
    },
    "byte order mark": {".gitignore": "\ufeffa.txt\n", "a.txt": "a", "b.txt": "b"},
    "trailing spaces": {".gitignore": "a.txt   \n", "a.txt": "a", "b.txt": "b"},
    "link to a file inside": {"a.txt": "hello", "x/link.txt": "-> ../a.txt"},
    "link to a folder inside": {"lib/m.py": "1", "lib/n/o.py": "2", "vendored": "-> lib", "x": ""},
    "linked folder is judged where it lies": {".gitignore": "alias/\n", "real/a.py": "1", "alias": "-> real"},
    "link out of an ignored folder back in": {".gitignore": "cache/\n", "src/a.py": "1", "cache/src": "-> ../src"},
    "ignored target, other name": {".gitignore": "real/\n", "real/a.py": "1", "alias": "-> real", "b": "2"},
    "link to a link": {"a": "content", "b": "-> a", "c": "-> b"},
}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES.keys())
def test_files_and_hash_are_those_of_azure_ai_ml(azure: ModuleType, tmp_path: Path, tree: dict[str, str]) -> None:
    root = build(tmp_path / "code", tree)
    wanted_hash, wanted_files = oracle(azure, root)
    found = scan(root)
    assert errors(found.findings) == ()
    assert sorted(file.relative for file in found.files) == wanted_files
    assert found.hash == wanted_hash


def test_a_root_that_is_a_link_is_followed(azure: ModuleType, tmp_path: Path) -> None:
    build(tmp_path / "code", {"a.py": "1"})
    (tmp_path / "alias").symlink_to("code")
    assert scan(tmp_path / "alias").hash == oracle(azure, tmp_path / "alias")[0] == scan(tmp_path / "code").hash


NAMES = st.sampled_from(["a", "b.py", "C", "c", "data", "x.txt", ".hidden", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PATTERN_PIECES = st.sampled_from(
    ["a", "b", "c", "data", "*", "**", "/", ".", "py", "txt", "?", "[ab]", "[!a]", "é", "\\", " "]
)
PATTERNS = st.lists(PATTERN_PIECES, min_size=1, max_size=6).map("".join)


@settings(max_examples=examples(0.6), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    names=st.lists(PATHS, min_size=1, max_size=8, unique_by=str.lower),
    contents=st.lists(st.text(max_size=20), min_size=8, max_size=8),
    ignore=st.lists(st.one_of(PATTERNS, PATTERNS.map(lambda text: f"!{text}")), max_size=4),
)
def test_any_tree_under_any_ignore_file(
    azure: ModuleType, names: list[str], contents: list[str], ignore: list[str]
) -> None:
    rules = []
    for line in ignore:
        try:
            rules.append(parse(line))
        except PatternError:
            return
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        for relative, content in zip(names, contents, strict=False):
            path = root / relative
            if path.exists() or any(parent.is_file() for parent in path.parents):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode(errors="replace"))
        (root / ".gitignore").write_text("\n".join(ignore), encoding="utf-8")
        wanted_hash, wanted_files = oracle(azure, root)
        found = scan(root)
        assert sorted(file.relative for file in found.files) == wanted_files
        if wanted_files:
            assert found.hash == wanted_hash


ALPHABET = st.sampled_from([*list("ab*?[]!^-/\\. #"), "**", "[a-b]", "[!", "[]"])


@settings(max_examples=examples(5), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    line=st.lists(ALPHABET, max_size=9).map("".join),
    path=st.lists(st.sampled_from("ab!]^-./ "), max_size=7).map("".join),
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_any_pattern_line(wildmatch: Any, line: str, path: str) -> None:
    try:
        wanted = wildmatch(line)
    except (ValueError, re.error):
        with pytest.raises(PatternError):
            parse(line)
        return
    rule = parse(line)
    if wanted.include is None:
        assert rule is None
        return
    assert rule is not None
    assert rule.excludes == wanted.include
    assert bool(rule.regex.match(path)) == (wanted.match_file(path) is not None), (
        rule.regex.pattern,
        wanted.regex.pattern,
    )


def test_the_hash_does_not_depend_on_the_order_in_which_files_were_made(tmp_path: Path) -> None:
    tree = {f"{letter}/{n}.py": f"{letter}{n}" for letter in "abC" for n in range(5)}
    one = build(tmp_path / "one", tree)
    other = build(tmp_path / "other", dict(reversed(tree.items())))
    os.utime(other / "a/0.py", (0, 0))
    assert scan(one).hash == scan(other).hash
