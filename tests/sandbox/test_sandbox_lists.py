"""Lists come in pages and narrowed to what is asked for; writes can be bound to the state that the client has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from amlstack.sandbox.protocol import requests
from amlstack.sandbox.protocol.refusals import Refused
from tests.support.rows import for_each
from tests.support.sandbox.sandbox_client import cluster, job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.sandbox.manager import Manager

ADDRESS = "https://127.0.0.1:1/things"


def pages(rows: Sequence[str], **query: str) -> list[list[str]]:
    """The entries of each page, as a client follows them."""
    found: list[list[str]] = []
    while True:
        answer = requests.page(ADDRESS, query, rows, str, lambda row: {"name": row})
        found.append([each["name"] for each in answer["value"]])
        if "nextLink" not in answer:
            return found
        assert answer["nextLink"].startswith(f"{ADDRESS}?")
        query = dict(parse_qsl(urlsplit(answer["nextLink"]).query))


@for_each("number", [0, 1, requests.PAGE, requests.PAGE + 1, 3 * requests.PAGE])
def test_the_pages_of_a_list_hold_each_row_once(number: int) -> None:
    rows = [f"r{each}" for each in range(number)]
    found = pages(rows, **{"api-version": "2025-12-01"})
    assert [each for page in found for each in page] == rows
    assert len(found) == max(1, -(-number // requests.PAGE))


def test_a_row_that_went_between_two_pages_takes_no_other_along() -> None:
    rows = [f"r{each:03}" for each in range(requests.PAGE + 50)]
    answer = requests.page(ADDRESS, {}, rows, str, lambda row: {"name": row})
    query = dict(parse_qsl(urlsplit(answer["nextLink"]).query))
    del rows[3]
    rest = requests.page(ADDRESS, query, rows, str, lambda row: {"name": row})
    assert [each["name"] for each in rest["value"]] == [
        f"r{each:03}" for each in range(requests.PAGE, requests.PAGE + 50)
    ]


@for_each("token", ["x", "e30", "WzEsMl0", "WyJhIiwiYiJd", "ü"])
def test_a_token_that_no_page_gave_is_refused(token: str) -> None:
    with pytest.raises(Refused, match=r"none that an earlier page gave") as caught:
        requests.page(ADDRESS, {requests.NEXT: token}, ["a"], str, lambda row: {"name": row})
    assert (caught.value.status, caught.value.code) == (400, "InvalidQueryParameterValue")


def jobs_of(manager: Manager) -> str:
    compute = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", compute, cluster())
    manager.settle()
    made: dict[str, Any] = {
        "a": {"tags": {"team": "x"}, "properties": {"origin": "web"}},
        "b": {"tags": {"team": "y", "owner": "me"}},
        "c": {},
    }
    for name, more in made.items():
        assert manager.call("PUT", f"{manager.workspace}/jobs/{name}", job(compute, **more))[0] == 201
    return f"{manager.workspace}/jobs"


@pytest.mark.parametrize(
    ("query", "gone", "found"),
    [
        ({}, "", ["ab", "cd", "e"]),
        ({}, "a", ["ab", "cd", "e"]),
        ({}, "b", ["ab", "de"]),
        ({"$top": "3"}, "", ["ab", "c"]),
        ({"tag": "shown"}, "", ["ac", "e"]),
        ({"properties": "none"}, "", [""]),
    ],
)
def test_pages_of_jobs_go_on_behind_the_last_one_shown(
    manager: Manager, monkeypatch: pytest.MonkeyPatch, query: dict[str, str], gone: str, found: list[str]
) -> None:
    monkeypatch.setattr(requests, "PAGE", 2)
    compute = f"{manager.workspace}/computes/gpu"
    manager.call("PUT", compute, cluster())
    manager.settle()
    for name in "abcde":
        tags = {"shown": "yes"} if name in "ace" else {}
        assert manager.call("PUT", f"{manager.workspace}/jobs/{name}", job(compute, tags=tags))[0] == 201
    seen = []
    following: dict[str, str] | None = query
    while following is not None:
        status, answer = manager.call("GET", f"{manager.workspace}/jobs", **following)
        assert status == 200
        seen.append("".join(each["name"] for each in answer["value"]))
        link = answer.get("nextLink")
        following = dict(parse_qsl(urlsplit(link).query)) if link else None
        if gone and len(seen) == 1:
            manager.call("POST", f"{manager.workspace}/jobs/{gone}/cancel", {})
            assert manager.call("DELETE", f"{manager.workspace}/jobs/{gone}")[0] == 200
    assert seen == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, "abc"),
        ({"tag": "team"}, "ab"),
        ({"tag": "owner"}, "b"),
        ({"jobType": "Command"}, "abc"),
        ({"jobType": "Pipeline"}, ""),
        ({"properties": "origin"}, "a"),
        ({"properties": "origin=shop"}, ""),
        ({"$top": "2"}, "ab"),
    ],
)
def test_jobs_are_narrowed_to_what_is_asked_for(manager: Manager, query: dict[str, str], found: str) -> None:
    _, answer = manager.call("GET", jobs_of(manager), **query)
    assert "".join(each["name"] for each in answer["value"]) == found


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, "21"),
        ({"version": "2"}, "2"),
        ({"tags": "kind"}, "21"),
        ({"tags": "kind=b"}, "2"),
        ({"tags": "kind,more"}, ""),
        ({"stage": "Production"}, "2"),
        ({"$orderBy": "createdtime desc"}, "21"),
        ({"$orderBy": "createdtime asc"}, "12"),
        ({"$orderBy": "createdtime desc", "$top": "1"}, "2"),
    ],
)
def test_versions_are_narrowed_to_what_is_asked_for(manager: Manager, query: dict[str, str], found: str) -> None:
    versions: dict[str, Any] = {"1": {"tags": {"kind": "a"}}, "2": {"tags": {"kind": "b"}, "stage": "Production"}}
    for number, more in versions.items():
        body = {"properties": {"modelUri": "azureml://datastores/workspaceblobstore/paths/m", **more}}
        assert manager.call("PUT", f"{manager.workspace}/models/m/versions/{number}", body)[0] == 201
    _, answer = manager.call("GET", f"{manager.workspace}/models/m/versions", **query)
    assert "".join(each["name"] for each in answer["value"]) == found


@pytest.mark.parametrize("top", ["0", "-1", "two"])
def test_a_number_of_entries_that_is_none_is_refused(manager: Manager, top: str) -> None:
    status, error = manager.call("GET", f"{manager.workspace}/jobs", **{"$top": top})
    assert (status, error["code"]) == (400, "InvalidQueryParameterValue")


@pytest.fixture
def store_of(manager: Manager) -> tuple[str, dict[str, Any], str]:
    path = f"{manager.workspace.partition('/providers/')[0]}/providers/Microsoft.Insights/components/mine"
    body = {"location": "eastus", "kind": "web", "properties": {"Application_Type": "web"}}
    status, made = manager.call("PUT", path, body)
    assert status == 200
    return path, body, made["etag"]


def test_a_write_bound_to_a_state_that_is_over_changes_nothing(
    manager: Manager, store_of: tuple[str, dict[str, Any], str]
) -> None:
    path, body, first = store_of
    body["tags"] = {"turn": "second"}
    status, second = manager.call("PUT", path, body, headers={"if-match": first})
    assert (status, second["etag"] != first) == (200, True)
    body["tags"] = {"turn": "third"}
    for method in ("PUT", "DELETE"):
        status, error = manager.call(method, path, body, headers={"if-match": first})
        assert (status, error["code"]) == (412, "PreconditionFailed")
    assert manager.call("GET", path)[1] == second
    assert manager.call("DELETE", path, headers={"if-match": "*"})[0] == 200
    assert manager.call("PUT", path, body, headers={"if-match": "*"})[0] == 412


def test_what_must_be_new_is_not_put_in_the_place_of_another(
    manager: Manager, store_of: tuple[str, dict[str, Any], str]
) -> None:
    path, body, etag = store_of
    status, error = manager.call("PUT", path, body, headers={"if-none-match": "*"})
    assert (status, error["code"]) == (412, "PreconditionFailed")
    assert manager.call("GET", path)[1]["etag"] == etag
    assert manager.call("PUT", f"{path}2", body, headers={"if-none-match": "*"})[0] == 200
