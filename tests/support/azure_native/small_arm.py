"""A TLS server that answers from a test's script: for the answers that a healthy sandbox never gives."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from amlstack.sandbox.azure_native.arm import SandboxTarget
from tests.support.loopback import Loopback, reply

if TYPE_CHECKING:
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path


@dataclass(frozen=True)
class Answer:
    """One answer to come."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hangs_up: bool = False


class SmallArm:
    """Answers tokens by itself and everything else from a script; remembers what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.tokens = 0
        self.expires_in = 3600
        self._script: dict[tuple[str, str], list[Answer]] = {}
        self._server = Loopback(folder, self._handle)
        self.url, self.close = self._server.url, self._server.close

    def answers(self, method: str, path: str, *answers: Answer) -> None:
        """The answers to a call, in order; the last one stays."""
        self._script[method, path] = list(answers)

    def calls(self, method: str) -> list[str]:
        return [path for asked, path, _ in self.asked if asked == method]

    def environ(self) -> dict[str, str]:
        return {**self._server.environ(), "ARM_SUBSCRIPTION_ID": "sub", "SSL_CERT_FILE": str(self._server.ca)}

    def target(self) -> SandboxTarget:
        return SandboxTarget.of(self.environ(), {})

    def _handle(self, http: BaseHTTPRequestHandler, raw: bytes) -> None:
        typed = http.headers.get("Content-Type", "")
        answer = self._answer(http.command, http.path.partition("?")[0], json.loads(raw) if "json" in typed else raw)
        if answer.hangs_up:
            http.close_connection = True
        else:
            reply(http, answer.status, answer.body, answer.headers)

    def _answer(self, method: str, path: str, body: Any) -> Answer:
        if path == "/tenant/oauth2/v2.0/token":
            self.tokens += 1
            return Answer(200, {"access_token": f"token-{self.tokens}", "expires_in": self.expires_in})
        self.asked.append((method, path, body))
        answers = self._script.get((method, path))
        if not answers:
            return Answer(404, {"error": {"code": "ResourceNotFound", "message": f"nothing at {path}"}})
        return answers.pop(0) if len(answers) > 1 else answers[0]
