"""Every operation of every resource type says how it is known, and no witness is of an operation that is not there."""

from __future__ import annotations

import pytest

from amlstack.sandbox import kinds
from amlstack.sandbox.kinds import witnesses
from amlstack.sandbox.kinds.witnesses import beside

ALL = {one: kind for kind in kinds.ALL for one in witnesses.operations(kind)}
PLACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


@pytest.mark.parametrize("one", ALL)
def test_an_operation_has_a_witness(one: str) -> None:
    assert witnesses.way(ALL[one], one) in witnesses.WAYS, f"record a client's run of it, or say what documents {one}"


@pytest.mark.parametrize("row", ["clients", "documented", "assumed"])
def test_a_witness_is_of_something_that_is_answered(row: str) -> None:
    rows = {
        "clients": witnesses.asked(),
        "documented": witnesses.DOCUMENTED,
        "assumed": witnesses.ASSUMED,
    }
    assert set(rows[row]) - set(ALL) == set()


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("GET", f"{PLACE}/jobs", "list Microsoft.MachineLearningServices/workspaces/jobs"),
        ("GET", f"{PLACE}/jobs/j", "GET Microsoft.MachineLearningServices/workspaces/jobs"),
        ("POST", f"{PLACE}/jobs/j/cancel", "POST Microsoft.MachineLearningServices/workspaces/jobs/cancel"),
        ("POST", f"{PLACE}/LISTKEYS", "POST Microsoft.MachineLearningServices/workspaces/listKeys"),
        ("POST", f"{PLACE}/jobs/j/nothing", None),
        ("GET", "/metadata/endpoints", None),
        ("GET", f"{PLACE}/unknown/x", None),
    ],
)
def test_a_request_is_known_by_its_type(method: str, path: str, found: str | None) -> None:
    assert witnesses.operation(method, path) == found


@pytest.mark.parametrize("row", beside.ROWS, ids=lambda row: row.name)
def test_a_row_beside_the_types_has_a_witness(row: beside.Row) -> None:
    assert witnesses.way_beside(row), f"record a client's run of it, or name the page that documents {row.name}"


def test_records_name_only_rows_that_the_page_has() -> None:
    recorded = {name for record in witnesses.records() for name in record["beside"]}
    assert recorded <= {row.name for row in beside.ROWS}


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        ("POST", "/tenant/oauth2/v2.0/token", {"token"}),
        ("PUT", "/blob/account/container/a/b.txt", {"blobs"}),
        ("PATCH", "/blob/account.dfs.localhost/files/a", {"directories"}),
        ("GET", "/subscriptions", {"subscriptions"}),
        ("GET", "/subscriptions/s", set()),
    ],
)
def test_a_request_belongs_to_one_row_at_most(method: str, path: str, found: set[str]) -> None:
    assert beside.names([(method, path)]) == found
