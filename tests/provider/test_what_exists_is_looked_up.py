"""The function that asks Azure for one resource: what it finds, and what it answers instead of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError, Response
from amlstack.provider.arm.functions import look_up

if TYPE_CHECKING:
    from amlstack.provider.arm import ArmClient

ASKED = {
    "id": "/subscriptions/s/resourceGroups/g/providers/X/y/z",
    "apiVersion": "2024-01-01",
    "properties": ["a", "b"],
}


class Answers:
    """A resource manager with one answer."""

    def __init__(self, answer: Response | ArmError) -> None:
        self._answer = answer

    def get(self, *_: Any, **__: Any) -> Response:
        if isinstance(self._answer, ArmError):
            raise self._answer
        return self._answer


def asked(answer: Response | ArmError) -> dict[str, Any]:
    arm: ArmClient = Answers(answer)  # type: ignore[assignment]
    return look_up(arm, ASKED)


def test_nothing_but_the_named_properties_is_given_back() -> None:
    body = {"location": "westeurope", "properties": {"a": 1, "b": None, "instrumentationKey": "secret"}}
    assert asked(Response(200, body)) == {"status": 200, "location": "westeurope", "properties": {"a": 1}}


@pytest.mark.parametrize("status", [0, 403, 404, 500])
def test_a_refusal_is_an_answer_in_the_service_s_words(status: int) -> None:
    answer = asked(ArmError(status, "SomeCode", "in its own words"))
    assert answer == {"status": status, "code": "SomeCode", "message": "in its own words"}


def test_runs_of_other_stacks_are_recognised_by_the_stacks_id_and_without_one_by_the_owner() -> None:
    def job(name: str, status: str, **marks: str) -> dict[str, Any]:
        marked = {f"amlstack.{key}": value for key, value in marks.items()}
        return {"name": name, "properties": {"status": status, "properties": marked}}

    listed = [
        job("own", "Running", owner="p/old-name", stack="s1"),
        job("theirs", "Running", owner="p/other", stack="s2"),
        job("ended", "Completed", owner="p/other", stack="s2"),
        job("alike", "Queued", owner="p/dev", stack="s3"),
        job("former", "Running", owner="p/dev"),
    ]
    arm: ArmClient = Answers(Response(200, {"value": listed}))  # type: ignore[assignment]
    found = run_lists.runs_of_others(arm, "/subscriptions/s/…/workspaces/w", ("p/dev",), "s1")
    assert [one.job_id for one in found] == ["alike", "theirs"]
