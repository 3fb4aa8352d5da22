"""Component versions: registered once, shared by stacks, retained."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.provider.fake_workspace import WORKSPACE

if TYPE_CHECKING:
    from tests.support.provider.fake_arm import FakeArm
    from tests.support.provider.provider_wire import Wire

BODY = {"componentSpec": {"type": "command", "command": "python a.py"}, "isAnonymous": True}
ID = f"{WORKSPACE}/components/inline/versions/0f0e"


def inputs(**changes: Any) -> dict[str, Any]:
    return {"workspace": WORKSPACE, "name": "inline", "version": "0f0e", "body": BODY, **changes}


def test_a_component_is_registered_under_its_version(wire: Wire, arm: FakeArm) -> None:
    component = wire.component()
    assert component.preview(inputs())["componentId"] == ID
    assert arm.asked == []
    assert component.up(inputs()) == "create"
    assert component.id == ID
    assert arm.resources[ID] == {"properties": BODY}
    assert component.up(inputs()) == "same"


def test_two_stacks_share_a_component_and_neither_deletes_it(wire: Wire, arm: FakeArm) -> None:
    one, other = wire.component(), wire.component()
    one.up(inputs())
    other.up(inputs())
    assert arm.count("PUT", "/components/") == 1
    one.remove()
    assert ID in arm.resources


def test_another_version_is_another_component(wire: Wire, arm: FakeArm) -> None:
    component = wire.component()
    component.up(inputs())
    assert component.up(inputs(version="1a1b")) == "replace"
    assert arm.count("PUT", "/components/") == 2


def test_a_vanished_component_is_registered_again(wire: Wire, arm: FakeArm) -> None:
    component = wire.component()
    component.up(inputs())
    arm.resources.pop(ID)
    component.refresh()
    assert component.up(inputs()) == "create"


def test_a_component_without_a_specification_is_refused(wire: Wire) -> None:
    failures = wire.component().failures(inputs(body={"isAnonymous": True}))
    assert failures == {"body": "a component has a componentSpec"}


def test_a_component_whose_versions_azure_names_is_refused(wire: Wire) -> None:
    failures = wire.component().failures(inputs(name="azureml_anonymous"))
    assert failures == {"name": "Azure chooses the versions of azureml_anonymous itself; take another name"}
