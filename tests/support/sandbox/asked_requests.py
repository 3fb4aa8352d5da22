"""Requests of a client: every client of Microsoft's for Python sends them by `requests`.

Imports nothing of this project: scripts run it in environments of their own.
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import requests

if TYPE_CHECKING:
    from pathlib import Path

_FAILED = 500


class AskedRequests:
    """Method and path of every request from now on that was answered, 501 and other failures of the server aside."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        send = requests.Session.send

        @functools.wraps(send)
        def noted(session: requests.Session, request: requests.PreparedRequest, **more: Any) -> requests.Response:
            answer = send(session, request, **more)
            if answer.status_code < _FAILED:
                self._seen.add((str(request.method), unquote(urlsplit(str(request.url)).path)))
            return answer

        requests.Session.send = noted

    def write(self, file: Path) -> None:
        """Writes a list of pairs as JSON."""
        file.write_text(json.dumps(sorted(self._seen)))
