"""docs/reference/sandbox.md has a row for each resource type; its witnesses are those that the tests recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from amlstack.base.paths import PROJECT
from amlstack.sandbox import kinds
from tests.support.rows import for_each
from tools.docs.witnesses import MARKS, asked, known_by, operation, operations

if TYPE_CHECKING:
    from amlstack.sandbox.protocol.kind import ResourceKind

PLACE = "/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
PAGE = (PROJECT / "docs/reference/sandbox.md").read_text("utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for line in PAGE.splitlines()
    if line.startswith("| `Microsoft.") and len(cells := line.strip("| ").split(" | ")) == 5
}
"""Type → its cells: type, verbs, provisioning, notes, known by."""
BESIDE = [
    cells
    for line in PAGE.partition("## Beside the resource manager")[2].partition("\n\nMicrosoft's clients")[0].splitlines()
    if len(cells := line.strip("| ").split(" | ")) == 3
][2:]
"""Cells of the paths beside the resource manager: path, what, known by."""


def polls(number: int) -> str:
    return f"{number} poll{'' if number == 1 else 's'}" if number else "at once"


def test_the_page_has_a_row_for_each_type() -> None:
    assert sorted(ROWS) == sorted(kind.type for kind in kinds.ALL)


@for_each("kind", kinds.ALL)
def test_a_row_says_what_its_type_answers(kind: ResourceKind) -> None:
    _, verbs, provisioning, _, cell = ROWS[kind.type]
    writes = [] if kind.read_only else ["PUT", *(["PATCH"] if kind.patches else []), "DELETE"]
    deletion = f"; deletion {polls(kind.ticks_delete)}" if kind.ticks_delete else ""
    assert verbs == ", ".join(["GET", *writes, *kind.actions])
    assert provisioning == polls(kind.ticks) + deletion
    assert cell == known_by(kind), "`make docs` writes it"
    said = [one for part in cell.split("; ") for one in part.rpartition(": ")[2].split(", ")]
    assert sorted(said) == sorted(operations(kind))


def test_what_is_beside_the_resource_manager_says_how_it_is_known() -> None:
    assert len(BESIDE) > 10
    for path, _, cell in BESIDE:
        assert cell.split(" (")[0] in {*MARKS, "Microsoft's test"}, path


def test_records_name_only_what_is_answered() -> None:
    assert {re.sub(r"^\w+ ", "", one) for one in asked() if not one.startswith("POST ")} <= set(ROWS)


@for_each(
    "method, path, found",
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
    assert operation(method, path) == found
