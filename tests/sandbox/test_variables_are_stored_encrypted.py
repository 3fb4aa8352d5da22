"""What a job's variables hold is nowhere in the sandbox's files in clear text, and comes back as it was."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from amlstack.sandbox.store import sealing
from amlstack.sandbox.store.database import StateError
from amlstack.sandbox.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "canary-of-the-variables"
JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(["a", "environmentVariables", "environment_variables"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)


def body(**variables: Any) -> dict[str, Any]:
    step = {"environment_variables": {"TOKEN": CANARY}, "command": "true"}
    return {"properties": {"jobType": "Command", "environmentVariables": variables, "jobs": {"one": step}}}


def test_a_store_keeps_variables_encrypted(tmp_path: Path) -> None:
    store = Store(tmp_path)
    given = body(TOKEN=CANARY, EMPTY="", NONE=None)
    store.jobs.add("/w", "a", given)
    store.resources.put("/w/schedules/a", "schedules", "/w", {"properties": {"action": given}})
    store.jobs.set_body("a", {**given, "more": 1})
    for file in tmp_path.rglob("*"):
        assert CANARY.encode() not in (file.read_bytes() if file.is_file() else b"")
    assert store.jobs["a"].body == {**given, "more": 1}
    found = store.resources.get("/w/schedules/a")
    assert found is not None
    assert found.body == {"properties": {"action": given}}
    assert (tmp_path / "sandbox" / sealing.KEY).stat().st_mode & 0o777 == 0o600
    store.close()


def test_what_an_earlier_version_wrote_is_read_as_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.jobs.add("/w", "a", {})
    store.database.execute("UPDATE jobs SET body = ? WHERE id = 'a'", json.dumps(body(TOKEN=CANARY)))
    assert store.jobs["a"].body == body(TOKEN=CANARY)
    store.close()


def test_processes_that_begin_together_agree_on_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda number: sealing.dumps(body(N=number), tmp_path / "state.db"), range(16)))
    assert [sealing.loads(text, tmp_path / "state.db") for text in texts] == [body(N=number) for number in range(16)]


def test_a_lost_key_is_reported(tmp_path: Path) -> None:
    text = sealing.dumps(body(A="b"), tmp_path / "state.db")
    (tmp_path / sealing.KEY).unlink()
    with pytest.raises(StateError, match="amlstack sandbox reset"):
        sealing.loads(text, tmp_path / "state.db")


@given(value=JSON)
def test_any_body_comes_back(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    database = tmp_path_factory.getbasetemp() / "state.db"
    assert sealing.loads(sealing.dumps(value, database), database) == value
