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
import re
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amlstack.base.files import write_whole
from policies import config
from policies.config import BUILT_IN
from policies.release import version

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

PROJECT = Path(__file__).resolve().parents[2]
NAME = "amlstack-policies"
ROOTS = ("pulumi", "grpcio", "protobuf")
"""What the pack imports besides itself."""

_OF_BASE = re.compile(rb"^ *from amlstack\.base(?:\.(\w+)[\w.]* import|\b import ([\w, ]+))", re.MULTILINE)
_LEFT_OUT = {"pack/archive.py", "analyzer"}
_LEFT_OUT_FOLDERS = ("tenant/",)
"""What judges a stack before an engine runs, which the pack does not."""
_MANIFEST = "PulumiPolicy.yaml"


def files(chosen: Path | None = None) -> dict[str, bytes]:
    """Path in the archive → content.

    Args:
        chosen: The configuration to build in; None for none.

    Raises:
        ValueError: That configuration is wrong.
    """
    found = {f"policies/{name}": content for name, content in _package(PROJECT / "policies")}
    found |= {f"amlstack/catalog/{name}": content for name, content in _package(PROJECT / "amlstack" / "catalog")}
    todo = ["amlstack/__init__.py", "amlstack/base/__init__.py", *_imported_of_base(found)]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = (PROJECT / name).read_bytes()
            todo += _imported_of_base({name: found[name]})
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


def _imported_of_base(sources: Mapping[str, bytes]) -> Iterator[str]:
    """The modules of `amlstack.base` that Python sources import."""
    for name, content in sources.items():
        for module, names in _OF_BASE.findall(content) if name.endswith(".py") else ():
            for each in (module or names).split(b","):
                part = f"amlstack/base/{each.strip().decode()}"
                if (PROJECT / part).is_dir():
                    yield from (path.relative_to(PROJECT).as_posix() for path in (PROJECT / part).glob("*.py"))
                else:
                    yield f"{part}.py"


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
    top = f"{NAME}-{version()}"
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


def _package(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and path.suffix in {".py", ".json", ".yaml"} and not _left_out(name):
            yield name, path.read_bytes()


def _left_out(name: str) -> bool:
    return name in {*_LEFT_OUT, BUILT_IN.name} or name.startswith(_LEFT_OUT_FOLDERS)


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
    sys.stdout.write(f"{path}\nversion {version()}\nsha256  {checksum}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
