"""Which resources hold a template, and the paths of it and of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from policies.evaluation.door import read_json
from policies.evaluation.facts import Unknown, dig
from policies.templates.names import Around
from policies.templates.scope import is_template_expression

if TYPE_CHECKING:
    from policies.evaluation.facts import Path


@dataclass(frozen=True, slots=True)
class Form:
    """Where one kind of resource keeps a template.

    Attributes:
        template: The template.
        links: Links to templates that are kept elsewhere.
        parameters: Values of its parameters; the first that is there counts.
        parameter_links: Links to such values kept elsewhere.
        library: Whether it is only kept, for others to deploy.
        asked: Whether parameters may be given expressions of whoever uses what keeps the template.
        parts: A list of templates that it refers to by ``path``, each with ``template``; None where there is none.
    """

    template: Path
    links: tuple[Path, ...] = ()
    parameters: tuple[Path, ...] = ()
    parameter_links: tuple[Path, ...] = ()
    library: bool = False
    asked: bool = False
    parts: Path | None = None


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


def _deployment(*before: str) -> Form:
    return Form(
        (*before, "template"),
        links=((*before, "templateLink"),),
        parameters=((*before, "parameters"),),
        parameter_links=((*before, "parametersLink"),),
    )


_POLICY = ("policyRule", "then", "details", "deployment", "properties")
_OF_A_POLICY = Form((*_POLICY, "template"), parameters=((*_POLICY, "parameters"),), asked=True)
"""Azure deploys it as soon as the policy is assigned, and no assignment is judged: what is open in it is refused."""

FORMS: Mapping[str, Form] = {
    "resources:Deployment": _deployment("properties"),
    "resources:DeploymentAtScope": _deployment("properties"),
    "resources:DeploymentAtSubscriptionScope": _deployment("properties"),
    "resources:DeploymentAtManagementGroupScope": _deployment("properties"),
    "resources:DeploymentAtTenantScope": _deployment("properties"),
    "resources:DeploymentStackAtResourceGroup": _deployment(),
    "resources:DeploymentStackAtSubscription": _deployment(),
    "resources:DeploymentStackAtManagementGroup": _deployment(),
    "resources:DeploymentStacksWhatIfResultsAtResourceGroup": _deployment("properties"),
    "resources:DeploymentStacksWhatIfResultsAtSubscription": _deployment("properties"),
    "resources:DeploymentStacksWhatIfResultsAtManagementGroup": _deployment("properties"),
    "resources:TemplateSpecVersion": Form(("mainTemplate",), library=True, parts=("linkedTemplates",)),
    "blueprint:TemplateArtifact": Form(("template",), parameters=(("parameters",),), library=True, asked=True),
    "blueprint:Assignment": Form(("template",), links=(("blueprintId",), ("versionId",))),
    "solutions:Application": Form(("mainTemplate",), links=(("applicationDefinitionId",), ("plan",))),
    "solutions:ApplicationDefinition": Form(("mainTemplate",), library=True),
    "securityinsights:ContentTemplate": Form(("mainTemplate",), library=True),
    "hybridnetwork:VendorSkus": Form(("managedApplicationTemplate",), library=True),
    "operationsmanagement:ManagementConfiguration": Form(("properties", "template"), library=True),
    "authorization:PolicyDefinition": _OF_A_POLICY,
    "authorization:PolicyDefinitionAtManagementGroup": _OF_A_POLICY,
    "authorization:PolicyDefinitionVersion": _OF_A_POLICY,
    "authorization:PolicyDefinitionVersionAtManagementGroup": _OF_A_POLICY,
}
"""azure-native's resources, by module and type. A library is judged by its own values, and what its user gives where it
is deployed."""

DEPLOYMENT = "microsoft.resources/deployments"
OF_ARM: Mapping[str, Form] = {
    DEPLOYMENT: _deployment("properties"),
    "microsoft.resources/deploymentstacks": _deployment("properties"),
    "microsoft.resources/deploymentstackswhatifresults": _deployment("properties"),
    "microsoft.resources/templatespecs/versions": Form(
        ("properties", "mainTemplate"), library=True, parts=("properties", "linkedTemplates")
    ),
    "microsoft.blueprint/blueprints/artifacts": Form(
        ("properties", "template"), parameters=(("properties", "parameters"),), library=True, asked=True
    ),
    "microsoft.blueprint/blueprintassignments": Form(
        ("properties", "template"), links=(("properties", "blueprintId"),)
    ),
    "microsoft.solutions/applications": Form(
        ("properties", "mainTemplate"), links=(("properties", "applicationDefinitionId"), ("plan",))
    ),
    "microsoft.solutions/applicationdefinitions": Form(("properties", "mainTemplate"), library=True),
    "microsoft.operationalinsights/workspaces/providers/contenttemplates": Form(
        ("properties", "mainTemplate"), library=True
    ),
    "microsoft.securityinsights/contenttemplates": Form(("properties", "mainTemplate"), library=True),
    "microsoft.hybridnetwork/vendors/vendorskus": Form(("properties", "managedApplicationTemplate"), library=True),
    "microsoft.operationsmanagement/managementconfigurations": Form(
        ("properties", "properties", "template"), library=True
    ),
    "microsoft.authorization/policydefinitions": replace(
        _OF_A_POLICY,
        template=("properties", *_OF_A_POLICY.template),
        parameters=tuple(("properties", *path) for path in _OF_A_POLICY.parameters),
    ),
    "microsoft.authorization/policydefinitions/versions": replace(
        _OF_A_POLICY,
        template=("properties", *_OF_A_POLICY.template),
        parameters=tuple(("properties", *path) for path in _OF_A_POLICY.parameters),
    ),
}
"""The same in the resource manager's own layout, by type in small letters."""

