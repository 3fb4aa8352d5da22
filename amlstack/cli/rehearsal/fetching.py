"""Inputs that lie elsewhere, in the user's cache: whole files and folders, fetched once.

A file at an https address is asked for without signing in, and with the person's own sign-in where it lies in storage
of Azure that lets nobody in so. Folders of Azure storage, datastores and data assets take the sign-in at once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

from amlstack.base import paths
from amlstack.base.files import write_whole
from amlstack.base.findings import Finding, stated

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient

_ETAG: Final = "etag"
_WHOLE: Final = ".whole"
"""The file that names what was fetched beside it, once all of it is there."""
_SECONDS: Final = (10, 60)
"""The longest waits for a connection, and for the next bytes."""
_PIECE: Final = 1 << 20
_OF_AZURE: Final = re.compile(r"[\w-]+\.(?:blob|dfs)\.core\.(?:windows\.net|usgovcloudapi\.net|chinacloudapi\.cn)")
"""Hosts that may get a token of the person's: storage of Azure's clouds, and none other."""
_CLOSED: Final = (401, 403, 404, 409)
"""Answers of a container that is not public; 409 is that of an account that has none."""
_STORED: Final = re.compile(
    rf"""(?xi)
      azureml:(?P<asset>[\w.-]+)[:@](?P<version>[\w.-]+)
    | azureml://(?:subscriptions/(?P<subscription>[^/]+)/resourcegroups/(?P<group>[^/]+)/
        (?:providers/[^/]+/)?workspaces/(?P<workspace>[^/]+)/)?datastores/[^/]+/paths/.*
    | https://(?:{_OF_AZURE.pattern})/(?P<path>[^?]+)"""
)
"""Addresses of data in Azure that take a sign-in: an asset, a datastore, a container."""


class _NotFetchedError(Exception):
    """An address could not be fetched; the message is for the user."""


def in_azure(url: str) -> bool:
    """True for an address in Azure storage: of an asset, a datastore or a container."""
    return _STORED.fullmatch(_https(url)) is not None


def _https(url: str) -> str:
    """The address of a blob for HTTPS: Spark's own forms name the container first."""
    url = re.sub(r"(?i)^(?:wasb|abfs)s?://([^@/]+)@([^/]+)/", r"https://\2/\1/", url)
    return re.sub(r"^(https://[\w-]+)\.dfs\.", r"\1.blob.", url)


class FetchScope(NamedTuple):
    """The surroundings that decide which workspace a name of data means: no other job gets what was fetched for it.

    Attributes:
        root: The folder of the stack, or of the job file where none is named.
        stack: The stack's name; None for none.
    """

    root: Path
    stack: str | None = None


class WantedInput(NamedTuple):
    """An input that lies elsewhere.

    Attributes:
        url: Its address.
        label: Its name, as `--input` takes it.
        is_file: True where it is one file, not a folder.
        scope: Of its job.
    """

    url: str
    label: str
    is_file: bool
    scope: FetchScope


def cached(url: str, scope: FetchScope) -> Path | None:
    """The file or folder that was fetched from an address; None where none was."""
    file = _file(url, scope)
    if (mark := file.with_name(_WHOLE)).is_file():
        return file.with_name(mark.read_text("utf-8"))
    return file if file.is_file() else None


def _always(_: str) -> bool:
    return True


def fetch(
    wanted: WantedInput, most: int, told: Callable[[str], None], agreed: Callable[[str], bool] = _always
) -> Finding | None:
    """Fetches an input, unless the cache holds what the service still has.

    Args:
        wanted: The input.
        most: The largest size in bytes.
        told: Takes what is done, a sentence each.
        agreed: Whether what an address holds is to be fetched.

    Returns:
        The reason why it is not there; None where it is.
    """
    import requests

    from amlstack.cli.logs.files import RefusedNameError
    from amlstack.cli.workspace.downloads import UnreadableAddressError
    from amlstack.cli.workspace.workspace_place import NoWorkspaceError
    from amlstack.provider.arm import ArmError
    from amlstack.rpc import ProviderError

    refused = (NoWorkspaceError, ArmError, ProviderError, UnreadableAddressError, RefusedNameError)
    url, label = wanted.url, wanted.label
    try:
        if wanted.is_file and url.startswith("https://"):
            _fetch(url, most, told, agreed)
        else:
            _fetch_stored(wanted, most, told, agreed)
    except (_NotFetchedError, requests.RequestException, OSError, *refused) as error:
        return stated("input-not-fetched", f"inputs.{label}", url=url, error=error, label=label)
    return None


def _file(url: str, scope: FetchScope | None = None) -> Path:
    known = url if scope is None or not re.match(r"azureml:(?!//subscriptions/)", url) else f"{url}\n{scope}"
    folder = paths.cache() / "inputs" / hashlib.sha256(known.encode()).hexdigest()[:20]
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


def _fetch_stored(wanted: WantedInput, most: int, told: Callable[[str], None], agreed: Callable[[str], bool]) -> None:
    """Fetches a file or folder of Azure storage with the person's sign-in; what is there already stays."""
    from amlstack.cli.stack_files import client_of
    from amlstack.cli.workspace import workspace_place
    from amlstack.cli.workspace.downloads import Downloads
    from amlstack.cli.workspace.options import AskedWorkspace

    url, _, is_file, scope = wanted
    file = _file(url, scope)
    source = _https(url)
    found = _STORED.fullmatch(source)
    if found is None or not agreed(f"{url} with your sign-in to Azure"):
        return
    if found["path"]:
        arm, workspace = client_of({}), ""
    else:
        named = AskedWorkspace(None, found["workspace"], found["group"], found["subscription"])
        place = workspace_place.find(named if named.any else AskedWorkspace(scope.stack), told)
        told(place.line)
        arm, workspace = place.arm, place.workspace
    if found["asset"]:
        source = _uri_of_asset(arm, f"{workspace}/data/{found['asset']}", found["version"])
    downloads = Downloads(arm, workspace, told)
    files = downloads.at(source, file.parent if is_file else file)
    if not files or (is_file and len(files) > 1):
        raise _NotFetchedError("it is a folder" if files else "nothing lies there")
    size = sum(each.size for each in files)
    _within(size, most)
    told(f"fetching {url}: {len(files)} file{'' if len(files) == 1 else 's'}, {size / 1e6:.1f} MB")
    began, name = time.monotonic(), files[0].target.name if is_file else file.name
    mark = file.with_name(_WHOLE)
    mark.unlink(missing_ok=True)
    current = {each.target for each in files}
    for each in [*file.rglob("*")] if not is_file else ():
        if each.is_file() and each not in current:
            each.unlink()  # it lay there when it was fetched before
    downloads.fetch(files)
    write_whole(mark, name)
    told(f"fetched {downloads.received / 1e6:.1f} MB in {time.monotonic() - began:.1f} s: {file.with_name(name)}")


def _uri_of_asset(arm: ArmClient, asset: str, version: str) -> str:
    """The address of a data asset's version, or of its latest one."""
    if version == "latest":
        version = arm.get(asset).body["properties"]["latestVersion"]
    return str(arm.get(f"{asset}/versions/{version}").body["properties"]["dataUri"])


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
