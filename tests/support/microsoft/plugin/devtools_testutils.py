"""A thin stand-in of Microsoft's ``devtools_testutils``, as a plugin of pytest.

The real one plays recordings through a proxy; here every test is live, and nothing is recorded. It runs in a process
whose environment leads to the sandbox, beside Microsoft's tests: it imports nothing of ours.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import azure.identity
import pytest
from azure.ai.ml import _azure_environments as _clouds
from azure.mgmt.msi import ManagedServiceIdentityClient

SANITIZED = "Sanitized"
LONGEST_SLEEP = 0.5
"""Seconds that a test may sleep: Microsoft's wait minutes for what the sandbox has done at once."""


class AzureRecordedTestCase:
    """The base of their test classes; none of its helpers is used by the tests of azure-ai-ml."""


class FakeTokenCredential:
    """The credential of a test that is played from a recording."""


class VariableRecorder:
    """Random names of a test, which only a recording would have to repeat."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def get_or_record(self, name: str, default: str) -> str:
        return self._known.setdefault(name, default)


class _Environment:
    """The values of the environment, by the names that the tests ask for."""

    get = staticmethod(os.environ.get)

    @staticmethod
    def sanitize_batch(asked: dict[str, str]) -> dict[str, str]:
        return {name: os.environ.get(name, shown) for name, shown in asked.items()}


def is_live() -> bool:
    return True


is_live_and_not_recording = is_live


def _nothing(*_words: Any, **_more: Any) -> None:
    """A sanitizer or matcher of recordings."""


add_body_key_sanitizer = add_general_regex_sanitizer = add_general_string_sanitizer = _nothing
add_remove_header_sanitizer = add_uri_regex_sanitizer = remove_batch_sanitizers = _nothing
set_bodiless_matcher = set_custom_default_matcher = _nothing

for _name in ("fake_credentials", "helpers", "proxy_fixtures"):
    sys.modules[f"{__name__}.{_name}"] = sys.modules[__name__]
# Their clients name the cloud AzureCloud, for which azure-ai-ml has addresses of its own: these are the sandbox.
_clouds._environments["AzureCloud"] = _clouds._get_cloud_details()
os.environ.pop("AZUREML_CURRENT_CLOUD", None)
_ARM = os.environ["AMLSTACK_ARM_ENDPOINT"]
ManagedServiceIdentityClient.__init__ = functools.partialmethod(
    ManagedServiceIdentityClient.__init__, base_url=_ARM, credential_scopes=[f"{_ARM}/.default"]
)
# The tests sign in with az where no secret is set; the sandbox is signed in to by a token file.
vars(azure.identity)["AzureCliCredential"] = azure.identity.DefaultAzureCredential
_SLEEP = time.sleep


def _short_sleep(seconds: Any) -> None:
    _SLEEP(min(seconds, LONGEST_SLEEP))


time.sleep = _short_sleep


@pytest.fixture(scope="session")
def test_proxy() -> None:
    """There is none."""


@pytest.fixture
def recorded_test() -> None:
    """Nothing is recorded."""


@pytest.fixture
def variable_recorder() -> VariableRecorder:
    return VariableRecorder()


@pytest.fixture
def environment_variables() -> _Environment:
    return _Environment()


def _row(**found: Any) -> None:
    with Path(os.environ["MICROSOFT_RESULTS"]).open("a", encoding="utf-8") as results:
        results.write(json.dumps(found) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Writes the outcome of a test, and the whole words of its failure, for who started this process."""
    if report.when == "call" or report.outcome != "passed":
        _row(test=report.nodeid, outcome=report.outcome, text=str(report.longrepr or ""), seconds=report.duration)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Writes a file that cannot be imported as one failed test."""
    if report.failed:
        _row(test=report.nodeid, outcome="failed", text=str(report.longrepr), seconds=0)
