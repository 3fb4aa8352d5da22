"""The version is written in amlstack/__init__.py; everything else derives it or is held to it here."""

from __future__ import annotations

import re
from importlib import metadata

import yaml

from amlstack import __version__
from amlstack.base.paths import PROJECT
from amlstack.rpc.plugin import Plugin


def test_version_of_the_installed_distribution_is_that_of_the_package() -> None:
    assert metadata.version("amlstack") == __version__


def test_version_of_the_provider_is_that_of_the_package() -> None:
    assert Plugin.version == __version__


def test_manifest_of_the_policy_pack_names_the_version_of_the_package() -> None:
    manifest = yaml.safe_load((PROJECT / "policies" / "PulumiPolicy.yaml").read_text("utf-8"))
    assert manifest["version"] == __version__


def test_version_is_written_in_no_other_file() -> None:
    written = re.compile(rf"""["']{re.escape(__version__)}["']""")
    sources = [
        path for top in ("amlstack", "amlnode", "infra", "jobs", "policies") for path in (PROJECT / top).rglob("*.*")
    ]
    files = [path for path in (*sources, PROJECT / "pyproject.toml") if path.suffix in {".py", ".json", ".toml"}]
    found = {str(path.relative_to(PROJECT)) for path in files if written.search(path.read_text("utf-8"))}
    assert found == {"amlstack/__init__.py"}
