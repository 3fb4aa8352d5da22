"""Source ``release``: the pinned official release, its SHA-256 verified before anything in it is unpacked."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import tarfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from shutil import copyfileobj

from . import store
from .model import VERSION, FoundEngine, NoEngineError, StepProgress, Unavailable, target

GITHUB = f"https://github.com/pulumi/pulumi/releases/download/v{VERSION}"
TARBALLS = ("https://get.pulumi.com/releases/sdk/{file}", f"{GITHUB}/{{file}}")
CHECKSUMS = f"{GITHUB}/pulumi-{VERSION}-checksums.txt"
MIRROR = "AMLSTACK_PULUMI_RELEASES"
"""Environment variable: base URL of an in-house copy of the release files (tarball and checksum file in one folder)."""

CONNECT_TIMEOUT = 6.0
"""Seconds until an unreachable host is given up, name look-up included: behind a firewall the build comes next."""
STALL_TIMEOUT = 30.0
CHUNK = 1 << 18
SUPPORTED = {("linux", "x64"), ("linux", "arm64"), ("darwin", "x64"), ("darwin", "arm64")}


def recipe() -> str:
    """The platform, on which a cached copy depends besides the version."""
    return hashlib.sha256("/".join(target()).encode()).hexdigest()


def fetch() -> FoundEngine:
    """Downloads, verifies and unpacks the release into the cache.

    Raises:
        Unavailable: No release for this platform, host not reachable, or the download broke off.
        NoEngineError: The file does not have the published checksum.
    """
    system, machine = target()
    if (system, machine) not in SUPPORTED:
        raise Unavailable(f"there is no release for {system}-{machine}")
    file = f"pulumi-v{VERSION}-{system}-{machine}.tar.gz"
    tarballs, checksums = _places(file)
    expected = _published(checksums, file)

    def fill(folder: Path) -> None:
        archive = folder / file
        url = _download(tarballs, archive, expected)
        _unpack(archive, folder, url)
        archive.unlink()

    return store.make("release", recipe(), fill)


def _places(file: str) -> tuple[list[str], str]:
    base = os.environ.get(MIRROR, "").rstrip("/")
    if not base:
        return [url.format(file=file) for url in TARBALLS], CHECKSUMS
    _refuse_plain(base)
    return [f"{base}/{file}"], f"{base}/pulumi-{VERSION}-checksums.txt"


def _published(url: str, file: str) -> str:
    def read() -> str:
        with _open(url, CONNECT_TIMEOUT) as answer:
            return str(answer.read(1 << 20).decode("utf-8", "replace"))

    text = _within(CONNECT_TIMEOUT, read, url)
    found = re.search(rf"^([0-9a-fA-F]{{64}})\s+\*?{re.escape(file)}\s*$", text, re.MULTILINE)
    if not found:
        raise Unavailable(f"{url} names no SHA-256 for {file}")
    return found[1].lower()


def _download(urls: list[str], archive: Path, expected: str) -> str:
    reasons: list[str] = []
    for url in urls:
        try:
            digest = _stream(url, archive)
        except (OSError, http.client.HTTPException) as error:
            reasons.append(f"{url}: {_reason(error)}")
            continue
        if digest != expected:
            archive.unlink()
            raise NoEngineError(
                f"{url}\nhas SHA-256  {digest}\npublished is {expected}\nThe file was deleted, nothing of it used. "
                "A proxy that rewrites downloads is the usual cause; if there is none, tell Pulumi.\n"
                f"To build the same version from source instead: AMLSTACK_ENGINE=build make up"
            )
        return url
    raise Unavailable("; ".join(reasons))


def _stream(url: str, archive: Path) -> str:
    digest, size = hashlib.sha256(), 0
    with _open(url, STALL_TIMEOUT) as answer, archive.open("wb") as out:
        total = int(answer.headers.get("Content-Length") or 0)
        with StepProgress(f"downloading Pulumi {VERSION} from {urllib.parse.urlsplit(url).hostname}") as progress:
            while chunk := answer.read(CHUNK):
                out.write(chunk)
                digest.update(chunk)
                size += len(chunk)
                progress.update(f"{size / 1e6:.0f} of {total / 1e6:.0f} MB" if total else f"{size / 1e6:.0f} MB")
            if total and size != total:
                raise ConnectionError(f"broke off after {size} of {total} bytes")
    return digest.hexdigest()


def _unpack(archive: Path, folder: Path, url: str) -> None:
    # Regular files by their last name only: whatever paths or links the archive holds, nothing leaves the folder.
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                name = Path(member.name).name
                wanted = name == "pulumi" or (name.startswith("pulumi-") and "python" in name)
                if not member.isfile() or not wanted or (source := tar.extractfile(member)) is None:
                    continue
                with source, (folder / name).open("wb") as out:
                    copyfileobj(source, out)
                (folder / name).chmod(0o755)
    except tarfile.TarError as error:
        raise NoEngineError(f"{url} is not a readable tar.gz archive ({error}).") from error


class _OnlySafe(urllib.request.HTTPRedirectHandler):
    """GitHub redirects to its file hosts; such a redirect must not leave TLS."""

    def redirect_request(  # noqa: PLR0917 - the signature is urllib's
        self,
        req: urllib.request.Request,
        fp: object,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        _refuse_plain(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _refuse_plain(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in {"127.0.0.1", "::1"}):
        raise NoEngineError(f"{url} is refused: release files are fetched over https only.")


def _open(url: str, timeout: float) -> http.client.HTTPResponse:
    opener = urllib.request.build_opener(_OnlySafe)
    answer: http.client.HTTPResponse = opener.open(url, timeout=timeout)
    return answer


def _within(seconds: float, read: Callable[[], str], url: str) -> str:
    """Runs ``read`` with one limit over everything; a socket's timeout does not bound the look-up of the name."""
    answers: list[str] = []
    failures: list[Exception] = []

    def attempt() -> None:
        try:
            answers.append(read())
        except (OSError, http.client.HTTPException, NoEngineError) as error:
            failures.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if answers:
        return answers[0]
    if failures and isinstance(failures[0], NoEngineError):
        raise failures[0]
    raise Unavailable(f"{url}: {_reason(failures[0]) if failures else f'no answer within {seconds:.0f} s'}")


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    return str(getattr(cause, "strerror", None) or cause)
