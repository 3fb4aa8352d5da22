"""A vault's keys, and the proxy under which the sandbox answers to Azure's own host names."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import urllib.request
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from amlstack.sandbox.protocol.entra import TENANT
from amlstack.sandbox.server.daemon import prepare
from tests.support.sandbox.sandbox_client import Arm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import Sandbox

VERSION = "api-version=7.6"
VALUE = base64.urlsafe_b64encode(b"a data key of 32 bytes, more ore").decode().rstrip("=")


class Proxied:
    """A client that knows Azure's host names and the proxy."""

    def __init__(self, endpoint: Any) -> None:
        self._proxy = urlsplit(endpoint.proxy)
        self._context = ssl.create_default_context(cafile=str(endpoint.ca))

    def call(self, host: str, method: str, path: str, body: Any = None, token: str = "") -> tuple[int, Any, Any]:
        """Status, headers, and the body as JSON or text."""
        assert self._proxy.hostname
        connection = http.client.HTTPSConnection(self._proxy.hostname, self._proxy.port, context=self._context)
        connection.set_tunnel(host, 443)
        headers = {"Content-Type": "application/json"}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            return answer.status, answer.headers, json.loads(text) if text.startswith("{") else text
        finally:
            connection.close()


@pytest.fixture
def proxied(sandbox: Sandbox) -> Proxied:
    return Proxied(sandbox.endpoint)


def vault_with_key(arm: Arm, name: str, **more: Any) -> tuple[str, str]:
    """A vault's host and its key's id with the version."""
    group = arm.make_group(f"rg-{name}")
    vault = f"{group}/providers/Microsoft.KeyVault/vaults/{name}"
    sku = {"family": "A", "name": "standard"}
    properties = {"tenantId": TENANT, "sku": sku, "enableRbacAuthorization": True}
    assert arm.put(vault, {"location": "eastus", "properties": properties}).status in {200, 201}
    made = arm.put(f"{vault}/keys/k", {"properties": {"kty": "RSA", "keySize": 2048, **more}})
    return f"{name}.vault.azure.net", made.body["properties"]["keyUriWithVersion"]


def token_for(arm: Arm, audience: str = "https://vault.azure.net") -> str:
    return arm.login(arm.endpoint.token.read_text(), audience=audience)


def test_a_call_without_a_token_says_whom_to_ask_for_one(arm: Arm, proxied: Proxied) -> None:
    host, _ = vault_with_key(arm, "challenge")
    status, headers, _ = proxied.call(host, "POST", f"/keys/k//encrypt?{VERSION}")
    assert status == 401
    assert headers["WWW-Authenticate"] == (
        f'Bearer authorization="https://login.microsoftonline.com/{TENANT}", resource="https://vault.azure.net"'
    )
    assert proxied.call(host, "GET", f"/keys/k?{VERSION}", token=token_for(arm, "https://storage.azure.com"))[0] == 401


@pytest.mark.parametrize("algorithm", ["RSA-OAEP-256", "RSA-OAEP", "RSA1_5"])
@pytest.mark.parametrize("verbs", [("encrypt", "decrypt"), ("wrapkey", "unwrapkey")])
def test_what_a_key_encrypts_it_decrypts(arm: Arm, proxied: Proxied, algorithm: str, verbs: tuple[str, str]) -> None:
    host, kid = vault_with_key(arm, "roundtrip")
    token, version = token_for(arm), kid.rpartition("/")[2]
    to, back = verbs

    hidden = proxied.call(host, "POST", f"/keys/k//{to}?{VERSION}", {"alg": algorithm, "value": VALUE}, token)
    assert hidden[0] == 200
    assert hidden[2]["kid"] == kid
    assert hidden[2]["value"] != VALUE
    shown = {"alg": algorithm, "value": hidden[2]["value"]}
    assert proxied.call(host, "POST", f"/keys/k/{version}/{back}?{VERSION}", shown, token)[2]["value"] == VALUE


def test_a_key_shows_its_public_part_alone(arm: Arm, proxied: Proxied) -> None:
    host, kid = vault_with_key(arm, "public")
    status, _, body = proxied.call(host, "GET", f"/keys/k?{VERSION}", token=token_for(arm))
    assert status == 200
    assert body["key"] | {"n": ""} == {"kid": kid, "kty": "RSA", "n": "", "e": "AQAB"}


