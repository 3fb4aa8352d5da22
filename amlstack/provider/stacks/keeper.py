"""``amlstack:stack:Record``: a random id by which a stack knows its runs, whatever it is called.

``amlstack:stack:Keeper``: made last and deleted first, it refuses the end of a stack before anything is deleted.

The keeper depends on every resource of the stack. So the engine deletes it before all others, and stops there when it
is protected or refuses. It refuses to let a resource group or a workspace go while these hold what the stack does not
own.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

from amlstack.provider import run_lists
from amlstack.provider.arm import ArmError
from amlstack.provider.resource import (
    WORKSPACE_ID,
    Call,
    Difference,
    InputField,
    Resource,
    Services,
    Values,
    same_arm_id,
    shape_of,
    text_of,
)
from amlstack.provider.stacks import foreign, guard
from amlstack.rpc import UNKNOWN, ErrorCode, Failures, ProviderError
from amlstack.run_identity import owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from amlstack.provider.arm import ArmClient

_RULE = (
    re.compile(r"[A-Za-z0-9-]{8,64}"),
    "8 to 64 letters, digits and '-', as a run's property amlstack.stack has it",
)


class Records(Resource):
    """Makes the id once. It lives in the stack's state; Azure knows it from the runs that bear it.

    An id may be given, to take over the runs of a state that was lost.
    """

    shape = shape_of("amlstack:stack:Record", {"stackId": InputField(pattern=_RULE, in_id=True)})
    refused_import = (
        "a stack's id is not imported: set amlstack:stack_id to the value that the runs have in amlstack.stack"
    )

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Another id that is given takes the place of the one there is; one that is no longer given stays."""
        wanted = new.get("stackId")
        return Difference(replaces=("stackId",)) if wanted not in (None, old.get("stackId")) else Difference()

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """The given id, or a random one; at preview a random one is not known yet."""
        given: Any = inputs.get("stackId")
        if call.preview:
            return "", {"stackId": UNKNOWN if given is None else given}
        stack_id = given if given is not None else secrets.token_hex(16)
        return str(stack_id), {"stackId": stack_id}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """The id stays."""
        return dict(old)


PLACES = {"group": "resource group", "workspace": "workspace"}


