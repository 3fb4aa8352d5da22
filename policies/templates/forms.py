"""Which resources hold a template, and the paths of it and of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policies.evaluation.facts import GAP, Unknown, dig
from policies.templates.deployed import TemplateSource
from policies.templates.names import Around
from policies.templates.scope import is_template_expression

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        parts: A list of templates that it refers to by ``path``, each with ``template``; None where there is none.
    """

    template: Path
    links: tuple[Path, ...] = ()
    parameters: tuple[Path, ...] = ()
    parameter_links: tuple[Path, ...] = ()
    library: bool = False
    parts: Path | None = None


def _deployment(*before: str) -> Form:
    return Form(
        (*before, "template"),
        links=((*before, "templateLink"),),
        parameters=((*before, "parameters"),),
        parameter_links=((*before, "parametersLink"),),
    )


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
    "blueprint:TemplateArtifact": Form(("template",), parameters=(("parameters",),), library=True),
    "solutions:ApplicationDefinition": Form(("mainTemplate",), library=True),
    "securityinsights:ContentTemplate": Form(("mainTemplate",), library=True),
    "hybridnetwork:VendorSkus": Form(("managedApplicationTemplate",), library=True),
    "operationsmanagement:ManagementConfiguration": Form(("properties", "template"), library=True),
}
"""azure-native's resources, by module and type. A library is judged by its own values, and what its user gives where it
is deployed."""

CLASSIC = Form(
    ("templateContent",),
    links=(("templateSpecVersionId",),),
    parameters=(("parametersContent",), ("parametersBody",), ("parameters",)),
)
"""The deployments of the classic Azure provider; the oldest keeps its template at `OLDEST`."""

OLDEST: Path = ("templateBody",)


def of(kind: str) -> Form:
    """The form of a resource by module and type; of whatever is not azure-native's, the classic provider's."""
    if kind in FORMS:
        return FORMS[kind]
    name = kind.rpartition(":")[2]
    by_type = {known.rpartition(":")[2]: form for known, form in FORMS.items()}
    if name.startswith(("DeploymentAt", "DeploymentStacksWhatIf")):
        return FORMS["resources:Deployment"]
    if name.startswith("DeploymentStack"):
        return FORMS["resources:DeploymentStackAtResourceGroup"]
    return by_type.get(name, CLASSIC)


def sources(form: Form, props: Any, groups: Mapping[str, Any]) -> Iterator[TemplateSource]:
    """The templates that a resource holds, or says to be kept elsewhere.

    Args:
        form: Its form.
        props: Its properties.
        groups: Locations of the stack's resource groups, by name in small letters.
    """
    at = form.template
    if form is CLASSIC and dig(props, *at) is None:
        at = OLDEST
    template = dig(props, *at)
    parameters = next((found for path in form.parameters if (found := dig(props, *path)) is not None), None)
    if at == OLDEST and isinstance(parameters, Mapping):  # plain values
        parameters = {name: {"value": value} for name, value in parameters.items()}
    group = dig(props, "resourceGroupName")
    around = Around(
        group=group if isinstance(group, str) else GAP,
        group_location=groups.get(group.lower()) if isinstance(group, str) else None,
        location=dig(props, "location"),
    )
    yield TemplateSource(
        template,
        at,
        parameters=_from_a_blueprint(parameters) if form.library else parameters,
        elsewhere=None if template is not None else next((path for path in form.links if dig(props, *path)), None),
        linked_parameters=any(dig(props, *path) is not None for path in form.parameter_links),
        library=form.library,
        parts=_parts(dig(props, *form.parts)) if form.parts else None,
        around=around,
    )


def _parts(listed: Any) -> dict[str, Any]:
    each = listed if isinstance(listed, list) else []
    return {str(one.get("path")): one.get("template") for one in each if isinstance(one, Mapping)}


def _from_a_blueprint(parameters: Any) -> Any:
    """Values that are expressions themselves: of whatever keeps the template, and not known before it is deployed."""
    if not isinstance(parameters, Mapping):
        return parameters
    return {
        name: Unknown(f"parameters.{name}", f"is `{given['value']}`: it is given where the template is deployed")
        if isinstance(given, Mapping) and is_template_expression(given.get("value"))
        else given
        for name, given in parameters.items()
    }
