"""A layer over a stand-in for jobs that install packages while they run: what pip does stays in the job's own folder.

On the cluster `pip install` in a command changes the node's container. Here the stand-in is one for all jobs, and the
pip of a shell may be the machine's own. So such a job gets an environment of its own per node: the stand-in's packages
are seen through it, and what is installed lies in it.
"""

from __future__ import annotations

import configparser
import os
import re
from itertools import chain
from pathlib import Path
from typing import Final

from amlstack.base import paths
from amlstack.code_reading.code_files import texts

_PIP: Final = re.compile(
    r"\bpip3?['\"]?[\s,]+['\"]?(?:install|uninstall|list|freeze|show|download|wheel|check|config|--)"
    r"|-m['\"]?[\s,]+['\"]?pip\b|\bsetup\.py['\"]?[\s,]+['\"]?(?:install|develop)|\buv pip\b|\bpip\.main\b"
)
_PATCHED: Final = ("pip", "pip3")
_CALL: Final = '#!/bin/sh\nexec "$(dirname -- "$(realpath -- "$0")")"/python -m pip "$@"\n'
_SETTINGS: Final = (
    "index-url",
    "extra-index-url",
    "find-links",
    "no-index",
    "trusted-host",
    "cert",
    "client-cert",
    "proxy",
    "timeout",
    "retries",
)
"""A job's pip needs these of the machine's pip settings to reach the same packages."""


def wanted(command: str, work: Path) -> bool:
    """True where a job's command, or a script of its code, uses pip.

    Args:
        command: The command.
        work: The code, in its working folder.
    """
    return any(_PIP.search(text) for text in chain((command,), texts(work, (".py", ".sh"))))


def make(built: Path, layer: Path) -> Path:
    """Makes the layer over a stand-in; its folder, to be used as the stand-in's.

    Args:
        built: The stand-in's folder.
        layer: A folder that is not there yet.
    """
    layer.mkdir(parents=True, mode=0o700)
    for entry in built.iterdir():
        if entry.name == "pyvenv.cfg":
            (layer / entry.name).write_bytes(entry.read_bytes())
        elif entry.name not in {"bin", "lib", "lib64"}:
            (layer / entry.name).symlink_to(entry)
    (layer / "lib").mkdir()
    for entry in (built / "lib").iterdir():
        if entry.is_dir() and re.fullmatch(r"python\d+\.\d+", entry.name):
            packages = layer / "lib" / entry.name / "site-packages"
            packages.mkdir(parents=True)
            lines = [f"import site; site.addsitedir({str(entry / 'site-packages')!r})"]
            if not (entry / "site-packages" / "pip").is_dir() and (wheel := _wheel(built, entry.name)) is not None:
                lines.append(str(wheel))
            (packages / "_stand_in.pth").write_text("\n".join(lines) + "\n")
        else:
            (layer / "lib" / entry.name).symlink_to(entry)
    _programs(built / "bin", layer / "bin")
    (layer / "pip.conf").touch(mode=0o600)
    (layer / "pip.conf").write_text(_configuration())
    return layer


def _programs(source: Path, target: Path) -> None:
    """Programs as they are, and scripts as copies: a script runs the Python that lies beside it."""
    target.mkdir()
    for entry in source.iterdir():
        if entry.is_symlink():
            (target / entry.name).symlink_to(entry.readlink())
        elif entry.is_file() and entry.name not in _PATCHED:
            with entry.open("rb") as file:
                is_script = file.read(2) == b"#!"
            if is_script:
                copy = entry.read_bytes().replace(f"#!{source}/".encode(), f"#!{target}/".encode(), 1)
                (target / entry.name).write_bytes(copy)
                (target / entry.name).chmod(0o755)
            else:
                (target / entry.name).symlink_to(entry)
    for name in _PATCHED:
        (target / name).write_text(_CALL)
        (target / name).chmod(0o755)


def _wheel(built: Path, python: str) -> Path | None:
    """The pip that comes with the stand-in's Python, as a wheel that Python imports from."""
    home = (built / "bin" / "python").resolve().parent.parent
    folders = (home / "lib" / python / "ensurepip" / "_bundled", Path("/usr/share/python-wheels"))
    return next((wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))), None)


def _configuration() -> str:
    """The machine's own settings of pip, as a file: a job has neither its user's home nor environment."""
    read = configparser.RawConfigParser(strict=False)
    user = Path.home()
    for file in (
        user / ".pip" / "pip.conf",
        user / ".config" / "pip" / "pip.conf",
        os.environ.get("PIP_CONFIG_FILE", ""),
    ):
        try:
            read.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
    found = {name: read["global"][name] for name in _SETTINGS if read.has_option("global", name)}
    if index := os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"):
        found["index-url"] = index
    found |= {
        name: value
        for name in _SETTINGS
        if (value := os.environ.get(f"PIP_{name.upper().replace('-', '_')}")) is not None
    }
    found["cache-dir"] = str(paths.cache() / "pip")
    found["disable-pip-version-check"] = "true"
    found["root-user-action"] = "ignore"
    return "[global]\n" + "".join(f"{name} = {value}\n" for name, value in found.items())