CLASSIC = Form(
    ("templateContent",),
    links=(("templateSpecVersionId",), ("applicationDefinitionId",), ("plan",), ("versionId",)),
    parameters=(("parametersContent",), ("parametersBody",), ("parameters",)),
)
"""The deployments of the classic Azure provider; the oldest keeps its template at `OLDEST`."""

OLDEST: Path = ("templateBody",)
_KEPT_BY_TERRAFORM = Form(("mainTemplate",), library=True)


def of(kind: str) -> Form:
    """The form of a resource by module and type; of whatever is not azure-native's, that of Terraform's deployments."""
    if kind in FORMS:
        return FORMS[kind]
    name = kind.rpartition(":")[2]
    by_type = {known.rpartition(":")[2]: form for known, form in FORMS.items()}
    if name.startswith("PolicyDefinition"):
        return _OF_A_POLICY
    if name.startswith(("DeploymentAt", "DeploymentStacksWhatIf")):
        return FORMS["resources:Deployment"]
    if name.startswith("DeploymentStack"):
        return FORMS["resources:DeploymentStackAtResourceGroup"]
    return by_type.get(name, _KEPT_BY_TERRAFORM if name.endswith("Definition") else CLASSIC)


def source(form: Form, props: Any, at: Path, around: Around) -> TemplateSource:
    """The template that a resource holds, or says to be kept elsewhere.

    Args:
        form: Its form.
        props: Its properties, in which it lies at a path.
        at: The path.
        around: Where it is deployed.
    """
    where = (*at, *form.template)
    if form is CLASSIC and dig(props, *where) is None:
        where = (*at, *OLDEST)
    template = dig(props, *where)
    parameters = next((found for path in form.parameters if (found := dig(props, *at, *path)) is not None), None)
    if where[-1:] == OLDEST and isinstance(parameters, Mapping):  # plain values
        parameters = {name: {"value": value} for name, value in parameters.items()}
    return TemplateSource(
        template,
        where,
        parameters=_from_outside(parameters, form) if form.asked else parameters,
        elsewhere=next((path for path in form.links if dig(props, *at, *path)), None),
        linked_parameters=any(dig(props, *at, *path) is not None for path in form.parameter_links),
        library=form.library,
        parts=_parts(dig(props, *at, *form.parts)) if form.parts else None,
        around=around,
    )


def _parts(listed: Any) -> dict[str, Any]:
    each = listed if isinstance(listed, list) else []
    made: dict[str, Any] = {}
    for one in each:
        if isinstance(one, Mapping):
            path = str(one.get("path"))
            twice = Unknown(path, "is the path of two linked templates", unresolved=True)
            made[path] = twice if path in made else read(one.get("template"))
    return made


def read(value: Any) -> Any:
    """A template or parameters, which may also be JSON in a text; None for a text that cannot be read."""
    if isinstance(value, str):
        try:
            return read_json(value)
        except ValueError:
            return None
    return value


def _from_outside(parameters: Any, form: Form) -> Any:
    """Values that are expressions themselves: of whatever keeps the template, and not known before it is deployed."""
    if not isinstance(parameters, Mapping):
        return parameters
    why = "it is given where the template is deployed"
    return {
        name: Unknown(f"parameters.{name}", f"is `{given['value']}`: {why}", unresolved=not form.library)
        if isinstance(given, Mapping) and is_template_expression(given.get("value"))
        else given
        for name, given in parameters.items()
    }
