"""Blocks of the docs are what they say: YAML, TOML and JSON parse, settings are known, and whole job files load."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import yaml

from amlstack.base.paths import PROJECT
from infra.settings.model.stack import Settings
from jobs.loading import load
from tests.support.rows import for_each

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
BLOCKS = [
    (page.name, found["kind"], re.sub(f"(?m)^{found['indent']}", "", found["text"]))
    for page in PAGES
    for found in re.finditer(
        r"(?ms)^(?P<indent> *)```(?P<kind>yaml|toml|json|python)\n(?P<text>.*?)^(?P=indent)```",
        page.read_text("utf-8"),
    )
]
KEYS = {field.alias or name for name, field in Settings.model_fields.items()}


@for_each("page, kind, text", BLOCKS)
def test_a_block_is_read(page: str, kind: str, text: str, tmp_path: Path) -> None:
    if kind == "toml":
        tomllib.loads(text)
    elif kind == "json":
        json.loads(text)
    elif kind == "yaml":
        read: Any = yaml.safe_load(text)
        named = {key.removeprefix("amlstack:") for key in read or () if str(key).startswith("amlstack:")}
        assert named <= KEYS
    else:
        compile(text.replace("…", "..."), "block", "exec")
        if "\njob = Job(" in text and "…" not in text:
            (tmp_path / "job.py").write_text(text)
            for folder in ("src", "docker"):
                (tmp_path / folder).mkdir()
            assert [str(each) for each in load(tmp_path / "job.py").findings if each.level == "error"] == []
