"""Microsoft's tests in the user's cache: the sdist that uv.lock names, and the job files that the sdist leaves out."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from amlstack.base import paths

ADDRESS: Final = "https://github.com/Azure/azure-sdk-for-python"
"""The repository of the sdist; it tags a release as ``<package>_<version>``."""
CONFIGS: Final = "sdk/ml/azure-ai-ml/tests/test_configs"
PACKAGES: Final = (
    "azure-common==1.1.28",
    "azure-mgmt-msi==7.1.0",
    "mldesigner==0.1.0b23",
    "mock==5.2.0",
    "pytest-mock==3.17.0",
)
"""Beside what this project's environment has; what they need in turn is there."""
_LOCKED: Final = re.compile(
    r'name = "azure-ai-ml"\nversion = "(?P<version>[^"]+)".*?\nsdist = {[^}]*hash = "sha256:(?P<hash>\w+)"', re.DOTALL
)


class SourceError(Exception):
    """Microsoft's tests cannot be had; the message says why and what helps."""


def locked() -> tuple[str, str]:
    """Version and SHA-256 of the sdist of azure-ai-ml in uv.lock."""
    found = _LOCKED.search((paths.PROJECT / "uv.lock").read_text("utf-8"))
    if found is None:
        raise SourceError("uv.lock names no sdist of azure-ai-ml.")
    return found["version"], found["hash"]


def _cache() -> Path:
    return paths.cache() / "microsoft"


def sdist() -> Path:
    """The unpacked sdist, downloaded by pip on first use, and only if it is the locked one.

    Raises:
        SourceError: The package index cannot be reached, or has another file.
    """
    version, digest = locked()
    folder = _cache() / f"azure-ai-ml-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        asked = ["--no-deps", "--no-binary", "azure-ai-ml", "--dest", made, f"azure-ai-ml=={version}"]
        _run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *asked], "pip")
        archive = next(Path(made).glob("*.tar.gz"))
        if (seen := hashlib.sha256(archive.read_bytes()).hexdigest()) != digest:
            raise SourceError(f"{archive.name} has SHA-256 {seen}; uv.lock says {digest}.")
        with tarfile.open(archive) as opened:
            opened.extractall(made, filter="data")
        next(path for path in Path(made).iterdir() if path.is_dir()).rename(folder)
    return folder


def packages() -> Path:
    """A folder for PYTHONPATH with the packages that the tests need beside ours.

    Raises:
        SourceError: The package index cannot be reached.
    """
    folder = _cache() / f"packages-{hashlib.sha256(' '.join(PACKAGES).encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            asked = ["--no-deps", "--target", f"{made}/packages", *PACKAGES]
            _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *asked], "pip")
            (Path(made) / "packages").rename(folder)
    return folder


def configs(override: str = "", address: str = ADDRESS) -> Path:
    """The folder ``test_configs`` of the tests.

    Args:
        override: A folder that has them already.
        address: The git repository that is asked otherwise, once.

    Raises:
        SourceError: Neither can be had.
    """
    if override:
        if not (Path(override) / "command_job").is_dir():
            raise SourceError(f"{override} is no folder test_configs: it has no command_job in it.")
        return Path(override)
    version, _ = locked()
    folder = _cache() / f"test_configs-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        how = ["--depth=1", "--filter=blob:none", "--no-checkout", "--quiet"]
        _run(["git", "clone", *how, f"--branch=azure-ai-ml_{version}", address, made], "git")
        _run(["git", "-C", made, "sparse-checkout", "set", CONFIGS], "git")
        _run(["git", "-C", made, "checkout", "--quiet"], "git")
        (Path(made) / CONFIGS).rename(folder)
    return folder


def _run(words: list[str], what: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise SourceError(f"{what} did not get Microsoft's tests: {' '.join(said)}")


def laid_out(folder: Path, configs_folder: Path | None) -> Path:
    """A copy of the tests that they may write to, with the job files where they look for them; the sdist's own win."""
    if configs_folder is not None:
        shutil.copytree(configs_folder, folder / "tests" / "test_configs")
    shutil.copytree(sdist(), folder, dirs_exist_ok=True)
    return folder
