"""The base of every emulated resource type: name, schema, defaults, provisioning, and its own refusals."""

from __future__ import annotations

import copy
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from amlstack.sandbox.protocol import entra
from amlstack.sandbox.protocol.refusals import Refused, not_emulated
from amlstack.sandbox.protocol.times import iso, with_offset

if TYPE_CHECKING:
    import asyncio

    from amlstack.sandbox.protocol.addresses import ArmPath
    from amlstack.sandbox.store.store import ResourceRow, Store
    from amlstack.sandbox.store.tables import Operation

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: status, JSON body (None for none), headers."""

    status: int
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KindContext:
    """The means that a kind may use while it answers.

    Attributes:
        store: All state.
        base: ``https://127.0.0.1:PORT``, the one endpoint.
        key: The key that signs tokens and SAS.
        wake: Set whenever the scheduler has something to look at.
        scheduled: A scheduler runs; without one the server itself ends jobs that never started.
    """

    store: Store
    base: str
    key: str
    wake: asyncio.Event
    scheduled: bool = True


@dataclass(frozen=True, slots=True)
class NameRule:
    """The rule for a kind's names: a pattern for the whole name, and the rule in words."""

    pattern: str
    words: str

    def check(self, name: str, kind: str) -> None:
        """Refuses a name that breaks the rule."""
        if not re.fullmatch(self.pattern, name):
            raise Refused(400, "InvalidResourceName", f"'{name}' is no valid name for {kind}: {self.words}.", "name")


BY_STATUS: Final = "Azure-AsyncOperation"
BY_RESULT: Final = "Location"
"""Headers of an operation's two addresses: of its status, and of its result."""

SOON: Final = {"retry-after-ms": "20", "x-ms-retry-after-ms": "20"}
"""Clients poll at once: ``Retry-After: 0`` would count as absent (30 s), so the milliseconds header carries it."""

UNDER_WAY: Final = frozenset({"Creating", "Updating"})
"""States of a resource that is being made or changed."""


_FORMS: Final[Mapping[str, type]] = {"assigned": frozenset, "actions": tuple}


@cache
def _constants() -> dict[str, dict[str, Any]]:
    """Class of a kind → its attributes as Azure answers them; an inherited row counts where a class has none."""
    rows: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("kinds.json").read_text("utf-8"))
    for row in rows.values():
        if "names" in row:
            row["names"] = NameRule(*row["names"])
        row |= {name: form(row[name]) for name, form in _FORMS.items() if name in row}
    return rows


