"""Azure DevOps' REST as far as our files ask: threads of a pull request, work items, pull requests of the repository.

Paths and fields: learn.microsoft.com/rest/api/azure/devops, api-version 7.1 (2026-11-22).
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from tests.support.loopback import Loopback, reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from http.server import BaseHTTPRequestHandler
    from pathlib import Path

VERSION = ("api-version", "7.1")


@dataclass
class DevOps:
    """The record that is kept of it."""

    threads: list[dict[str, Any]] = field(default_factory=list)
    items: list[dict[str, Any]] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)

    def take(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        """Answers one request; whoever has no token of a build is refused, and so is whatever our files do not ask."""
        path, _, text = request.path.partition("?")
        query = dict(parse_qsl(text))
        good = str(request.headers.get("Authorization")).startswith("Bearer build-") and VERSION in query.items()
        body = json.loads(content) if content else None
        answer = self._answer(request.command, path, query, body) if good else None
        reply(request, 200 if answer is not None else 401, answer or {})

    def _answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        if path.endswith("/_apis/wit/wiql"):
            alive = [one for one in self.items if one["fields"].get("System.State") != "Done"]
            return {"workItems": [{"id": one["id"]} for one in alive if one["fields"]["System.Title"] in body["query"]]}
        if "/_apis/wit/workitems/" in path:
            return self._item(path, body)
        if found := re.search(r"/pullrequests(?:/(\d+))?$", path):
            return self._pull(method, int(found[1] or 0), query, body)
        return self._thread(method, path, body)

    def _item(self, path: str, body: Any) -> Any:
        if path.endswith("/$Issue"):
            self.items.append({"id": len(self.items) + 1, "fields": {}})
        one = self.items[-1] if path.endswith("/$Issue") else self.items[int(path.rpartition("/")[2]) - 1]
        fields = [part for part in body if part["path"].startswith("/fields/")]
        one["fields"] |= {part["path"].removeprefix("/fields/"): part["value"] for part in fields}
        return one

    def _pull(self, method: str, number: int, query: dict[str, str], body: Any) -> Any:
        if number:
            assert method == "PATCH"
            self.pulls[number - 1] |= {**body, "edits": self.pulls[number - 1]["edits"] + 1}
            return self.pulls[number - 1]
        if method == "POST":
            asked = (body["sourceRefName"], body["targetRefName"])
            assert len(body["description"]) <= 4000, "the service takes no longer one"
            assert asked not in {(one["sourceRefName"], one["targetRefName"]) for one in self.pulls}, "TF401179"
            self.pulls.append({**body, "pullRequestId": len(self.pulls) + 1, "status": "active", "edits": 0})
            return self.pulls[-1]
        wanted = {"sourceRefName": query["searchCriteria.sourceRefName"], "status": query["searchCriteria.status"]}
        found = [one for one in self.pulls if wanted.items() <= one.items()]
        return {"value": found, "count": len(found)}

    def _thread(self, method: str, path: str, body: Any) -> Any:
        if path.endswith("/threads"):
            if method == "GET":
                return {"value": self.threads}
            self.threads.append({"id": len(self.threads) + 1, "isDeleted": False, "edits": 0, **body})
            return self.threads[-1]
        if found := re.search(r"/threads/(\d+)/comments/1$", path):
            one = self.threads[int(found[1]) - 1]
            one["comments"][0] |= body
            one["edits"] += 1
            return one
        return None


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[DevOps, Loopback]]:
    """The service on loopback until the context ends."""
    folder.mkdir()
    devops = DevOps()
    service = Loopback(folder, devops.take)
    try:
        yield devops, service
    finally:
        service.close()
