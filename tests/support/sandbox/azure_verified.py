"""Tests that run on the sandbox, and with AMLSTACK_AZURE=1 on a real workspace, whose answer they record."""

from __future__ import annotations

import datetime as dt
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from azure.core import PipelineClient
from azure.core.pipeline.policies import BearerTokenCredentialPolicy
from azure.core.rest import HttpRequest
from azure.identity import DefaultAzureCredential

if TYPE_CHECKING:
    from pathlib import Path

ON_AZURE = os.environ.get("AMLSTACK_AZURE") == "1"
AZURE = "https://management.azure.com"
VERSION = "2025-12-01"


def azure_verified(question: str) -> pytest.MarkDecorator:
    """Marks a test that asks one question of ``open_answers.OPEN``."""
    return pytest.mark.azure_verified(question)


@dataclass(frozen=True)
class Service:
    """A workspace, of the sandbox or of Azure, asked with Microsoft's own client.

    Attributes:
        base: Address of the resource manager.
        workspace: ARM id.
        compute: Name of a cluster in it.
        question: What the test asks.
        answers: The file that Azure's answers are recorded in; None on the sandbox.
    """

    base: str
    workspace: str
    compute: str
    question: str
    answers: Path | None

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and body of a request below the workspace."""
        client: PipelineClient[Any, Any]
        policy: Any = BearerTokenCredentialPolicy(DefaultAzureCredential(), f"{self.base}/.default")
        with PipelineClient(self.base, policies=[policy]) as client:
            address = f"{self.base}{self.workspace}{path}"
            query = "&" if "?" in address else "?"
            request = HttpRequest(method, f"{address}{query}api-version={VERSION}", json=body)
            answer: Any = client.send_request(request)
            return answer.status_code, json.loads(answer.text()) if answer.text() else None

    def answers_with(self, expected: Any, seen: Any) -> None:
        """On the sandbox: as docs/reference/sandbox.md says. On Azure: its answer is recorded with the date."""
        if self.answers is None:
            assert seen == expected
            return
        known = json.loads(self.answers.read_text())
        known[self.question] = {"recorded": dt.datetime.now(dt.UTC).date().isoformat(), "answer": seen}
        self.answers.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
