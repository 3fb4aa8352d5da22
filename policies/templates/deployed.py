"""What a template deploys: its resources, those of loops, children and nested deployments included."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from amlstack.base.arm_language.values import OpenError
from policies.evaluation.arm_ids import segments
from policies.evaluation.facts import ELSEWHERE, GAP, Unknown, dig
from policies.templates import forms
from policies.templates.names import Around
from policies.templates.scope import Path, Scope, is_template_expression
from policies.templates.values import TOO_LARGE, Budget, closed, missing

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 8
"""Most levels of deployments within deployments and of children within resources; Azure takes fewer."""

_OF_RESOURCE = ("type", "name", "location", "tags")


@dataclass(frozen=True, slots=True)
class Piece:
    """One resource that a template deploys.

    Attributes:
        kind: Its full type, as written.
        props: Properties in which it lies at `at`, worked out as far as they can be; where its type is not wanted,
            name, place and tags alone.
        at: Its path.
        name: Its full name, those of its parents before its own; None where it is not known.
        group: Its resource group; None where it is not known.
    """

    kind: str
    props: Mapping[str, Any]
    at: Path
    name: str | None = None
    group: str | None = None


def pieces(source: forms.TemplateSource, wanted: Callable[[str], bool]) -> Iterator[Piece | Unknown]:
    """All that a template deploys, and each part that cannot be seen.

    Args:
        source: The template.
        wanted: Whether a resource is read whole, by its type in small letters.
    """
    if source.elsewhere is not None:
        yield Unknown(".".join(source.elsewhere), ELSEWHERE, unresolved=True)
    if source.template is None:
        return
    try:
        yield from _Walk(wanted, source.parts or {}).source(source, Budget(), 0)
    except RecursionError:
        yield Unknown(".".join(source.at), "is nested too deep to be read here", unresolved=True)


def _given(parameters: Any) -> Mapping[str, Any] | Unknown:
    """Values by name in small letters; a whole parameters file is taken, too."""
    known = forms.read(parameters)
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

    def source(self, source: forms.TemplateSource, budget: Budget, depth: int) -> Iterator[Piece | Unknown]:
        """A template with names of its own."""
        template = forms.read(source.template)
        if not isinstance(template, Mapping) or "resources" not in template:  # an asset is a mapping, too
            yield _unseen(source.template, source.at)
            return
        given = _given(source.parameters)
        if isinstance(given, Unknown):
            given = dict.fromkeys(map(str.lower, _names(template)), given)
        unasked = "is given by a parameters file kept elsewhere" if source.linked_parameters else ""
        scope = Scope(template, given, unasked=unasked, library=source.library, around=source.around, budget=budget)
        yield from self.template(template, scope, source.at, depth)

    def template(self, template: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        listed = template.get("resources")
        if isinstance(listed, Mapping) and template.get("languageVersion") == "2.0":
            # By their symbolic names; only there `existing` means that nothing is deployed.
            listed = {name: _deployed_of(raw) for name, raw in listed.items() if not _exists(raw) or "resources" in raw}
        yield from self.resources(listed, scope, (*at, "resources"), _TOP, depth)

    def resources(self, listed: Any, scope: Scope, at: Path, parent: _Parent, depth: int) -> Iterator[Piece | Unknown]:
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
                yield from self.looped(raw, scope, (*at, str(key)), parent, depth)
            else:
                yield _unseen(raw, (*at, str(key)))

    def looped(
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: _Parent, depth: int
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
        self, raw: Mapping[str, Any], scope: Scope, at: Path, parent: _Parent, depth: int
    ) -> Iterator[Piece | Unknown]:
        if (named := _named_by_expression(raw, at)) is not None:
            yield named
            return
        itself = True
        try:
            if closed(scope.worked_out(raw.get("condition", True), (*at, "condition")), scope.budget) is False:
                if not raw.get("resources"):
                    return
                itself = False  # Azure deploys its children all the same: a condition goes for one resource
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
        name = scope.worked_out(raw.get("name"), (*at, "name"))
        around = _Parent(*_full(kind, name, parent))
        whole = around.kind.lower()
        if not itself:
            yield from self.resources(raw["resources"], scope, (*at, "resources"), around, depth + 1)
            return
        if whole == forms.DEPLOYMENT:
            yield from self.nested(raw, scope, at, depth)
            return
        if (form := forms.OF_ARM.get(whole)) is not None:
            yield from self.kept(form, raw, scope, at, depth)
        read = (name for name in raw if name not in {"resources", "copy", "condition", "dependsOn"})
        names = read if self.wanted(whole) else (name for name in _OF_RESOURCE if name in raw)
        body = {name: scope.worked_out(raw[name], (*at, name)) for name in names}
        group = scope.around.group
        yield Piece(around.kind, _nest(at, body), at, around.name, None if GAP in group else group)
        yield from self.resources(raw.get("resources"), scope, (*at, "resources"), around, depth + 1)

    def kept(
        self, form: forms.Form, raw: Mapping[str, Any], scope: Scope, at: Path, depth: int
    ) -> Iterator[Piece | Unknown]:
        """A template that a resource of a template holds, of a deployment stack or a template specification."""
        if depth > DEEPEST:
            yield Unknown(".".join(at), "is nested too deep to be read here", unresolved=not scope.library)
            return
        where = (*at, "properties")
        properties = scope.worked_out(raw.get("properties"), where)
        if not isinstance(properties, Mapping):
            yield _unseen(properties, where)
            return
        source = forms.source(
            form, _nest(at, {"plan": raw.get("plan"), "properties": properties}), at, _placed(scope, raw)
        )
        if source.elsewhere is not None:
            yield Unknown(".".join(source.elsewhere), ELSEWHERE, unresolved=not scope.library)
        if source.template is not None:
            source = replace(source, library=source.library or scope.library)
            yield from replace(self, parts=source.parts or {}).source(source, scope.budget, depth + 1)

    def nested(self, raw: Mapping[str, Any], scope: Scope, at: Path, depth: int) -> Iterator[Piece | Unknown]:
        """A deployment inside a template: with names of its own, or with those of the template around it."""
        inner = (*at, "properties")
        properties = raw.get("properties")
        if not isinstance(properties, Mapping):
            yield _unseen(properties, inner)
            return
        if (named := _named_by_expression(properties, inner)) is not None:
            yield named
            return
        template, link = properties.get("template"), properties.get("templateLink")
        if isinstance(link, Mapping) and template is None:
            template = self.parts.get(str(scope.worked_out(link.get("relativePath"), (*inner, "templateLink"))))
            own = True
        else:
            said = dig(properties, "expressionEvaluationOptions", "scope")
            if str(said).lower() not in {"none", "notspecified", "outer", "inner"}:
                yield _unseen(said, (*inner, "expressionEvaluationOptions"))
                return
            own = str(said).lower() == "inner"
        if link is not None and (template is None or properties.get("template") is not None):
            yield Unknown(".".join((*inner, "templateLink")), ELSEWHERE, unresolved=not scope.library)
        if template is None:
            return
        if isinstance(template, str):
            template = forms.read(scope.worked_out(template, (*inner, "template")))
        if not isinstance(template, Mapping):
            yield _unseen(template, (*inner, "template"))
            return
        around = _placed(scope, raw)
        if own:
            source = forms.TemplateSource(
                template,
                (*inner, "template"),
                parameters=scope.worked_out(properties.get("parameters"), (*inner, "parameters")),
                linked_parameters="parametersLink" in properties,
                library=scope.library,
                around=around,
            )
            yield from self.source(source, scope.budget, depth + 1)
            return
        yield from self.template(template, replace(scope, around=around), (*inner, "template"), depth + 1)


class _Parent(NamedTuple):
    """Full type and name of what a resource is a child of, as far as the name is known."""

    kind: str = ""
    name: str | None = ""


_TOP = _Parent()


def _full(kind: str, name: Any, parent: _Parent) -> tuple[str, str | None]:
    """Full type and name of a resource, which may name itself below its parent alone."""
    # The symbolic form names a type together with its version.
    own = "/".join(segments(kind.partition("@")[0]))
    child = parent.kind and "." not in own.split("/", 1)[0]
    named = name if isinstance(name, str) else None
    if child and named is not None:
        named = None if parent.name is None else f"{parent.name}/{named}"
    head, _, extension = own.rpartition("/providers/")
    if head and "." not in extension.split("/", 1)[0]:  # an extension, whose provider stands in its name
        provider = next((part for part in segments(named or "") if "." in part), "")
        own = f"{provider}/{extension}"
    elif head:
        own = extension
    return f"{parent.kind}/{own}" if child else own, named


def _named_by_expression(raw: Mapping[str, Any], at: Path) -> Unknown | None:
    """The place at which an expression makes a name that decides how to read a resource; None where none does."""
    made = next((str(key) for key in raw if is_template_expression(key)), None)
    return None if made is None else Unknown(".".join((*at, made)), "is a name made by an expression", unresolved=True)


def _deployed_of(raw: Any) -> Any:
    """The deployed parts of a resource: of one that exists, its children alone."""
    return {key: raw[key] for key in ("type", "name", "resources") if key in raw} if _exists(raw) else raw


def _exists(raw: Any) -> bool:
    return isinstance(raw, Mapping) and raw.get("existing") is True


def _placed(scope: Scope, raw: Mapping[str, Any]) -> Around:
    """The place of a deployment within another, which may go to a group of its own."""
    if raw.get("resourceGroup") is None and raw.get("subscriptionId") is None:
        return scope.around
    group = scope.worked_out(raw.get("resourceGroup"), ("resourceGroup",))
    location = scope.worked_out(raw.get("location"), ("location",))
    return Around(group=group if isinstance(group, str) and group else GAP, location=location)


def _nest(path: Path, body: Any) -> dict[str, Any]:
    for name in reversed(path):
        body = {name: body}
    return dict(body)
