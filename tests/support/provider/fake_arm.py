"""A tiny, strict ARM on loopback TLS: only what the provider may ask, every request on record, failures on demand."""

from __future__ import annotations

import functools
import json
import re
import socket
import ssl
import sys
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import trustme

if TYPE_CHECKING:
    from pathlib import Path

WORKSPACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
TOKEN = "token-of-the-test"
SIGNATURE = "x" * 43 + "%3D"
KILLED = 403, {"error": {"code": "Killed", "message": "nobody is there to read this"}}
IMMUTABLE = "Only description, tags, displayName, properties, and isArchived can be updated."


@functools.cache
def _certificate() -> tuple[trustme.CA, trustme.LeafCert]:
    authority = trustme.CA()
    return authority, authority.issue_cert("127.0.0.1")


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is none of the service's faults; anything else is."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


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
class FakeArm:
    home: Path
    workspaces: set[str] = field(default_factory=lambda: {WORKSPACE})
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    statuses: dict[str, deque[str]] = field(default_factory=dict)
    script: tuple[str, ...] = ("Queued",)
    """What each new run goes through: one status further with every look at it."""
    cancelled: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    """Runs that really began, in order."""
    tag_removal: bool = True
    page: int = 2
    """How many jobs a page of the list has."""
    down_after: int | None = None
    """How many requests are answered before every further one gets 503."""
    dies_at: int | None = None
    """How many writes are answered before the one at which the asking process is killed; it gets no answer then."""
    dies_late: bool = False
    """Whether the write at which it is killed takes effect."""
    dead: bool = False
    hold: str | None = None
    """A path whose PUT takes effect but is not answered until `release` is set; `held` tells that it has come."""
    secrets: set[str] = field(default_factory=lambda: {"federated"})
    """What is accepted at sign-in."""
    signed_in: list[dict[str, str]] = field(default_factory=list)
    """The forms of all sign-ins, with their tenant."""
    created: list[str] = field(default_factory=list)
    """Paths of all runs and schedules that were ever made, one entry for each time."""

    def __post_init__(self) -> None:
        authority, certificate = _certificate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        (self.home / "ca.pem").write_bytes(authority.cert_pem.bytes())
        (self.home / "token").write_text("federated")
        self._lock = threading.Lock()
        self.held, self.release = threading.Event(), threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed acknowledgement

            def log_message(self, *args: object) -> None:
                pass

            def do(self) -> None:
                fake.handle(self)

            do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = do  # noqa: N815

        self.server = _Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self._thread.join()
        self.server.server_close()

    def environ(self) -> dict[str, str]:
        return {
            "AMLSTACK_ARM_ENDPOINT": self.url,
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": "tenant",
            "AZURE_CLIENT_ID": "client",
            "AZURE_FEDERATED_TOKEN_FILE": str(self.home / "token"),
            "AZURE_TOKEN_CREDENTIALS": "WorkloadIdentityCredential",
            "REQUESTS_CA_BUNDLE": str(self.home / "ca.pem"),
            "NO_PROXY": "127.0.0.1",
        }

    # -- what tests ask and arrange ----------------------------------------------------------------------------------

    def fail(self, method: str, path: str, status: int, **more: Any) -> None:
        self.failures.append(Failure(method, path, status, **more))

    def count(self, method: str, path: str) -> int:
        return sum(asked.method == method and re.search(path, asked.path) is not None for asked in self.asked)

    def runs_started(self) -> int:
        return sum(asked.method == "PUT" and "/jobs/" in asked.path for asked in self.asked)

    def last(self, method: str, path: str) -> Asked:
        return [asked for asked in self.asked if asked.method == method and re.search(path, asked.path)][-1]

    def job(self, name: str) -> dict[str, Any]:
        return self.jobs[f"{WORKSPACE}/jobs/{name}".lower()]["properties"]

    def set_status(self, name: str, *statuses: str) -> None:
        """The status now, and those that each further GET moves on to."""
        self.job(name)["status"] = statuses[0]
        self.statuses[name] = deque(statuses[1:])

    # -- the service -------------------------------------------------------------------------------------------------

    def handle(self, http: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(http.path)
        path = unquote(parts.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        raw = http.rfile.read(int(http.headers.get("Content-Length") or 0))
        if path.endswith("/oauth2/v2.0/token"):
            form = {name: values[0] for name, values in parse_qs(raw.decode()).items()}
            assert form.get("client_assertion", form.get("client_secret")) in self.secrets
            self.signed_in.append({"tenant": path.split("/")[1], **form})
            scope = form["scope"]
            token = TOKEN if scope == f"{self.url}/.default" else f"token-for {scope.removesuffix('/.default')}"
            self._reply(http, 200, {"access_token": token, "expires_in": 3600, "token_type": "Bearer"})
            return
        if path.endswith("/v2.0/.well-known/openid-configuration"):
            tenant = f"{self.url}/{path.split('/')[1]}"
            places = {"token_endpoint": f"{tenant}/oauth2/v2.0/token", "authorization_endpoint": f"{tenant}/authorize"}
            self._reply(http, 200, {**places, "issuer": f"{tenant}/v2.0"})
            return
        if path == "/oidc" and http.headers.get("Authorization") == "Bearer of-the-pipeline":
            self._reply(http, 200, {"value": f"issued for {query['audience']}"})
            return
        if path.startswith("/blobs/"):
            self._blob(http, path, query, raw)
            return
        body = json.loads(raw) if raw else None
        with self._lock:
            self.asked.append(Asked(http.command, path, query, body, http.headers.get("x-azureml-token", "")))
            if http.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._reply(http, 401, {"error": {"code": "InvalidAuthenticationToken", "message": "no token"}})
                return
            failure = self._failure(http.command, path)
            if refusal := self._nobody_there(http.command):
                self._reply(http, *refusal)
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
            self._reply(http, status, answer)
        except OSError:
            assert self.release.is_set() or failure, "only a client that was killed on purpose may hang up"

    def _nobody_there(self, command: str) -> tuple[int, Any] | None:
        """What is answered without a look at the request: the service is down, or the asking process was killed."""
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
            self._reply(http, failure.status, answer, failure.headers)
        else:
            http.close_connection = True
            http.connection.shutdown(socket.SHUT_RDWR)
        return False

    def _reply(
        self, http: BaseHTTPRequestHandler, status: int, answer: Any, headers: dict[str, str] | None = None
    ) -> None:
        data = b"" if answer is None else json.dumps(answer).encode()
        http.send_response(status)
        http.send_header("Content-Type", "application/json")
        http.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {"retry-after-ms": "5"}).items():
            http.send_header(name, value)
        http.end_headers()
        http.wfile.write(data)

    def _blob(self, http: BaseHTTPRequestHandler, path: str, query: dict[str, str], raw: bytes) -> None:
        with self._lock:
            failure = self._failure("BLOB", path)
            assert query.get("sig"), "blobs need a SAS"
            assert "Authorization" not in http.headers, "no token may reach the storage"
            if http.command == "PUT" and (failure is None or failure.after or failure.hold):
                self.blobs[path.removeprefix("/blobs/")] = raw
        if failure and not self._fail(http, failure):
            return
        http.send_response(201)
        http.send_header("Content-Length", "0")
        http.send_header("ETag", '"1"')
        http.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        http.end_headers()

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> tuple[int, Any]:
        if path == "/discovery":
            return 200, {"api": self.url}
        if found := re.fullmatch(
            r"/history/v1\.0(/subscriptions/.+?/workspaces/[^/]+)/experiments/([^/]+)/runs/(.+)", path
        ):
            assert method == "PATCH"
            return self._history(found[1], found[2], found[3], body)
        if query.get("api-version") != "2025-12-01":
            return 400, {"error": {"code": "MissingApiVersionParameter", "message": "api-version"}}
        workspace = re.match(r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/[^/]+/workspaces/[^/]+", path)
        if workspace is None or workspace[0] not in self.workspaces:
            return 404, {"error": {"code": "ResourceNotFound", "message": "no such workspace"}}
        rest = path[len(workspace[0]) :]
        if not rest:
            return 200, {"id": path, "properties": {"discoveryUrl": f"{self.url}/discovery"}}
        if rest == "/jobs":
            return self._list(method, path, query)
        if rest.startswith("/jobs/"):
            return self._jobs(method, path, body)
        if rest.startswith("/schedules/"):
            return self._schedules(method, path, body)
        if rest.endswith("/startPendingUpload"):
            assert body == {"pendingUploadType": "TemporaryBlobReference"}
            container = f"{self.url}/blobs/account/upload"
            sas = {"credentialType": "SAS", "sasUri": f"{container}?sv=2024-01-01&sig={SIGNATURE}"}
            return 200, {"blobReferenceForConsumption": {"blobUri": container, "credential": sas}}
        if rest.endswith("/versions"):
            prefix = (path if "/environments/" in path else path.rsplit("/codes/", 1)[0] + "/codes/").lower()
            known = [{"id": key, **value} for key, value in self.resources.items() if key.lower().startswith(prefix)]
            if "hash" in query:
                assert query["hashVersion"] == "202208"
                known = [one for one in known if one["properties"]["properties"]["hash_sha256"] == query["hash"]]
            return 200, {"value": known[::-1]}
        return self._asset(method, path, body)

    def _asset(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        assert re.search(r"/(codes|components|environments)/[^/]+/versions/[^/]+$", path), path
        if method == "GET":
            if path not in self.resources:
                return 404, {"error": {"code": "NotFound", "message": "no such version"}}
            return 200, {"id": path, **self.resources[path]}
        assert method == "PUT", "assets are never deleted"
        if path in self.resources and self.resources[path] != body:
            return 400, {"error": {"code": "UserError", "message": "already registered and cannot be changed"}}
        self.resources[path] = body
        return 201, {"id": path, **body}

    def _schedules(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """Whole bodies in place, with the service's own words in the answer; only a disabled one can be deleted."""
        known = self.schedules.get(path)
        if method == "PUT":
            assert "provisioningState" not in body["properties"], "read-only"
            properties = {"isEnabled": True, "tags": {}, **body["properties"], "provisioningState": "Succeeded"}
            trigger = properties["trigger"]
            if "startTime" in trigger:
                properties["trigger"] = {**trigger, "startTime": trigger["startTime"].replace(" ", "T")}
            if known is None:
                self.created.append(path)
            self.schedules[path] = properties
            return (200 if known else 201), {"id": path, "properties": properties}
        if known is None:
            return 404, {"error": {"code": "NotFound", "message": "no such schedule"}}
        if method == "DELETE":
            if known["isEnabled"]:
                return 409, {"error": {"code": "UserError", "message": "A schedule must be disabled to be deleted."}}
            del self.schedules[path]
            return 200, None
        assert method == "GET"
        return 200, json.loads(json.dumps({"id": path, "properties": known}))

    def _list(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Records that have a property of that name, in pages, whatever their status; a look at it moves no status."""
        assert method == "GET"
        assert query["listViewType"] == "All"
        known = [
            {"id": key, "name": key.rsplit("/", 1)[-1], "properties": job["properties"]}
            for key, job in sorted(self.jobs.items())
            if key.startswith(f"{path}/".lower()) and query["properties"] in job["properties"].get("properties", {})
        ]
        start = int(query.get("$skip", "0"))
        page: dict[str, Any] = {"value": json.loads(json.dumps(known[start : start + self.page]))}
        if start + self.page < len(known):
            page["nextLink"] = f"{self.url}{path}?{urlencode({**query, '$skip': start + self.page})}"
        return 200, page

    def _jobs(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        cancel = path.endswith("/cancel")
        key = path.removesuffix("/cancel").lower()
        name = key.rsplit("/", 1)[-1]
        missing = 404, {"error": {"code": "ResourceNotFound", "message": "no such job"}}
        job = self.jobs.get(key)
        if method == "PUT":
            if job is not None and body["properties"] != job["sent"]:
                return 400, {"error": {"code": "JobPropertyImmutable", "message": IMMUTABLE}}
            if job is None:
                services = {"Studio": {"jobServiceType": "Studio", "endpoint": f"https://ml.azure.com/runs/{name}"}}
                properties = {**body["properties"], "status": self.script[0], "services": services}
                self.statuses[name] = deque(self.script[1:])
                self.created.append(path)
                job = self.jobs[key] = {"properties": properties, "sent": body["properties"]}
                self.begun.append(name)
            return 201, {"id": path, "name": name, "properties": job["properties"]}
        if job is None:
            return missing
        if cancel:
            if job["properties"]["status"] in ("Completed", "Failed", "Canceled"):
                return 400, {"error": {"code": "UserError", "message": "the job has ended"}}
            self.cancelled.append(name)
            if job["properties"]["status"] != "CancelRequested":
                job["properties"]["status"] = "CancelRequested"
                self.statuses.setdefault(name, deque()).extend(["CancelRequested", "Canceled"])
            return 200, None
        if method == "DELETE":
            del self.jobs[key]
            return 200, None
        assert method == "GET"
        answer = 200, json.loads(json.dumps({"id": path, "name": name, "properties": job["properties"]}))
        if self.statuses.get(name):
            job["properties"]["status"] = self.statuses[name].popleft()
        return answer

    def _history(self, workspace: str, experiment: str, run: str, body: dict[str, Any]) -> tuple[int, Any]:
        name, _, tags = run.partition("/")
        job = self.jobs.get(f"{workspace}/jobs/{name}".lower())
        if job is None:
            return 404, {"error": {"code": "UserError", "message": "no such run"}}
        properties = job["properties"]
        assert experiment == properties.get("experimentName", "Default")
        if tags:
            if not self.tag_removal:
                return 404, {"error": {"code": "UserError", "message": "no such route"}}
            properties["tags"] = {k: v for k, v in properties["tags"].items() if k not in body["tagsToDelete"]}
            return 200, {}
        assert set(body) <= {"displayName", "description", "tags"}, body
        properties.setdefault("tags", {}).update(body.get("tags", {}))
        properties.update({key: value for key, value in body.items() if key != "tags"})
        return 200, {"runId": name}