class ResourceKind:
    """One resource type. The defaults here serve a plain tracked resource; `kinds.json` has what a kind differs in.

    Attributes:
        type: ``Microsoft.X/a/b`` in the service's letters.
        noun: What it is called in messages.
        names: The rule for its names.
        defaults: Properties that the service writes into a body that lacks them.
        tracked: It has a location, and lies directly in a resource group.
        ticks: Polls until a new resource is ``Succeeded``; 0 answers at once.
        ticks_delete: Polls until a deleted one is gone.
        patches: PATCH is emulated.
        read_only: Nothing but GET and the actions.
        actions: POST verbs.
        makes_parent: A PUT makes the container above when it is missing (versions of an asset).
        nulls: Properties that every answer has, with their value where the resource has none.
        accepted: The body of an answer of 202 to a PUT.
        made_status: What a PUT that makes one answers; Microsoft's clients take some of them only.
        located: The form of the header ``Location`` of an answer of 201; empty where it has none.
        refusal: What stands beside ``error`` in refusals of a request's content.
        again_status: What a PUT of one that is there answers.
        patch_status: What a PATCH answers; 202 has no body.
        ticks_again: Polls until a change is done, by the method that asks for it; at once for any other.
        making: The provisioning state of one that is being made or changed.
        followed: Headers that lead to an operation, by its kind; both of them for any other.
        etag_form: The form of its etag, with ``{}`` or ``{guid}`` for the value; empty where answers have none.
        etag_written: Answers to a PUT and a PATCH have it as a header.
        dated: Answers have ``systemData``.
        dated_since: Date of the first api-version whose answers have it.
        counted: An operation that has succeeded says how many percent of it are done.
        status_at, result_at: Paths at which an operation is followed, below the resource manager's root.
        gone_status: What the result of a deletion answers once it is done.
        null_told: An answer of 202 to a DELETE has the body ``null``, with its type.
        answers_deletion: A DELETE that is done at once answers with what was there.
        leaves_parent: The result of a deletion that takes its time is what it lay in.
        since: Path under ``properties`` (``*`` for any name) → date of the first api-version whose answers have it.
        until: Property → date of the last api-version whose answers have it, and its value where the resource has none.
        outer: What every answer has beside ``properties``, with its value where the resource has none.
        frontend: Azure Machine Learning's front end answers: its refusals and operations have a form of their own.
        assigned: Names under ``properties`` that only the service writes although azure-native's input classes have
            them: a client that PUTs or PATCHes what it got sends them along, and ARM takes no notice.
    """

    type: ClassVar[str]
    noun: ClassVar[str]
    names: ClassVar[NameRule]
    defaults: ClassVar[Body] = {}
    tracked: ClassVar[bool] = True
    ticks: ClassVar[int] = 0
    ticks_delete: ClassVar[int] = 0
    patches: ClassVar[bool] = False
    read_only: ClassVar[bool] = False
    actions: ClassVar[tuple[str, ...]] = ()
    makes_parent: ClassVar[bool] = False
    nulls: ClassVar[Body] = {}
    made_status: ClassVar[int] = 201
    located: ClassVar[str] = ""
    refusal: ClassVar[Body] = {}
    again_status: ClassVar[int] = 200
    patch_status: ClassVar[int] = 200
    ticks_again: ClassVar[Mapping[str, int]] = {}
    making: ClassVar[str] = "Creating"
    followed: ClassVar[Mapping[str, Sequence[str]]] = {"create": (BY_STATUS,), "update": (BY_STATUS,)}
    etag_form: ClassVar[str] = ""
    etag_written: ClassVar[bool] = False
    dated: ClassVar[bool] = True
    dated_since: ClassVar[str] = ""
    status_at: ClassVar[str] = "{subscription}/providers/{namespace}/operationsStatus/{id}"
    result_at: ClassVar[str] = "{subscription}/providers/{namespace}/operationResults/{id}"
    gone_status: ClassVar[int] = 204
    null_told: ClassVar[bool] = False
    answers_deletion: ClassVar[bool] = False
    leaves_parent: ClassVar[bool] = False
    since: ClassVar[Mapping[str, str]] = {}
    until: ClassVar[Mapping[str, Sequence[Any]]] = {}
    outer: ClassVar[Body] = {}
    accepted: ClassVar[Body | None] = None
    counted: ClassVar[bool] = False
    frontend: ClassVar[bool] = False
    assigned: ClassVar[frozenset[str]] = frozenset({"provisioningState"})

    def __init_subclass__(cls) -> None:
        """Takes the class's row of `kinds.json`."""
        for name, value in _constants().get(cls.__name__, {}).items():
            setattr(cls, name, value)

    def is_taken(self, context: KindContext, name: str) -> bool:
        """True where a resource of the type has the name, in any subscription: for names that are unique in Azure."""
        return any(row.name.lower() == name.lower() for row in context.store.resources.of_type(self.type))

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """Refuses what names and types alone do not show: missing neighbours, wrong combinations."""

    def keep(self, body: Body, before: ResourceRow) -> Body:
        """The body to store when ``before`` exists already; the place for what the service ignores or refuses."""
        return body

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """The body with what the service writes into it."""
        return {**body, "properties": {**self.defaults, **body["properties"]}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The ``properties`` that only an answer has (endpoints, counts), merged over the stored ones."""
        return {}

    def made(self, context: KindContext, resource: ResourceRow) -> None:
        """After a new resource was stored, in the same transaction."""

    def changed(self, context: KindContext, resource: ResourceRow) -> None:
        """After a resource that was there was stored anew, in the same transaction."""

    def removing(self, context: KindContext, resource: ResourceRow) -> bool:
        """Called on every tick of a deletion; False keeps it waiting (for jobs to end)."""
        return True

    def action(self, context: KindContext, resource: ResourceRow, name: str, body: Body) -> Reply | Operation:
        """Answers ``POST <id>/<name>``, or begins what that does over time."""
        raise not_emulated(f"the action '{name}' of {resource.type}")

    def finished(self, context: KindContext, resource: ResourceRow, operation: Operation) -> None:
        """At the end of an operation of a resource, in the same transaction."""

    def result(self, context: KindContext, operation: Operation) -> Body | None:
        """The body of ``operationResults`` once an operation has succeeded; None for none."""
        return None

    def answer(
        self, context: KindContext, method: str, path: ArmPath, query: Mapping[str, str], body: Any
    ) -> Reply | None:
        """Answers a request for a kind whose records are no rows of the resources; None for one that has rows."""
        return None

    def act(self, context: KindContext, path: ArmPath, name: str, body: Body) -> Reply | Operation | None:
        """Answers a POST for something that need not be a row of the resources; None for an action of a row."""
        if self.makes_parent:
            raise not_emulated(f"the action '{name}' of {self.type}")
        return None

    def end_below(self, context: KindContext, resource: ResourceRow) -> bool:
        """Asks the records that are no rows, at or below a resource, to end; whether all have ended."""
        return True

    def forget_below(self, context: KindContext, resource: ResourceRow) -> None:
        """Removes the records that are no rows, at or below a resource."""

    def check_delete(self, query: Mapping[str, str]) -> None:
        """Refuses a DELETE whose query is not what the service asks for."""

    def removal(self, context: KindContext, resource: ResourceRow) -> tuple[int, bool]:
        """Polls until a resource is gone, and whether the answer to its DELETE shows it."""
        return self.ticks_delete, False

    def check_removal(self, context: KindContext, resource: ResourceRow) -> None:
        """Refuses a DELETE of the resource itself; of what is above it, it is not asked."""

    def failing_removal(self, context: KindContext, resource: ResourceRow) -> str:
        """The reason for which the operation of a DELETE fails, as ``CODE: message``; empty where it does not."""
        return ""

    def meant(self, context: KindContext, path: ArmPath) -> str:
        """The id of the resource that a GET of a path is about: the path itself, where a name stands for no other."""
        return path.text

    def named(self, path: ArmPath) -> Body:
        """The parts of an answer that depend on the name by which a GET asked, where that stands for another."""
        return {}

    def in_request(self, body: Body, version: str) -> Body:
        """The body of a PUT with the defaults that only its api-version has."""
        return body

    def placed(self, path: ArmPath, body: Body) -> ArmPath:
        """The path of the resource that a PUT makes or changes: its own, where the service chooses no name itself."""
        return path

    def absent(self, path: ArmPath) -> Refused:
        """The refusal of a request for a resource that is not there."""
        message = (
            f"The Resource '{path.type}/{'/'.join(path.names)}' under resource group '{path.group}' was not found. "
            "For more details please go to https://aka.ms/ARMResourceNotFoundFix"
        )
        return Refused(404, "ResourceNotFound", message)

    def select(self, context: KindContext, path: ArmPath, query: Mapping[str, str]) -> tuple[ResourceRow, ...]:
        """The rows that a GET of the collection lists."""
        return context.store.resources.under(path.parent, self.type)

    def render(self, context: KindContext, resource: ResourceRow) -> Body:
        """The resource as a GET answers it: envelope, stored body, provisioning state, live properties."""
        properties = {**self.nulls, **resource.body.get("properties", {}), **self.show(context, resource)}
        if self.tracked or self.ticks:
            properties["provisioningState"] = self.making if resource.state in UNDER_WAY else resource.state
        envelope = {key: value for key, value in resource.body.items() if key not in {"properties", "systemData"}}
        if envelope.get("identity"):
            envelope["identity"] = entra.shown(context.store, resource, envelope["identity"])
        return {
            "id": resource.id,
            "name": resource.name,
            "type": self.type,
            **self.etag_of(resource),
            **self.outer,
            **envelope,
            "properties": properties,
            **({"systemData": self.stamp(resource)} if self.dated else {}),
        }

    def stamp(self, resource: ResourceRow) -> Body:
        """ARM's ``systemData``: what is no tracked resource is dated by a service that writes offsets."""
        stamp = system_data(resource.created, resource.changed, form=iso if self.tracked else with_offset)
        return {**stamp, **resource.body.get("systemData", {})}

    def in_version(self, body: Body, version: str) -> Body:
        """An answer, or the rows of a list, without what an api-version does not have."""
        later = [path.split(".") for path, first in self.since.items() if version[:10] < first]
        undated = version[:10] < self.dated_since
        earlier = {name: value for name, (last, value) in self.until.items() if version[:10] <= last}
        if not later and not undated and not earlier:
            return body
        body = copy.deepcopy(body)
        for row in body["value"] if isinstance(body.get("value"), list) else [body]:
            for path in later:
                _drop(row.get("properties"), path)
            if earlier:
                row["properties"] = {**earlier, **row["properties"]}
            if undated:
                row.pop("systemData", None)
        return body

    def listed(self, context: KindContext, resource: ResourceRow) -> Body:
        """The resource as a list has it: as a GET of itself answers it, where nothing else is known."""
        return self.render(context, resource)

    def written(self, context: KindContext, resource: ResourceRow) -> Body:
        """The resource as a PUT or a PATCH answers it: as a GET does, where nothing else is known."""
        return self.render(context, resource)

    def etag_of(self, resource: ResourceRow) -> dict[str, str]:
        """The etag under its name; nothing for a kind without one."""
        guid = uuid.UUID(resource.etag)
        return {"etag": self.etag_form.format(resource.etag, guid=guid)} if self.etag_form else {}


def _drop(inner: Any, path: list[str]) -> None:
    if isinstance(inner, dict) and len(path) == 1:
        inner.pop(path[0], None)
    elif isinstance(inner, dict):
        for each in inner.values() if path[0] == "*" else [inner.get(path[0])]:
            _drop(each, path[1:])


def system_data(created: float, changed: float, *, form: Callable[[float], str]) -> Body:
    """ARM's ``systemData`` for two times in seconds since the epoch."""
    who = {"createdBy": "sandbox", "createdByType": "Application"}
    whom = {"lastModifiedBy": "sandbox", "lastModifiedByType": "Application"}
    return {**who, "createdAt": form(created), **whom, "lastModifiedAt": form(changed)}
