"""Bad requests get a 4xx in the service's own form: nothing is stored, and nothing breaks."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amlstack.sandbox import kinds
from amlstack.sandbox.azure_native import shape
from amlstack.sandbox.protocol import addresses, body_shapes, requests
from amlstack.sandbox.protocol.addresses import parse
from amlstack.sandbox.protocol.refusals import Refused
from tests.support.sandbox.raw_exchange import raw
from tests.support.sandbox.sandbox_client import ROOT, version_of

if TYPE_CHECKING:
    from tests.support.sandbox.manager import Manager
    from tests.support.sandbox.sandbox_client import Arm

GROUP = f"{ROOT}/resourceGroups/bad"
QUERY = "?api-version=2024-03-01"


@pytest.mark.parametrize(
    "text",
    [
        b'{"location": "eastus", "tags": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
        b'{"location": "eastus", "tags": ' + b'{"a":' * requests.DEPTH + b"{}" + b"}" * (requests.DEPTH + 1),
        b'{"location": "eastus", "tags": {"a": NaN}}',
        b'{"location": "eastus", "tags": {"a": 1e999}}',
        b'{"location": "eastus", "tags": {"a": "\\ud800"}}',
        b'{"location": "eastus", "tags": {"a": ' + b"9" * 5000 + b"}}",
        b'{"location": "\xff"}',
    ],
    ids=["nested 100000 deep", "nested too deep", "NaN", "infinite", "half a character", "a huge number", "no UTF-8"],
)
def test_what_is_no_json_that_can_be_answered_again_is_refused(arm: Arm, text: bytes) -> None:
    status, answer, _ = raw(arm, "PUT", GROUP + QUERY, text, Content_Type="application/json")

    assert (status, answer["error"]["code"]) == (400, "InvalidRequestContent"), answer
    assert arm.get(GROUP).status == 404


def test_a_body_beyond_four_megabytes_is_refused_and_not_stored(arm: Arm) -> None:
    group = arm.make_group("large")
    fits = b'{"location": "eastus", "tags": {"a": "' + b"x" * (requests.LIMIT - 100) + b'"}}'
    assert raw(arm, "PUT", group + QUERY, fits)[0] == 200

    announced = raw(arm, "PUT", group + QUERY, None, Content_Length=str(64 << 20))
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    chunked = raw(arm, "PUT", group + QUERY, chunk * 5 + b"0\r\n\r\n", Transfer_Encoding="chunked")

    for status, answer, _ in (announced, chunked):
        assert (status, answer["error"]["code"]) == (413, "RequestContentTooLarge")
    assert arm.put(group, {"location": "eastus", "tags": {"a": "b"}}).status == 200


def test_a_client_that_sends_too_much_sees_the_answer(arm: Arm) -> None:
    answer = arm.put(GROUP, {"location": "eastus", "tags": {"a": "x" * (8 << 20)}})

    assert answer.error[:2] == (413, "RequestContentTooLarge")


def test_a_token_that_no_token_is_made_of_is_refused(arm: Arm) -> None:
    arm.make_workspace("ascii")
    for path in (GROUP + QUERY, "/blob/ascii/container/name"):
        status, answer, _ = raw(arm, "GET", path, Authorization="Bearer ä.ö.ü".encode())
        assert status == 401
        assert "InvalidAuthenticationToken" in str(answer)
    status, _, headers = raw(arm, "GET", "/blob/ascii/container/name?sig=%C3%A4", Authorization="")
    assert (status, headers["x-ms-error-code"]) == (403, "AuthenticationFailed")


@pytest.mark.parametrize("form", [b"\xff\xfe", b"client_id=%ff", b"client_assertion=%C3%A4", "client_id=ä".encode()])
def test_a_form_that_is_no_text_gets_no_token(arm: Arm, form: bytes) -> None:
    status, answer, _ = raw(arm, "POST", f"/{arm.endpoint.tenant}/oauth2/v2.0/token", form)

    assert (status, answer["error"]) == (400, "invalid_request")


@pytest.mark.parametrize("method", ["TRACE", "OPTIONS", "PURGE"])
def test_a_verb_that_nothing_has_is_refused_in_the_services_form(arm: Arm, method: str) -> None:
    status, answer, headers = raw(arm, method, GROUP + QUERY)
    assert (status, answer["error"]["code"]) == (405, "MethodNotAllowed")
    assert "PATCH" in headers["Allow"]

    status, answer, headers = raw(arm, method, "/blob/account/container/name")
    assert (status, headers["x-ms-error-code"]) == (405, "UnsupportedHttpVerb")
    assert b"<Code>UnsupportedHttpVerb</Code>" in answer


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("", "InvalidApiVersionParameter"),
        ("/providers/Microsoft.Storage/storageAccounts/a", "NoRegisteredProviderFound"),
        ("/providers/Microsoft.MachineLearningServices/workspaces", "NoRegisteredProviderFound"),
        ("/providers/Microsoft.MachineLearningServices/workspaces/w/jobs/j", "NoRegisteredProviderFound"),
        ("/providers/Microsoft.MachineLearningServices/workspaces/w/jobs/j/cancel", "NoRegisteredProviderFound"),
        ("/providers/Microsoft.MachineLearningServices/workspaces/w/codes/c/versions", "NoRegisteredProviderFound"),
    ],
)
def test_an_api_version_that_a_type_does_not_have_is_refused_with_those_that_it_has(
    manager: Manager, path: str, code: str
) -> None:
    group = f"{ROOT}/resourceGroups/rg"
    for version in ("1999-01-01", "2099-01-01", "2025-12-02-preview"):
        status, error = manager.call(
            "POST" if path.endswith("cancel") else "GET", group + path, **{"api-version": version}
        )
        assert (status, error["code"]) == (400, code)
        assert f"'{version}'" in error["message"]
        assert version_of(path) in error["message"]


def test_a_call_without_an_api_version_is_refused_also_when_it_is_empty(manager: Manager) -> None:
    status, error = manager.call("GET", f"{ROOT}/resourceGroups/rg", **{"api-version": ""})

    assert (status, error["code"]) == (400, "MissingApiVersionParameter")


def test_every_type_has_the_versions_that_azure_native_and_the_stand_in_speak() -> None:
    listed = addresses.known_versions()
    assert set(listed) == {kind.type.lower() for kind in kinds.ALL}
    for token in shape.tokens():
        row, version = shape.find(f"azure-native:{token}")
        path = parse(
            re.sub(
                r"\{(\w+)\}",
                lambda found: "subscriptions/s/resourceGroups/g" if found[1] in shape.SCOPES else "x",
                row.path,
            )
        )
        assert path is not None
        assert version in listed[path.type.lower()], token


def test_the_list_holds_every_version_of_the_installed_azure_native() -> None:
    """Its aliases name them; a new release with a new version fails here, and the list takes it over."""
    spec = importlib.util.find_spec("pulumi_azure_native")
    assert spec is not None
    assert spec.origin is not None
    for kind in kinds.ALL:
        if (schema := body_shapes.schema_of(kind.type)) is None:
            continue
        subject, name = schema.token.split(":")
        # To import the modules would take four seconds.
        text = (
            Path(spec.origin)
            .with_name(subject)
            .joinpath(re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() + ".py")
            .read_bytes()
        )
        assert f"\nclass {name}(".encode() in text
        found = re.findall(rb"azure-native:\w+/v(\d{4})(\d\d)(\d\d)(\w*):" + name.encode(), text)
        versions = {b"-".join(part for part in each if part).decode() for each in found}
        assert versions, kind.type
        assert versions <= set(addresses.known_versions()[kind.type.lower()]), kind.type


def test_nesting_is_counted_and_not_guessed() -> None:
    def nested(levels: int) -> bytes:
        return b"[" * levels + b"]" * levels

    assert requests.parse(nested(requests.DEPTH)) is not None
    with pytest.raises(Refused, match="nested deeper than 64 levels"):
        requests.parse(nested(requests.DEPTH + 1))
