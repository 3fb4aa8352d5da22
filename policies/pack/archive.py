"""Builds the pack as one archive that runs by itself: ``python -m policies.pack.archive`` (``make pack``).

A platform team keeps the archive, its version and its checksum; workload repositories unpack it beside their program
and run it unseen. Inside lie the rules, the catalogue, PulumiPolicy.yaml, and a requirements file with the hashes of
this project's lock. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amlstack import __version__
from amlstack.base.files import write_whole
from policies import config
from policies.checks import own
from policies.config import BUILT_IN

PROJECT = Path(__file__).resolve().parents[2]
NAME = "amlstack-policies"
ROOTS = ("pulumi", "grpcio", "protobuf")
"""Packages that the pack imports besides itself."""

_PACKAGES = ("policies", "amlstack/catalog", "amlstack/base")
_LEFT_OUT = ("policies/pack/archive.py", "policies/tenant/", f"policies/{BUILT_IN.name}")
"""The archive's own builder, what judges a stack before an engine runs, a configuration that was not chosen."""
_MANIFEST = "PulumiPolicy.yaml"


def files(chosen: Path | None = None) -> dict[str, bytes]:
    """Path in the archive → content.

    Args:
        chosen: The configuration to build in; None for none.

    Raises:
        ValueError: That configuration is wrong.
    """
    found = {"amlstack/__init__.py": (PROJECT / "amlstack" / "__init__.py").read_bytes()}
    for path in (path for package in _PACKAGES for path in (PROJECT / package).rglob("*")):
        name = path.relative_to(PROJECT).as_posix()
        if path.is_file() and path.suffix in {".py", ".json", ".toml", ".yaml"} and not name.startswith(_LEFT_OUT):
            found[name] = path.read_bytes()
    found |= {f"rules/{path.name}": path.read_bytes() for path in sorted(own.FOLDER.glob("*.py"))}
    # The engine runs the folder of the manifest; inside the archive that is the folder around the packages.
    found["__main__.py"] = found.pop("policies/__main__.py")
    found[_MANIFEST] = found[f"policies/{_MANIFEST}"].replace(b"../.venv", b".venv")
    found["analyzer"] = (PROJECT / "policies" / "analyzer").read_bytes().replace(b"$pack/../.venv", b"$pack/.venv")
    found["requirements.txt"] = requirements((PROJECT / "uv.lock").read_text(encoding="utf-8")).encode()
    found["LICENSE"] = (PROJECT / "LICENSE").read_bytes()
    if chosen is not None:
        config.read(config.load(chosen))
        found[f"policies/{BUILT_IN.name}"] = chosen.read_bytes()
    return found


def build(out: Path, chosen: Path | None = None) -> tuple[Path, str]:
    """Write the archive and its checksum.

    Args:
        out: Folder to write into; made when missing.
        chosen: The configuration to build in; None for none.

    Returns:
        The archive and the sha256 of its bytes.

    Raises:
        ValueError: That configuration is wrong.
    """
    top = f"{NAME}-{__version__}"
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in sorted(files(chosen).items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode = len(content), 0o755 if name == "analyzer" else 0o644
            archive.addfile(entry, io.BytesIO(content))
    packed = gzip.compress(raw.getvalue(), mtime=0)
    checksum = hashlib.sha256(packed).hexdigest()
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{top}.tar.gz"
    write_whole(path, packed)
    write_whole(out / f"{path.name}.sha256", f"{checksum}  {path.name}\n")
    return path, checksum


def requirements(lock: str) -> str:
    """The requirements of the pack, pinned with hashes: the part of uv.lock that its imports reach.

    Args:
        lock: The content of uv.lock.
    """
    packages = {package["name"]: package for package in tomllib.loads(lock)["package"]}
    markers: dict[str, set[str]] = {}
    todo = [(name, "") for name in ROOTS]
    while todo:
        name, marker = todo.pop()
        if marker in markers.setdefault(name, set()):
            continue
        markers[name].add(marker)
        needed = packages[name].get("dependencies", ())
        todo += ((one["name"], one.get("marker", marker)) for one in needed)
    return "".join(_pinned(packages[name], markers[name]) for name in sorted(markers))


def _pinned(package: dict[str, Any], markers: set[str]) -> str:
    condition = "" if "" in markers else f" ; {' or '.join(sorted(f'({one})' for one in markers))}"
    built = [*package.get("wheels", ()), *([package["sdist"]] if "sdist" in package else ())]
    hashes = "".join(f" \\\n    --hash={one['hash']}" for one in built)
    return f"{package['name']}=={package['version']}{condition}{hashes}\n"


def main(words: Sequence[str] | None = None) -> int:
    """Build the archive and say where it lies, its version and its checksum."""
    parser = argparse.ArgumentParser(
        prog="python -m policies.pack.archive", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--out", type=Path, default=PROJECT / "dist", help="folder to write into (dist)")
    parser.add_argument("--config", type=Path, help="configuration to build in, as --policy-pack-config takes it")
    asked = parser.parse_args(words)
    if asked.config is not None and not asked.config.is_file():
        sys.stderr.write(f"There is no file {asked.config}. --config names the configuration to build in.\n")
        return 2
    try:
        path, checksum = build(asked.out, asked.config)
    except ValueError as error:
        sys.stderr.write(f"{asked.config}: {error}\n")
        return 2
    sys.stdout.write(f"{path}\nversion {__version__}\nsha256  {checksum}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
