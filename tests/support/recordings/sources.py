"""The sources of recordings: a bare repository of Azure's Python clients, and source distributions."""

from __future__ import annotations

import ast
import base64
import gzip
import json
import re
import subprocess
import tarfile
import zipfile
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDERS = ("sdk/ml/azure-ai-ml", "sdk/storage/azure-storage-blob", "sdk/storage/azure-storage-file-datalake")
"""Folders of azure-sdk-for-python with recordings of what the sandbox answers."""


@dataclass(frozen=True)
class Recorded:
    """One exchange as it was recorded; ``headers`` by names in lower-case letters."""

    method: str
    url: str
    sent: Any
    sent_headers: dict[str, str]
    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Recording:
    """A file of exchanges.

    Attributes:
        source: The repository or package, and the path in it.
        date: Day of the first answer, ``YYYY-MM-DD``.
        exchanges: In their order.
    """

    source: str
    date: str
    exchanges: list[Recorded]


def of_repository(repository: Path, ref: str = "HEAD") -> Iterator[Recording]:
    """The recordings of a bare copy of azure-sdk-for-python, by their paths."""
    listed = subprocess.run(
        ["git", "-C", repository, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", "-z", ref, *FOLDERS],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.split("\0")
    paths = [path for path in sorted(listed) if "/tests/recordings/" in path]
    command: list[str | Path] = ["git", "-C", repository, "cat-file", "--batch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        if reader.stdin is None or reader.stdout is None:
            return
        for path in paths:
            reader.stdin.write(f"{ref}:{path}\n".encode())
            reader.stdin.flush()
            header = reader.stdout.readline().split()
            if len(header) != 3:  # listed, but not in this copy
                continue
            text = reader.stdout.read(int(header[2]))
            reader.stdout.read(1)
            if (one := _recording(f"azure-sdk-for-python {path}", text)) is not None:
                yield one
        reader.stdin.close()


def of_distribution(file: Path) -> Iterator[Recording]:
    """The recordings in a source distribution."""
    name = re.sub(r"\.(tar\.gz|zip)$", "", file.name)
    if file.suffix == ".zip":
        with zipfile.ZipFile(file) as archive:
            members = {one: archive.read(one) for one in sorted(archive.namelist()) if _is_recording(one)}
    else:
        with tarfile.open(file) as packed:
            listed = sorted((one for one in packed if _is_recording(one.name)), key=lambda one: one.name)
            members = {one.name: stream.read() for one in listed if (stream := packed.extractfile(one))}
    for path, text in members.items():
        inner = PurePosixPath(*PurePosixPath(path).parts[1:])
        if (one := _recording(f"{name} {inner}", text)) is not None:
            yield one


def _is_recording(path: str) -> bool:
    return "/recordings/" in path and path.endswith((".yaml", ".json"))


def _recording(source: str, text: bytes) -> Recording | None:
    try:
        read = json.loads(text) if source.endswith(".json") else yaml.load(text, Loader=yaml.CSafeLoader)
    except (ValueError, yaml.YAMLError):
        return None
    if not isinstance(read, dict):
        return None
    rows = [_of_proxy(one) for one in read.get("Entries", ())] or [_of_vcr(one) for one in read.get("interactions", ())]
    dates = [one.headers["date"] for one in rows if "date" in one.headers]
    date = parsedate_to_datetime(dates[0]).date().isoformat() if dates else ""
    return Recording(source, date, rows)


def _of_proxy(row: dict[str, Any]) -> Recorded:
    """An exchange as the test proxy writes it."""
    return Recorded(
        row["RequestMethod"],
        row["RequestUri"],
        row["RequestBody"],
        _lower(row["RequestHeaders"]),
        row["StatusCode"],
        _lower(row["ResponseHeaders"]),
        row["ResponseBody"],
    )


def _of_vcr(row: dict[str, Any]) -> Recorded:
    """An exchange as vcrpy writes it."""
    asked, said = row["request"], row["response"]
    body = said["body"].get("string") if isinstance(said["body"], dict) else said["body"]
    status = said["status"]["code"] if isinstance(said["status"], dict) else said["status"]
    return Recorded(
        asked["method"],
        asked["uri"],
        _json(asked.get("body")),
        _lower(asked.get("headers") or {}),
        int(status),
        _lower(said.get("headers") or {}),
        _json(body),
    )


def _lower(headers: dict[str, Any]) -> dict[str, str]:
    return {name.lower(): str(value[0] if isinstance(value, list) else value) for name, value in headers.items()}


def _json(text: Any) -> Any:
    """JSON where it is some; bytes as base64 text, as the test proxy writes them; bytes as Python writes them, read."""
    if isinstance(text, dict):
        text = text.get("string")
    while isinstance(text, str) and re.match(r"b['\"]", text):
        text = ast.literal_eval(text).decode()
    if not text:
        return None
    if isinstance(text, bytes) and text.startswith(b"\x1f\x8b"):
        text = gzip.decompress(text)
    try:
        return json.loads(text)
    except UnicodeDecodeError:
        return base64.b64encode(text).decode()
    except (ValueError, TypeError):
        return text if isinstance(text, str) else None
