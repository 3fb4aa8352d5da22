"""Answers that Azure's documentation leaves open, and that a test can ask Azure itself for.

`tests/sandbox/test_answers_that_azure_gives.py` asks the sandbox, or with AMLSTACK_AZURE=1 a real workspace; what Azure
answered is then recorded with its date in answers.json, and the question leaves the list of docs/sandbox.md.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = "answers.json"
OPEN: Final[Mapping[str, str]] = {
    "nested-json": "JSON nested deeper than 64 levels is `400 InvalidRequestContent`; Azure's own bound is not known.",
    "next-version": (
        "`nextVersion` of a container is one more than the greatest of its versions that are whole numbers; "
        "`latestVersion` is the last one made, archived or not."
    ),
    "archived-container": "An archived container takes its versions out of the lists too.",
    "delete-active-job": "DELETE of a job that has not ended: `409 JobIsActive`. Cancel it first.",
    "no-acting-token": (
        "A pipeline or a job with `identity: user_identity` without the header `x-azureml-token`: `400 UserError`."
    ),
    "cancel-ended-job": "Cancelling a job that has ended: `200`, nothing changes.",
}
"""By the question's name: what the sandbox answers."""


def recorded() -> Mapping[str, Any]:
    """What Azure answered: question → ``{"recorded": date, "answer": …}``."""
    found: Mapping[str, Any] = json.loads(resources.files(__package__).joinpath(FILE).read_text("utf-8"))
    return found


def unanswered() -> tuple[str, ...]:
    """What the sandbox had to choose, as Azure has not been asked yet."""
    known = recorded()
    return tuple(text for name, text in OPEN.items() if name not in known)
