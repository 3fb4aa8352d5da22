"""Only who holds the token file gets in, over TLS, and only to what is emulated."""

from __future__ import annotations

import time
import urllib.request
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox.protocol import entra
from tests.support.sandbox.sandbox_client import ROOT, Arm

if TYPE_CHECKING:
    from tests.support.running import Sandbox

GROUP = f"{ROOT}/resourceGroups/endpoint"


def test_a_call_without_a_token_is_refused(arm: Arm) -> None:
    answer = arm.send(urllib.request.Request(f"{arm.url}{GROUP}?api-version=2024-03-01"))

    assert answer.error[:2] == (401, "AuthenticationFailed")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer authorization_uri=")


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("nonsense", "InvalidAuthenticationToken"),
        (entra.issue("another sandbox's key", "aud"), "InvalidAuthenticationToken"),
        ("expired", "ExpiredAuthenticationToken"),
    ],
)
def test_a_token_of_somebody_else_or_of_yesterday_is_refused(arm: Arm, token: str, code: str) -> None:
    if token == "expired":
        key = (arm.endpoint.token.parent / "key").read_text()
        token = entra.issue(key, "aud", now=time.time() - 2 * entra.TOKEN_SECONDS)
    arm.token = token

    assert arm.get(GROUP).error[:2] == (401, code)


def test_the_token_file_is_the_assertion_and_only_its_owner_reads_it(arm: Arm) -> None:
    assert arm.login("wrong").startswith("AADSTS700213")
    assert arm.login(arm.endpoint.token.read_text(), tenant="other").startswith("AADSTS90002")
    for name in ("token", "key", "server.pem", "state.db"):
        assert (arm.endpoint.token.parent / name).stat().st_mode & 0o077 == 0, name
    assert arm.endpoint.token.parent.stat().st_mode & 0o777 == 0o700, "whatever else lies there"


def test_the_default_credential_of_azure_identity_gets_in(
    sandbox: Sandbox, arm: Arm, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in sandbox.environ.items():
        monkeypatch.setenv(name, value)
    from azure.identity import DefaultAzureCredential

    with DefaultAzureCredential() as credential:
        arm.token = credential.get_token(f"{arm.url}/.default").token

    assert arm.put(GROUP, {"location": "eastus"}).status in {200, 201}


def test_the_variables_overrule_a_bundle_and_a_proxy_of_the_user(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "example.org")

    environ = sandbox.endpoint.environ()

    assert environ["NO_PROXY"] == "example.org,127.0.0.1,localhost"
    assert environ["REQUESTS_CA_BUNDLE"] == environ["SSL_CERT_FILE"]
    bundle = sandbox.endpoint.bundle.read_text()
    assert sandbox.endpoint.ca.read_text() in bundle
    assert bundle.count("BEGIN CERTIFICATE") > 10, "the machine's own authorities are in it too"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/x", 404, "SubscriptionNotFound"),
        ("GET", f"{ROOT}/resourceGroups/nowhere", 404, "ResourceGroupNotFound"),
        ("GET", f"{ROOT}/providers/Microsoft.Compute/skus", 501, "SandboxNotEmulated"),
        ("GET", "/providers/Microsoft.Management/managementGroups/x", 501, "SandboxNotEmulated"),
    ],
)
def test_a_missing_or_unemulated_resource_gives_an_error_that_names_which(
    arm: Arm, method: str, path: str, status: int, code: str
) -> None:
    assert arm.call(method, path).error[:2] == (status, code)


def test_an_unknown_type_is_named_with_its_near_miss(arm: Arm) -> None:
    group = arm.make_group("endpoint")

    answer = arm.put(f"{group}/providers/Microsoft.Storage/storageAccount/x", {})

    assert answer.error == (
        501,
        "SandboxNotEmulated",
        (
            "The sandbox does not emulate the type 'Microsoft.Storage/storageAccount'. "
            "Did you mean 'Microsoft.Storage/storageAccounts'?"
        ),
    )


def test_every_call_names_its_api_version(arm: Arm) -> None:
    answers = [arm.get(f"{arm.url}{GROUP}"), arm.get(f"{arm.url}{GROUP}?api-version=latest")]

    assert [answer.error[:2] for answer in answers] == [
        (400, "MissingApiVersionParameter"),
        (400, "InvalidApiVersionParameter"),
    ]


def test_a_body_that_is_no_json_object_is_refused(arm: Arm) -> None:
    headers = {"Authorization": f"Bearer {arm.token}"}
    request = urllib.request.Request(f"{arm.url}{GROUP}?api-version=2024-03-01", b"{", headers, method="PUT")

    assert arm.send(request).error[:2] == (400, "InvalidRequestContent")
    assert arm.put(GROUP, [1]).error[:2] == (400, "InvalidRequestContent")


def test_discovery_leads_back_to_the_same_endpoint(arm: Arm) -> None:
    workspace = arm.make_workspace("discovery")

    address = arm.get(workspace).body["properties"]["discoveryUrl"]

    assert arm.send(urllib.request.Request(address)).body["api"] == arm.url, (
        "asked without a token, as azure-ai-ml does"
    )


def test_the_environment_holds_no_secret(sandbox: Sandbox) -> None:
    """No variable holds a token or key: child processes and crash reports copy environments around."""
    secrets = [(sandbox.endpoint.token.parent / name).read_text() for name in ("token", "key")]

    assert not [value for value in sandbox.environ.values() if any(secret in value for secret in secrets)]
    assert sandbox.environ["AZURE_FEDERATED_TOKEN_FILE"] == str(sandbox.endpoint.token)
