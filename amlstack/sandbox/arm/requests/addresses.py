"""Paths of requests, whose names become names of files, rows and folders: none of them leads anywhere else."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from amlstack.sandbox.arm.refusals import Refused, invalid

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_STORED: Final = ("azureml:", "https:", "http:", "wasbs:", "abfss:")
"""How addresses of stored data begin; those of files of this machine are as its user says."""
UP: Final = frozenset({".", ".."})


def read(raw: str) -> str:
    """The path of a request to the resource manager or a data plane, decoded.

    Raises:
        Refused: 400; a part of it is ``.`` or ``..`` or holds a slash, a backslash or a control character, written
            out or percent-encoded, or is no UTF-8.
    """
    return "/".join(_part(word) for word in raw.split("/"))


def check_name(name: str) -> str:
    """The name of a blob, decoded; it may hold slashes.

    Raises:
        Refused: 400; it begins with a slash, or one of its parts is none that `read` takes.
    """
    wrong = "begins with a slash" if name.startswith("/") else next(filter(None, map(_wrong, name.split("/"))), "")
    if wrong:
        message = f"The requested URI does not represent any resource on the server: it {wrong}."
        raise Refused(400, "InvalidUri", message)
    return name


def decoded(raw: str) -> str:
    """Percent-encoded text as text.

    Raises:
        Refused: 400; it is no UTF-8.
    """
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise Refused(400, "InvalidUri", "The path of the request is no UTF-8.") from None


def check_folder_name(name: str, where: str) -> None:
    """A name that becomes the name of a folder: of a job's input or output, an account, a container.

    Raises:
        Refused: 400; it is empty, has a slash, or is no name by `read`.
    """
    wrong = "is empty" if not name else "holds a slash" if "/" in name else _wrong(name)
    if wrong:
        raise invalid(where, f"the name '{name}' {wrong}.")


def check_uri(uri: str, where: str) -> None:
    """The address of data in a datastore or a container.

    Raises:
        Refused: 400; a part of its path is ``..``, written out or percent-encoded, or holds a control character.
    """
    if not uri.lower().startswith(_STORED):
        return
    parts = unquote(uri.partition("?")[0]).replace("\\", "/").split("/")
    if ".." in parts or _CONTROL.search(unquote(uri)):
        raise invalid(where, f"'{uri}' leads out of its folder, or holds a control character.")


def _part(word: str) -> str:
    name = decoded(word)
    wrong = "holds a percent-encoded slash" if "/" in name else _wrong(name)
    if wrong:
        message = f"The path of the request {wrong}. Its parts are names, each without slashes and control characters."
        raise Refused(400, "InvalidUri", message)
    return name


def _wrong(name: str) -> str:
    if name in UP:
        return f"has the part '{name}'"
    if "\\" in name:
        return "holds a backslash"
    return "holds a control character" if _CONTROL.search(name) else ""
