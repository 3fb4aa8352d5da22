"""A create that was cut off, as azure-native leaves it: docs/how-to/killed-creates.md shows the way out."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harness import ANALYZER
from tests.support.stack.small_jobs import settings, store_of

if TYPE_CHECKING:
    from tests.support.stack.small_jobs import Own

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

LOST = {"workspace", "busy", "spare", "workspace-contributor-on-workspace", "workspace-diagnostics"}
"""The workspace, and what is in it or on it."""


def made(own: Own, name: str) -> float:
    """The time at which the service made the resource of that name."""
    with store_of(own.home) as store:
        (found,) = (one for one in store.resources.all() if one.name == name)
        return found.created


def test_what_a_killed_plugin_left_is_imported_with_its_parents_and_nothing_is_made_twice(own: Own) -> None:
    stack = own.stack
    for key, value in settings("imported").items():
        stack.set(key, value, path=False)
    stack.up(policy_packs=[ANALYZER]).ok()
    before = stack.resources()
    ids = {name: before[name]["id"] for name in LOST}
    since = made(own, "imported")

    # What a killed plugin leaves: the service has the resources and the state has not. The real plugin notes nothing.
    stack.pulumi("state", "delete", before["workspace"]["urn"], "--target-dependents", "--yes").ok()
    shutil.rmtree(own.home / "sandbox" / "azure-native")
    refused = stack.up(policy_packs=[ANALYZER])
    assert refused.code != 0
    left = {name for name, one in stack.resources().items() if one["type"].startswith("azure-native:")}
    assert left.isdisjoint(LOST)
    assert left | LOST == {name for name, one in before.items() if one["type"].startswith("azure-native:")}
    assert f"cannot create already existing resource '{ids['workspace']}'" in refused.output

    file = stack.folder / "import.json"
    stack.preview("--import-file", str(file)).ok()
    wanted: dict[str, Any] = json.loads(file.read_text())
    # The page's step by hand: what the service has is kept, with its id.
    wanted["resources"] = [one for one in wanted["resources"] if one.get("logicalName", one["name"]) in ids]
    for one in wanted["resources"]:
        one["id"] = ids[one.get("logicalName", one["name"])]
    assert all("parent" in one for one in wanted["resources"])
    assert len(wanted["resources"]) == len(ids), wanted
    file.write_text(json.dumps(wanted))
    stack.pulumi("import", "--file", str(file), "--yes", "--protect=false", "--generate-code=false").ok()

    imported = stack.resources()
    assert {name: (imported[name]["urn"], imported[name]["id"]) for name in ids} == {
        name: (before[name]["urn"], before[name]["id"]) for name in ids
    }
    shown = stack.preview("--diff").ok().output
    assert "Workspace: (replace)" in shown
    assert "Compute: (replace)" in shown

    # The page's second step by hand: inputs as the program declares them, not as Azure spells them.
    state = json.loads(stack.pulumi("stack", "export").ok().output)
    for one in state["deployment"]["resources"]:
        if one["type"].startswith("azure-native:machinelearningservices:"):
            declared = next(known["inputs"] for known in before.values() if known["urn"] == one["urn"])
            one["inputs"] = declared
    file.write_text(json.dumps(state))
    stack.pulumi("stack", "import", "--file", str(file)).ok()
    assert "replace" not in stack.up(policy_packs=[ANALYZER]).ok().changes
    assert set(stack.resources()) == set(before)
    assert made(own, "imported") == since, "the workspace is the same one"
    again = stack.preview().ok().output
    assert not any(f" to {what}" in again for what in ("create", "update", "replace", "delete")), again
