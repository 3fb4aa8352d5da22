"""Inputs at https addresses, in the user's cache: each a whole file, with the etag that its service gave it.

Addresses are asked without signing in; storage of Azure that lets nobody in so is asked with the person's own sign-in.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.base.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Callable

_ETAG: Final = "etag"
_SECONDS: Final = (10, 60)
"""The longest waits for a connection, and for the next bytes."""
_PIECE: Final = 1 << 20
_OF_AZURE: Final = re.compile(r"[\w-]+\.(?:blob|dfs)\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)")
"""Hosts that may get a token of the person's: storage of Azure's clouds, and none other."""
_CLOSED: Final = (401, 403, 404, 409)
"""Answers of a container that is not public; 409 is that of an account that has none."""


class _NotFetchedError(Exception):
    """An address could not be fetched; the message is for the user."""


def cached(url: str) -> Path | None:
    """The file that was fetched from an address; None where none was."""
    file = _file(url)
    return file if file.is_file() else None


def _always(_: str) -> bool:
    return True


def fetch(
    url: str, label: str, most: int, told: Callable[[str], None], agreed: Callable[[str], bool] = _always
) -> Finding | None:
    """Fetches an input, unless the cache holds what the service still has.

    Args:
        url: Its address.
        label: Its name, as `--input` takes it.
        most: The largest size in bytes.
        told: Takes what is done, a sentence each.
        agreed: Whether what an address holds is to be fetched.

    Returns:
        The reason why it is not there; None where it is.
    """
    import requests

    try:
        _fetch(url, most, told, agreed)
    except (_NotFetchedError, requests.RequestException, OSError) as error:
        seen = f"`{url}` was not fetched: {error}"
        remedy = f"Download it, and give `--input {label}=PATH`."
        return Finding("input-not-fetched", f"inputs.{label}", seen, f"The input `{label}` is read from there", remedy)
    return None


def _file(url: str) -> Path:
    folder = paths.cache() / "inputs" / hashlib.sha256(url.encode()).hexdigest()[:20]
    return folder / (Path(unquote(urlsplit(url).path)).name or "data")


def _signed_in() -> Callable[[Any], Any]:
    """Puts the person's token for storage on a request; the sign-in is that of every verb."""
    from amlstack.cli.stack_files import client_of
    from amlstack.provider.arm import ArmError
    from amlstack.provider.blobs import STORAGE

    try:
        token = client_of({}).token(STORAGE)
    except ArmError as error:
        raise _NotFetchedError(f"it takes a sign-in: {error}") from None

    def sign(request: Any) -> Any:
        request.headers.update({"Authorization": f"Bearer {token}", "x-ms-version": "2021-08-06"})
        return request

    return sign


def _fetch(url: str, most: int, told: Callable[[str], None], agreed: Callable[[str], bool]) -> None:
    import requests

    file = _file(url)
    tag = file.with_name(f".{_ETAG}")
    asked = {"Accept-Encoding": "identity"}  # the length is then that of the file
    if file.is_file() and tag.is_file():
        asked["If-None-Match"] = tag.read_text("utf-8")
    get = functools.partial(requests.get, url, headers=asked, stream=True, timeout=_SECONDS)
    # Nobody signs in at first: without `auth`, requests would take a password of ~/.netrc.
    with contextlib.ExitStack() as answers:
        answer = answers.enter_context(get(auth=lambda request: request))
        signed = answer.status_code in _CLOSED and _OF_AZURE.fullmatch(urlsplit(answer.url).hostname or "")
        if signed and not answer.history:
            if not agreed(f"{url} with your sign-in to Azure"):
                return
            agreed = _always
            answer = answers.enter_context(get(auth=_signed_in(), allow_redirects=False))
        if answer.status_code == 304:
            told(f"{url} is as it was fetched: {file}")
            return
        if not answer.url.startswith("https://"):
            raise _NotFetchedError(f"it leads to {answer.url}, which is not https")
        if answer.status_code != 200:
            raise _NotFetchedError(f"the service answered {answer.status_code} {answer.reason}")
        size = int(answer.headers.get("Content-Length") or 0)
        _within(size, most)
        what = url + (f": {size / 1e6:.1f} MB" if size else "")
        if not agreed(what):
            return
        told(f"fetching {what}")
        began, written = time.monotonic(), _write(answer, file, size, most)
        if tagged := answer.headers.get("ETag"):
            write_whole(tag, tagged)
        else:
            tag.unlink(missing_ok=True)
        told(f"fetched {written / 1e6:.1f} MB in {time.monotonic() - began:.1f} s: {file}")


def _within(size: int, most: int) -> None:
    if size > most:
        raise _NotFetchedError(f"it has {size / 1e6:.0f} MB or more; `--fetch-at-most` allows {most / 1e6:.0f} MB")


def _whole(written: int, size: int) -> None:
    if size and written != size:
        raise _NotFetchedError(f"it ended after {written} of {size} bytes")


def _write(answer: Any, file: Path, size: int, most: int) -> int:
    """Writes the whole file or none; returns its bytes."""
    file.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with tempfile.NamedTemporaryFile(dir=file.parent, prefix=".part-", delete=False) as part:
        try:
            for piece in answer.iter_content(_PIECE):
                written += len(piece)
                _within(written, most)
                part.write(piece)
            _whole(written, size)
            part.flush()
            os.replace(part.name, file)  # noqa: PTH105 - both lie in one folder
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                Path(part.name).unlink()
            raise
    return written