class Keepers(Resource):
    """Asks what lies in the group and the workspace of a stack when these go, and only then."""

    shape = shape_of(
        "amlstack:stack:Keeper",
        {
            "group": InputField(
                pattern=(
                    re.compile(r"/subscriptions/[^/]+/resourceGroups/[^/]+", re.IGNORECASE),
                    "an ARM id, /subscriptions/…/resourceGroups/NAME",
                ),
            ),
            "workspace": WORKSPACE_ID,
        },
        inputs_alone=frozenset({"owned"}),
    )
    refused_import = "a stack's keeper is not imported: declare it"

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._declared: set[str] = set()

    def check(self, call: Call, inputs: Values, failures: Failures) -> Values:
        """Types."""
        self._declared.add(call.urn)
        return super().check(call, inputs, failures)

    def diff(self, call: Call, resource_id: str, old_inputs: Values, old: Values, new: Values) -> Difference:  # noqa: ARG002
        """Nothing of it is ever replaced; a group or workspace that is known and will not be any more goes."""
        before = old_inputs or old
        going = {
            place: text_of(before, place)
            for place in PLACES
            if text_of(before, place) and not same_arm_id(before[place], new.get(place))
        }
        if (group := going.get("group")) and text_of(new, "workspace").lower().startswith(f"{group.lower()}/"):
            # The group was the stack's and exists for others now: the engine would delete it around the workspace.
            name = group.rsplit("/", 1)[-1]
            raise ProviderError(
                f"resource group {name} would be deleted, as the settings say no more that it is this stack's, and the "
                "workspace stays in it. A group that a stack has made remains its own: give it as "
                f"`amlstack:resource_group: {name}`",
                ErrorCode.FAILED_PRECONDITION,
            )
        if going:
            self._refuse(call, going, before, old)
        changed = tuple(name for name in ("group", "workspace") if (name in before) != (name in new))
        return Difference(updates=changed)

    def create(self, call: Call, inputs: Values) -> tuple[str, Values]:
        """Nothing is made in Azure."""
        return ("" if call.preview else "keeper"), {**inputs, "owner": owner_of(call.urn)}

    def update(self, call: Call, resource_id: str, old: Values, new: Values) -> Values:  # noqa: ARG002
        """Records what the stack owns."""
        return {**new, "owner": old.get("owner") or owner_of(call.urn)}

    def delete(self, call: Call, resource_id: str, inputs: Values, old: Values) -> None:  # noqa: ARG002
        """At the stack's end, before anything else goes."""
        if call.urn in self._declared:
            return  # replaced by command: the stack goes on
        asked = inputs or old
        places = {place: text_of(asked, place) for place in PLACES if text_of(asked, place)}
        if "workspace" not in places:
            self._refuse_clusters_at_work(call, asked, old)
        self._refuse(call, places, asked, old)
        self._services.course.stack_ends = True

    def _refuse_clusters_at_work(self, call: Call, asked: Values, old: Values) -> None:
        """Refuses the end of clusters on a workspace of others while their nodes work for somebody else.

        Raises:
            ProviderError: They do; or they could not be asked.
        """
        clusters = {one.lower(): "deleted" for one in _owned(asked) if "/computes/" in one.lower()}
        try:
            owners = (text_of(old, "owner"), owner_of(call.urn))
            records = [
                record
                for workspace in sorted({one.partition("/computes/")[0] for one in clusters})
                for record in run_lists.active_runs(self._services.arm, workspace, owners, text_of(asked, "stackId"))
            ]
            at_work = guard.busy_clusters(self._services.arm, clusters, records)
        except ArmError as error:
            raise ProviderError(f"whether others have something in it cannot be asked: {error}") from None
        if at_work:
            raise ProviderError(f"{'; '.join(at_work)}. Nothing was deleted", ErrorCode.FAILED_PRECONDITION)

    def _refuse(self, call: Call, going: Mapping[str, str], asked: Values, old: Values) -> None:
        """Refuses the end of places that hold something of others.

        Raises:
            ProviderError: They do, and nobody has named it; or they could not be asked.
        """
        owners = (text_of(old, "owner"), owner_of(call.urn))
        try:
            found = held(self._services.arm, going, asked, owners)
        except ArmError as error:
            raise ProviderError(f"whether others have something in it cannot be asked: {error}") from None
        if runs := [one.active for one in found if one.active]:
            raise ProviderError(
                f"{'; '.join(runs)} on this stack's workspace, which would go with the stack. Nothing was deleted. "
                "Destroy that stack first, or wait for the end of its runs or cancel them",
                ErrorCode.FAILED_PRECONDITION,
            )
        if left := foreign.unnamed(found):
            raise ProviderError(refusal(going, left), ErrorCode.FAILED_PRECONDITION)


def held(arm: ArmClient, places: Mapping[str, str], asked: Values, owners: tuple[str, ...]) -> list[foreign.Foreign]:
    """The resources of others in a stack's group and workspace.

    Args:
        arm: Azure Resource Manager.
        places: ARM ids by ``group`` and ``workspace``.
        asked: The keeper's inputs.
        owners: What the stack is called, now and formerly.

    Raises:
        ArmError: The service could not be asked.
    """
    own = _owned(asked)
    found = foreign.in_group(arm, places["group"], own) if "group" in places else []
    if "workspace" in places:
        found += foreign.in_workspace(arm, places["workspace"], own, owners, text_of(asked, "stackId"))
    return list({one.id.lower(): one for one in found}.values())


def _owned(asked: Values) -> list[str]:
    given = asked.get("owned")
    return [one for one in given if isinstance(one, str)] if isinstance(given, list) else []


def refusal(going: Mapping[str, str], found: list[foreign.Foreign]) -> str:
    """The sentence on what would go with a group or workspace."""
    places = " and ".join(f"{PLACES[place]} {name.rsplit('/', 1)[-1]}" for place, name in going.items())
    return (
        f"{places} would go, and with {'it' if len(going) == 1 else 'them'} what this stack does not own: "
        f"{foreign.listed(found)}. Nothing was deleted. Move or delete it first, or name each that may go: `amlstack "
        f"down --stack NAME --delete-foreign {found[0]}`, for plain Pulumi {foreign.VARIABLE}={found[0]} with commas "
        "between several; jobs/* names all jobs"
    )