@pytest.mark.parametrize(
    ("path", "body", "refusal"),
    [
        ("/keys/none//encrypt", {"alg": "RSA-OAEP", "value": VALUE}, (404, "KeyNotFound")),
        ("/keys/k/0123/encrypt", {"alg": "RSA-OAEP", "value": VALUE}, (404, "KeyNotFound")),
        ("/keys/k//encrypt", {"alg": "A256GCM", "value": VALUE}, (400, "BadParameter")),
        ("/keys/k//encrypt", {"alg": "RSA-OAEP"}, (400, "BadParameter")),
        ("/keys/k//encrypt", {"alg": "RSA-OAEP", "value": "=/"}, (400, "BadParameter")),
        ("/keys/k//encrypt", {"alg": "RSA-OAEP", "value": VALUE * 20}, (400, "BadParameter")),
        ("/keys/k//decrypt", {"alg": "RSA-OAEP", "value": VALUE}, (403, "Forbidden")),
        ("/keys/k//sign", {"alg": "RS256", "value": VALUE}, (501, "SandboxNotEmulated")),
        ("/secrets/s", None, (501, "SandboxNotEmulated")),
    ],
)
def test_what_a_key_cannot_do_is_refused(
    arm: Arm, proxied: Proxied, path: str, body: Any, refusal: tuple[int, str]
) -> None:
    host, _ = vault_with_key(arm, "refusals", keyOps=["encrypt"])
    status, _, answer = proxied.call(host, "POST", f"{path}?{VERSION}", body, token_for(arm))
    assert (status, answer["error"]["code"]) == refusal


def test_blobs_answer_under_the_name_of_their_account(arm: Arm, proxied: Proxied) -> None:
    arm.make_workspace("named")
    token = token_for(arm, "https://storage.azure.com")
    host = "named.blob.core.windows.net"
    assert proxied.call(host, "PUT", "/box?restype=container", token=token)[0] == 201
    assert "<Blobs></Blobs>" in proxied.call(host, "GET", "/box?restype=container&comp=list", token=token)[2]


def test_the_sign_in_service_answers_under_its_own_name(proxied: Proxied) -> None:
    path = "/common/discovery/instance?api-version=1.1"
    status, _, body = proxied.call("login.microsoftonline.com", "GET", path)
    assert (status, body["tenant_discovery_endpoint"].endswith("openid-configuration")) == (200, True)


@pytest.mark.parametrize("host", ["management.azure.com", "a.b.vault.azure.net", ".vault.azure.net", "example.org"])
def test_the_proxy_leads_nowhere_else(proxied: Proxied, host: str) -> None:
    with pytest.raises(OSError, match="403"):
        proxied.call(host, "GET", "/")


def test_a_certificate_of_an_earlier_version_is_made_anew_and_a_good_one_kept(tmp_path: Path) -> None:
    server, authority = prepare(tmp_path), tmp_path / "ca.pem"
    first = server.read_text(), authority.read_text()
    assert (prepare(tmp_path), server.read_text(), authority.read_text()) == (server, *first)
    server.write_text(first[0].partition("\n")[2])
    prepare(tmp_path)
    assert server.read_text() != first[0]


@pytest.mark.parametrize(("led", "name"), [(True, "leadstore"), (False, "127.0.0.1:PORT/blob/leadstore")])
def test_azure_ai_ml_gets_plain_names_where_it_is_led_to_azures_hosts(
    sandbox: Sandbox, *, led: bool, name: str
) -> None:
    arm = Arm(sandbox.endpoint)
    store = f"{arm.make_workspace('leadstore', keys=True)}/datastores/workspaceblobstore"
    metadata = (sandbox.endpoint.azure_names() if led else sandbox.endpoint.environ())["ARM_CLOUD_METADATA_URL"]
    (cloud,) = arm.send(urllib.request.Request(metadata)).body
    address, port = cloud["resourceManager"], sandbox.endpoint.url.rpartition(":")[2]
    token = arm.login(sandbox.endpoint.token.read_text(), audience=address)
    headers = {"Authorization": f"Bearer {token}", "User-Agent": "azure-ai-ml/1.35.2"}

    answer = arm.send(urllib.request.Request(f"{address}{store}?api-version=2025-12-01", headers=headers))

    assert answer.body["properties"]["accountName"] == name.replace("PORT", port)
