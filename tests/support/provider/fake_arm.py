"""A tiny, strict ARM on loopback TLS: only what the provider may ask, every request on record, failures on demand."""

from __future__ import annotations

import json
import re
import socket
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.loopback import Loopback, reply
from tests.support.provider.fake_workspace import FakeWorkspace

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler

TOKEN = "token-of-the-test"
SOON = {"retry-after-ms": "5"}
KILLED = 403, {"error": {"code": "Killed", "message": "the asking process has ended"}}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    acting: str = ""
    """The token for Azure Machine Learning itself, when there was one."""


@dataclass
class Failure:
    """The next matching requests fail; with ``after`` only once they have taken effect, as with a lost answer.

    Attributes:
        method, path: What matches; the method of the storage's requests is ``BLOB``.
        status: The answer's; 0 closes the connection without an answer.
        times: How many requests fail; None for all of them.
        skip: How many matching requests are answered well before.
        headers: Of the answer, beside the usual.
        hold: The request is answered as if nothing were wrong, but not before this is set; `FakeArm.held` tells that it
            has come.
    """

    method: str
    path: str
    status: int
    code: str = "Boom"
    message: str = "it does not work"
    after: bool = False
    times: int | None = 1
    skip: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None


@dataclass
class FakeArm(FakeWorkspace):
    asked: list[Asked] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    down_after: int | None = None
    """The number of requests that are answered before every further one gets 503."""
    dies_at: int | None = None
    """The number of writes that are answered before the one at which the client is killed; it gets no answer."""
    dies_late: bool = False
    """True where the write at which it is killed takes effect."""
    dead: bool = False
    closed: bool = False
    hold: str | None = None
    """A path whose PUT takes effect but is not answered until `release` is set; `held` tells that it has come."""
    secrets: set[str] = field(default_factory=lambda: {"federated"})
    """The secrets that are accepted at sign-in."""
    signed_in: list[dict[str, str]] = field(default_factory=list)
    """The forms of all sign-ins, with their tenant."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self.held, self.release = threading.Event(), threading.Event()
        self.server = Loopback(self.home, self.handle)
        self.url = self.server.url

    def close(self) -> None:
        self.closed = True
        self.release.set()
        self.server.close()

    def environ(self) -> dict[str, str]:
        return self.server.environ()

    # -- what tests ask and arrange ----------------------------------------------------------------------------------

    def fail(self, method: str, path: str, status: int, **more: Any) -> None:
        self.failures.append(Failure(method, path, status, **more))

    def count(self, method: str, path: str) -> int:
        return sum(asked.method == method and re.search(path, asked.path) is not None for asked in self.asked)

    def runs_started(self) -> int:
        return sum(asked.method == "PUT" and "/jobs/" in asked.path for asked in self.asked)

    def last(self, method: str, path: str) -> Asked:
        return [asked for asked in self.asked if asked.method == method and re.search(path, asked.path)][-1]

    # -- the service -------------------------------------------------------------------------------------------------

    def handle(self, http: BaseHTTPRequestHandler, raw: bytes) -> None:
        parts = urlsplit(http.path)
        path = unquote(parts.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if path.endswith("/oauth2/v2.0/token"):
            reply(http, *self._token(path.split("/")[1], raw))
            return
        if path.endswith("/v2.0/.well-known/openid-configuration"):
            tenant = f"{self.url}/{path.split('/')[1]}"
            places = {"token_endpoint": f"{tenant}/oauth2/v2.0/token", "authorization_endpoint": f"{tenant}/authorize"}
            reply(http, 200, {**places, "issuer": f"{tenant}/v2.0"})
            return
        if path == "/oidc" and http.headers.get("Authorization") == "Bearer of-the-pipeline":
            reply(http, 200, {"value": f"issued for {query['audience']}"})
            return
        if path.startswith("/blobs/"):
            self._blob(http, path, query, raw)
            return
        body = json.loads(raw) if raw else None
        with self._lock:
            self.asked.append(Asked(http.command, path, query, body, http.headers.get("x-azureml-token", "")))
            if http.headers.get("Authorization") != f"Bearer {TOKEN}":
                reply(http, 401, {"error": {"code": "InvalidAuthenticationToken", "message": "no token"}})
                return
            failure = self._failure(http.command, path)
            if refusal := self._unavailable(http.command):
                reply(http, *refusal, SOON)
                return
            if failure is None or failure.after or failure.hold:
                status, answer = self.answer(http.command, path, query, body)
            if self.dead:
                status, answer = KILLED
        if failure and not self._fail(http, failure):
            return
        if self.hold and http.command == "PUT" and re.search(self.hold, path):
            self.held.set()
            self.release.wait(300)
        try:
            reply(http, status, answer, SOON)
        except OSError:
            assert self.release.is_set() or failure, "only a client that was killed on purpose may hang up"

    def _token(self, tenant: str, raw: bytes) -> tuple[int, Any]:
        form = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
        if form.get("client_assertion", form.get("client_secret")) not in self.secrets:
            return 401, {
                "error": "invalid_client",
                "error_description": "AADSTS7000215: Invalid client secret provided.",
            }
        self.signed_in.append({"tenant": tenant, **form})
        scope = form["scope"]
        token = TOKEN if scope == f"{self.url}/.default" else f"token-for {scope.removesuffix('/.default')}"
        return 200, {"access_token": token, "expires_in": 3600, "token_type": "Bearer"}

    def _unavailable(self, command: str) -> tuple[int, Any] | None:
        """The answer without a look at the request, where the service is down or the asking process was killed."""
        if self.down_after is not None and len(self.asked) > self.down_after:
            return 503, {"error": {"code": "ServiceUnavailable", "message": "later"}}
        kills = command != "GET" and self._kills()
        return KILLED if self.dead and not (kills and self.dies_late) else None

    def _kills(self) -> bool:
        if self.dead or self.dies_at is None:
            return False
        self.dead = self.dies_at == 0
        self.dies_at -= 1
        return self.dead

    def revive(self) -> None:
        """Another process asks."""
        self.dies_at, self.dead = None, False

    def _failure(self, method: str, path: str) -> Failure | None:
        found = next((one for one in self.failures if one.method == method and re.search(one.path, path)), None)
        if found is not None and found.skip:
            found.skip -= 1
            return None
        if found is not None and found.times is not None:
            found.times -= 1
            if found.times == 0:
                self.failures.remove(found)
        return found

    def _fail(self, http: BaseHTTPRequestHandler, failure: Failure) -> bool:
        """Fails a request as it is to fail; whether it is to be answered after all."""
        if failure.hold is not None:
            self.held.set()
            failure.hold.wait(300)
            return True
        if failure.status:
            answer = {"error": {"code": failure.code, "message": failure.message}}
            reply(http, failure.status, answer, failure.headers or SOON)
        else:
            http.close_connection = True
            http.connection.shutdown(socket.SHUT_RDWR)
        return False

    def _put_blob(self, http: BaseHTTPRequestHandler, name: str, query: dict[str, str], raw: bytes) -> None:
        prefix = "x-ms-meta-"
        if query.get("comp") == "metadata":
            given = ((key.lower(), value) for key, value in http.headers.items())
            self.marks[name] = {key.removeprefix(prefix): value for key, value in given if key.startswith(prefix)}
        else:
            self.blobs[name] = raw

    def _blob(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], raw: bytes) -> None:
        with self._lock:
            failure = self._failure("BLOB", path)
            assert query.get("sig"), "blobs need a SAS"
            assert "Authorization" not in http.headers, "no token may reach the storage"
            if http.command == "PUT" and (failure is None or failure.after or failure.hold):
                self._put_blob(http, path.removeprefix("/blobs/"), query, raw)
            marks = self.marks.get(path.removeprefix("/blobs/"), {})
            there = http.command != "HEAD" or path.removeprefix("/blobs/") in self.blobs
        if failure and not self._fail(http, failure):
            return
        marked = query.get("comp") == "metadata"
        http.send_response(404 if not there else 200 if http.command == "HEAD" or marked else 201)
        for name, value in marks.items() if http.command == "HEAD" else ():
            http.send_header(f"x-ms-meta-{name}", value)
        http.send_header("Content-Length", "0")
        http.send_header("ETag", '"1"')
        http.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        http.end_headers()
