"""What a template deploys: its resources, those of loops, children and nested deployments included."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from amlstack.base.arm_language.values import OpenError
from policies.evaluation.facts import ELSEWHERE, Unknown, dig
from policies.templates.names import Around
from policies.templates.scope import Path, Scope
from policies.templates.values import TOO_LARGE, closed, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 8
"""Most levels of deployments within deployments and of children within resources; Azure takes fewer."""

_OF_RESOURCE = ("type", "name", "location", "tags")
_DEPLOYMENT = "microsoft.resources/deployments"


@dataclass(frozen=True, slots=True)
class Piece:
    """One resource that a template deploys.

    Attributes:
        kind: Its full type, as written.
        props: Properties in which it lies at `at`, worked out as far as they can be; where its type is not wanted,
            name, place and tags alone.
        at: Its path.
    """

    kind: str
    props: Mapping[str, Any]
    at: Path


@dataclass(frozen=True, slots=True)
class TemplateSource:
    """A template and what is beside it.

    Attributes:
        template: The template: an object, or its JSON as text.
        at: Its path.
        parameters: Values of parameters by name, each an object with ``value`` or ``reference``; or the JSON of such.
        elsewhere: Path of a link to a template kept elsewhere; None where there is none.
        linked_parameters: Whether parameters are given by a file kept elsewhere.
        library: Whether the template is only kept, for others to deploy.
        parts: Templates that a template specification keeps beside it, by their paths.
        around: Where it is deployed.
    """

    template: Any
    at: Path
    parameters: Any = None
    elsewhere: Path | None = None
    linked_parameters: bool = False
    library: bool = False
    parts: Mapping[str, Any] | None = None
    around: Around = field(default_factory=Around)


def pieces(source: TemplateSource, wanted: Callable[[str], bool]) -> Iterator[Piece | Unknown]:
    """All that a template deploys, and each part that cannot be seen.

    Args:
        source: The template.
        wanted: Whether a resource is read whole, by its type in small letters.
    """
    if source.elsewhere is not None:
        yield Unknown(".".join(source.elsewhere), ELSEWHERE, unresolved=True)
    if source.template is None:
        return
    template = _read(source.template)
    if not isinstance(template, Mapping):
        yield _unseen(source.template, source.at)
        return
    given = _given(source.parameters)
    if isinstance(given, Unknown):
        given = dict.fromkeys(map(str.lower, _names(template)), given)
    unasked = "is given by a parameters file kept elsewhere" if source.linked_parameters else ""
    scope = Scope(template, given, unasked=unasked, library=source.library, around=source.around)
    try:
        yield from _Walk(wanted, source.parts or {}).template(template, scope, source.at, 0)
    except RecursionError:
        yield Unknown(".".join(source.at), "is nested too deep to be read here", unresolved=True)


def _read(value: Any) -> Any:
    """A template or parameters, which may also be JSON in a text."""
    if isinstance(value, str):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value


def _given(parameters: Any) -> Mapping[str, Any] | Unknown:
    """Values by name in small letters; a whole parameters file is taken, too."""
    known = _read(parameters)
    if (why := missing(known)) is not None:
        return Unknown("parameters", unresolved=not why.later)
    if isinstance(known, Mapping) and isinstance(known.get("parameters"), Mapping) and "$schema" in known:
        known = known["parameters"]
    return {str(name).lower(): value for name, value in known.items()} if isinstance(known, Mapping) else {}


def _names(template: Mapping[str, Any]) -> list[str]:
    declared = template.get("parameters")
    return [str(name) for name in declared] if isinstance(declared, Mapping) else []


def _unseen(value: Any, path: Path) -> Unknown:
    where = ".".join(path)
    why = missing(value)
    if why is not None and why.later:
        return Unknown(where)
    return (
        value if isinstance(value, Unknown) else Unknown(where, "is no template that can be read here", unresolved=True)
    )


@dataclass(frozen=True, slots=True)
class _Walk:
    wanted: Callable[[str], bool]
    parts: Mapping[str, Any]

    def template(self, template: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        yield from self.resources(template.get("resources"), scope, (*at, "resources"), "", depth)

    def resources(self, listed: Any, scope: Scope, at: Path, parent: str, depth: int) -> Iterator[Piece | Unknown]:
        if listed is None:
            return
        if depth > DEEPEST:
            yield Unknown(".".join(at), "is nested too deep to be read here", unresolved=not scope.library)
            return
        if isinstance(listed, Mapping):
            each = list(listed.items())
        elif isinstance(listed, list):
            each = [(str(index), one) for index, one in enumerate(listed)]
        else:
            yield _unseen(listed, at)
            return
        for key, raw in each:
            if isinstance(raw, Mapping):
                if raw.get("existing") is not True:
                    yield from self.looped(raw, scope, (*at, str(key)), parent, depth)
            else:
                yield _unseen(raw, (*at, str(key)))

    def looped(
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: str, depth: int
    ) -> Iterator[Piece | Unknown]:
        loop = raw.get("copy")
        if not isinstance(loop, Mapping):
            yield from self.resource(raw, scope, at, parent, depth)
            return
        name = str(loop.get("name"))
        try:
            turns: list[int | None] = list(range(scope.count(loop.get("count"))))
        except OpenError as error:
            if error.later:
                yield Unknown(".".join((*at, "copy", "count")))
                return
            turns = [None]  # each turn is judged as far as its number does not matter
        for turn in turns:
            scope.budget.left -= 1
            if scope.budget.left < 0:
                yield Unknown(".".join((*at, "copy")), TOO_LARGE, unresolved=not scope.library)
                return
            here = at if turn is None else (*at[:-1], f"{at[-1]}[{turn}]")
            yield from self.resource(raw, scope.inside(name, turn), here, parent, depth)

    def resource(
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: str, depth: int
    ) -> Iterator[Piece | Unknown]:
        try:
            if closed(scope.worked_out(raw.get("condition", True), (*at, "condition")), scope.budget) is False:
                return
        except OpenError as error:
            if error.later:
                yield Unknown(".".join((*at, "condition")))
                return  # whether it is deployed at all is known at up
        kind = scope.worked_out(raw.get("type"), (*at, "type"))
        if isinstance(kind, Unknown) or missing(kind) is not None:
            yield _unseen(kind, (*at, "type"))
            return
        if not isinstance(kind, str):
            return
        whole = kind if not parent or "." in kind.split("/", 1)[0] else f"{parent}/{kind}"
        # The symbolic form names a type together with its version.
        whole = whole.partition("@")[0]
        if whole.lower() == _DEPLOYMENT:
            yield from self.nested(raw, scope, at, depth)
            return
        read = (name for name in raw if name not in {"resources", "copy", "condition", "dependsOn"})
        names = read if self.wanted(whole.lower()) else (name for name in _OF_RESOURCE if name in raw)
        body = {name: scope.worked_out(raw[name], (*at, name)) for name in names}
        yield Piece(whole, _nest(at, body), at)
        yield from self.resources(raw.get("resources"), scope, (*at, "resources"), whole, depth + 1)

    def nested(self, raw: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        """A deployment inside a template: with names of its own, or with those of the template around it."""
        inner = (*at, "properties")
        properties = raw.get("properties")
        if not isinstance(properties, Mapping):
            yield _unseen(properties, inner)
            return
        template, link = properties.get("template"), properties.get("templateLink")
        if isinstance(link, Mapping) and template is None:
            template = self.parts.get(str(scope.worked_out(link.get("relativePath"), (*inner, "templateLink"))))
            own = True
        else:
            own = str(dig(properties, "expressionEvaluationOptions", "scope")).lower() == "inner"
        if template is None:
            if link is not None:
                yield Unknown(".".join((*inner, "templateLink")), ELSEWHERE, unresolved=not scope.library)
            return
        if isinstance(template, str):
            template = _read(scope.worked_out(template, (*inner, "template")))
        if not isinstance(template, Mapping):
            yield _unseen(template, (*inner, "template"))
            return
        if own:
            given = _given(scope.worked_out(properties.get("parameters"), (*inner, "parameters")))
            if isinstance(given, Unknown):
                given = dict.fromkeys(map(str.lower, _names(template)), given)
            linked = "is given by a parameters file kept elsewhere" if "parametersLink" in properties else ""
            scope = Scope(
                template, given, unasked=linked, library=scope.library, around=scope.around, budget=scope.budget
            )
        yield from self.template(template, _placed(scope, raw), (*inner, "template"), depth + 1)


def _placed(scope: Scope, raw: Mapping[str, Any]) -> Scope:
    """The scope of a nested deployment, which may go to a group of its own."""
    if raw.get("resourceGroup") is None and raw.get("subscriptionId") is None:
        return scope
    around = Around(location=scope.worked_out(raw.get("location"), ("location",)))
    return replace(scope, around=around)


def _nest(path: Path, body: Any) -> dict[str, Any]:
    for name in reversed(path):
        body = {name: body}
    return dict(body)
