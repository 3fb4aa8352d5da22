"""The function that asks Azure for one resource: what it finds, and what it answers instead of an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from amlstack.provider.arm import ArmError, Response
from amlstack.provider.arm.client import look_up

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
