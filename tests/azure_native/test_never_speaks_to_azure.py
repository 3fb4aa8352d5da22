"""The stand-in refuses every address that is not https on this machine, in whatever way it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
import pytest

from amlstack.rpc import ProviderError
from amlstack.sandbox.azure_native.arm import AcceptedError, Arm, Patience, SandboxTarget, refuse_unless_loopback
from tests.support.azure_native.small_arm import Answer, SmallArm
from tests.support.azure_native.stand_in_wire import refusal
from tests.support.rows import for_each

if TYPE_CHECKING:
    from tests.support.azure_native.make_stand_in import MakeStandIn


@for_each(
    "address",
    [
        "",
        "https://management.azure.com",
        "http://127.0.0.1:8443",
        "https://127.0.0.1.example.com",
        "https://127.0.0.1@management.azure.com",
        "https://user@127.0.0.1",
        "https://10.0.0.4",
        "https://0.0.0.0",
        "127.0.0.1:8443",
        "https://[::ffff:8.8.8.8]",
        "https://[",
    ],
)
def test_an_address_elsewhere_is_refused(address: str) -> None:
    with pytest.raises(ProviderError, match="speaks only https to a sandbox on this machine, never to Azure"):
        refuse_unless_loopback("AMLSTACK_ARM_ENDPOINT", address)


@pytest.mark.parametrize(
    "address", ["https://127.0.0.1:8443", "https://localhost:1", "https://[::1]:1", "https://127.8.0.1"]
)
def test_an_address_on_this_machine_is_taken(address: str) -> None:
    refuse_unless_loopback("AMLSTACK_ARM_ENDPOINT", address)


def test_entra_id_elsewhere_is_refused_too(small_arm: SmallArm) -> None:
    environ = {**small_arm.environ(), "AZURE_AUTHORITY_HOST": "https://login.microsoftonline.com"}
    with pytest.raises(ProviderError, match=r"AZURE_AUTHORITY_HOST is 'https://login.microsoftonline.com'"):
        SandboxTarget.of(environ, {})


@pytest.mark.parametrize(
    "name", ["AZURE_TENANT_ID", "AZURE_FEDERATED_TOKEN_FILE", "SSL_CERT_FILE", "ARM_SUBSCRIPTION_ID"]
)
def test_a_missing_variable_is_named(small_arm: SmallArm, name: str) -> None:
    environ = {key: value for key, value in small_arm.environ().items() if key != name}
    with pytest.raises(ProviderError, match="is not set; the sandbox gives it together with"):
        SandboxTarget.of(environ, {})


def test_the_process_refuses_before_it_does_anything(stand_in: MakeStandIn) -> None:
    with pytest.raises(grpc.RpcError) as refused:
        stand_in({"AMLSTACK_ARM_ENDPOINT": "https://management.azure.com"})
    code, words = refusal(refused.value)
    assert code is grpc.StatusCode.FAILED_PRECONDITION
    assert words.startswith("AMLSTACK_ARM_ENDPOINT is 'https://management.azure.com'")


def test_an_operation_is_not_followed_elsewhere(small_arm: SmallArm, arm: Arm, patience: Patience) -> None:
    elsewhere = {"Azure-AsyncOperation": "https://management.azure.com/operations/1"}
    small_arm.answers("PUT", "/thing", Answer(201, {"id": "/thing"}, elsewhere))
    with pytest.raises(AcceptedError, match=r"is to be followed at https://management.azure.com"):
        arm.put("/thing", "v", {}, patience)
    assert small_arm.calls("GET") == []
