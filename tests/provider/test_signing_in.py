"""One credential for azure-native and our provider: settings, variables and their order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pulumi.runtime.proto import provider_pb2

from amlstack.base.paths import PROJECT
from amlstack.provider.arm import SECRET, VARIABLES, ArmClient, ArmError, SignIn, endpoint
from amlstack.provider.server import SETTINGS
from amlstack.rpc import Secret, decode, encode
from infra.components import registration
from tests.support.provider.fake_workspace import WORKSPACE
from tests.support.provider.provider_wire import Refused, job_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

PRINCIPAL = {"tenantId": "t1", "clientId": "c1"}
OIDC = {**PRINCIPAL, "useOidc": "true"}
ASKED = {"oidcRequestUrl": "{url}/oidc", "oidcRequestToken": "of-the-pipeline"}
GOVERNMENT = ("https://management.usgovcloudapi.net", "login.microsoftonline.us", "https://ml.azure.us")
ISSUED = "issued for api://AzureADTokenExchange"
PRINCIPAL_VARIABLES = {"ARM_TENANT_ID": "t1", "ARM_CLIENT_ID": "c1"}


def signed_in(arm: FakeArm, settings: dict[str, str], environ: dict[str, str]) -> tuple[str, str, str]:
    """Tenant, client and secret or assertion of the sign-in before one request."""
    arm.secrets |= {"s1", "a1", ISSUED, "issued for other"}
    settings, environ = ({key: value.format(url=arm.url) for key, value in one.items()} for one in (settings, environ))
    ArmClient(arm.url, sign_in=SignIn.read(settings, environ)).get(WORKSPACE)
    (form,) = arm.signed_in
    return form["tenant"], form["client_id"], form.get("client_secret") or form["client_assertion"]


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        ({**PRINCIPAL, "clientSecret": "s1"}, {}, ("t1", "c1", "s1")),
        ({}, {**PRINCIPAL_VARIABLES, "ARM_CLIENT_SECRET": "s1"}, ("t1", "c1", "s1")),
        ({"tenantId": "t2"}, {**PRINCIPAL_VARIABLES, "ARM_CLIENT_SECRET": "s1"}, ("t2", "c1", "s1")),
        ({**OIDC, "oidcToken": "a1", "clientSecret": "s1"}, {}, ("t1", "c1", "s1")),
        ({**OIDC, "oidcToken": "a1"}, {}, ("t1", "c1", "a1")),
        ({}, {**PRINCIPAL_VARIABLES, "ARM_USE_OIDC": "true", "ARM_OIDC_TOKEN": "a1"}, ("t1", "c1", "a1")),
        ({**PRINCIPAL, "oidcToken": "a1"}, {}, ("t1", "client", "federated")),
        ({**OIDC, **ASKED}, {}, ("t1", "c1", ISSUED)),
        ({**OIDC, **ASKED, "oidcAudience": "other"}, {}, ("t1", "c1", "issued for other")),
        (
            OIDC,
            {"ACTIONS_ID_TOKEN_REQUEST_URL": "{url}/oidc", "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "of-the-pipeline"},
            ("t1", "c1", ISSUED),
        ),
        (
            OIDC,
            {"ARM_OIDC_REQUEST_URL": "{url}/oidc", "ARM_OIDC_REQUEST_TOKEN": "of-the-pipeline"},
            ("t1", "c1", ISSUED),
        ),
        ({"useDefaultAzureCredential": "true", **OIDC, "oidcToken": "a1"}, {}, ("t1", "client", "federated")),
        ({"tenantId": "t1"}, {}, ("t1", "client", "federated")),
        ({}, {}, ("tenant", "client", "federated")),
    ],
    ids=[
        "secret", "secret of the environment", "a setting before its variable", "secret before OIDC", "OIDC",
        "OIDC of the environment", "OIDC that is not switched on", "OIDC asked for", "another audience",
        "OIDC of GitHub", "OIDC of the environment's issuer", "default chain first", "default chain of a tenant",
        "nothing",
    ],
)  # fmt: skip
def test_the_first_method_that_is_configured_signs_in(
    arm: FakeArm, settings: dict[str, str], environ: dict[str, str], expected: tuple[str, str, str]
) -> None:
    assert signed_in(arm, settings, environ) == expected


def test_a_file_with_an_oidc_token_is_read_at_each_sign_in(arm: FakeArm, tmp_path: Path) -> None:
    arm.secrets |= {"first", "second"}
    path = tmp_path / "token"
    for token in ("first", "second"):
        path.write_text(token + "\n")
        how = SignIn.read({**OIDC, "oidcTokenFilePath": str(path)}, {})
        ArmClient(arm.url, sign_in=how).get(WORKSPACE)
    assert [form["client_assertion"] for form in arm.signed_in] == ["first", "second"]


@pytest.mark.parametrize(
    ("settings", "environ"),
    [
        ({"tenantId": "a\nb", "clientId": "c", "clientSecret": "s"}, {}),
        ({"tenantId": "t", "clientId": "c", "clientSecret": "s"}, {"AZURE_AUTHORITY_HOST": "http://127.0.0.1:1"}),
        ({"tenantId": "t", "clientId": "c", "clientSecret": "s"}, {"AZURE_AUTHORITY_HOST": "https://[::1"}),
        ({}, {"AZURE_TENANT_ID": "a\nb", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "s"}),
        ({}, {"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_CERTIFICATE_PATH": "/nowhere/a.pem"}),
        ({}, {"AZURE_TOKEN_CREDENTIALS": "none of these"}),
    ],
)
def test_what_the_library_does_not_take_is_one_error_of_signing_in(
    monkeypatch: pytest.MonkeyPatch, arm: FakeArm, settings: dict[str, str], environ: dict[str, str]
) -> None:
    for variable in ("AZURE_FEDERATED_TOKEN_FILE", "AZURE_TOKEN_CREDENTIALS", "AZURE_AUTHORITY_HOST"):
        monkeypatch.delenv(variable, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ArmError, match="what is configured for signing in cannot be used: ") as refused:
        ArmClient(arm.url, sign_in=SignIn.read(settings, environ)).get(WORKSPACE)
    assert refused.value.code == "NoCredential"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"clientSecret": "s"}, r"azure-native:tenantId \(ARM_TENANT_ID\) and azure-native:clientId \(ARM_CLIENT_ID\)"),
        ({"useOidc": "true", "tenantId": "t"}, r"OpenID Connect needs azure-native:clientId \(ARM_CLIENT_ID\)"),
        (OIDC, "needs one of azure-native:oidcToken, oidcTokenFilePath"),
        ({**OIDC, "oidcTokenFilePath": "/nowhere"}, "the file of the OIDC token cannot be read"),
        ({**OIDC, "oidcRequestUrl": "http://x", "oidcRequestToken": "b"}, "is no https URL"),
        ({**PRINCIPAL, "clientCertificatePath": "/nowhere"}, "the client certificate /nowhere cannot be read"),
        ({**PRINCIPAL, "clientSecret": "s", "auxiliaryTenantIds": "t2"}, "is no JSON list"),
    ],
)
def test_what_is_missing_is_named(arm: FakeArm, settings: dict[str, str], words: str) -> None:
    with pytest.raises(ArmError, match=words) as caught:
        ArmClient(arm.url, sign_in=SignIn.read(settings, {})).get(WORKSPACE)
    assert caught.value.code == "NoCredential"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("public", ("https://management.azure.com", "login.microsoftonline.com", "https://ml.azure.com")),
        ("usgovernment", GOVERNMENT),
        ("AzureUSGovernment", GOVERNMENT),
        ("china", ("https://management.chinacloudapi.cn", "login.chinacloudapi.cn", "https://ml.azure.cn")),
    ],
)
@pytest.mark.parametrize("how", ["setting", "variable", "endpoint"])
def test_a_cloud_is_one_setting(
    monkeypatch: pytest.MonkeyPatch, how: str, name: str, expected: tuple[str, str, str]
) -> None:
    for variable in ("AMLSTACK_ARM_ENDPOINT", "AZURE_AUTHORITY_HOST"):
        monkeypatch.delenv(variable, raising=False)
    secret = {**PRINCIPAL, "clientSecret": "s"}
    given = SignIn.read(
        {**secret, **({"environment": name} if how == "setting" else {})},
        {"ARM_ENVIRONMENT": name} if how == "variable" else {},
    )
    client = ArmClient(endpoint(expected[0] if how == "endpoint" else None, given.cloud), sign_in=given)

    credential: Any = given.credential(client.cloud)

    assert (client.endpoint, credential._authority.removeprefix("https://"), client.ml_audience) == expected


def test_a_cloud_that_there_is_not_is_refused(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    request = provider_pb2.CheckRequest(news=encode({"environment": "mars", "location": "westeurope"}))
    (failure,) = wire.stub.CheckConfig(request).failures
    assert failure.property == "environment"
    assert "public, usgovernment, china" in failure.reason
    monkeypatch.setenv("ARM_ENVIRONMENT", "mars")
    with pytest.raises(Exception, match="no cloud of Azure"):
        wire.configure()


def test_a_provider_is_configured_with_the_settings_and_keeps_secrets_secret(wire: Wire, arm: FakeArm) -> None:
    settings = {**PRINCIPAL, "clientSecret": Secret("s1"), "armEndpoint": arm.url}
    checked = wire.stub.CheckConfig(provider_pb2.CheckRequest(news=encode({**settings, "workspace": "w"})))
    assert decode(checked.inputs) == settings
    arm.secrets.add("s1")
    wire.configure = lambda: wire.stub.Configure(provider_pb2.ConfigureRequest(args=checked.inputs))  # type: ignore[method-assign]

    wire.job().up(job_inputs())

    assert [form["client_secret"] for form in arm.signed_in] == ["s1"]


def test_a_secret_that_is_refused_is_in_no_message(wire: Wire, arm: FakeArm) -> None:
    settings = encode({**PRINCIPAL, "clientSecret": "not-the-one"})
    wire.configure = lambda: wire.stub.Configure(provider_pb2.ConfigureRequest(args=settings))  # type: ignore[method-assign]
    with pytest.raises(Refused) as caught:
        wire.job().up(job_inputs())
    assert "AADSTS7000215" in str(caught.value)
    assert "not-the-one" not in str(caught.value)


def test_the_stack_hands_on_what_the_provider_takes() -> None:
    assert tuple(VARIABLES) == registration.SIGN_IN
    assert registration.SIGN_IN_SECRETS == SECRET
    schema = json.loads((PROJECT / "amlstack" / "provider" / "schema.json").read_text())
    for part in (schema["config"]["variables"], schema["provider"]["inputProperties"]):
        assert tuple(part) == SETTINGS
        assert {name for name, one in part.items() if one.get("secret")} == set(SECRET)


def test_what_is_no_setting_of_signing_in_is_not_handed_on() -> None:
    config = {"azure-native:location": "x", "azure-native:tenantId": "t", "amlstack:workspace": "w"}
    assert registration.sign_in_settings(config) == {"tenantId": "t"}
    assert registration.sign_in_settings({"amlstack:workspace": "w", "azure-native:subscriptionId": "s"}) == {}
