"""Microsoft.OperationalInsights/workspaces and Microsoft.Insights/components, the resources only."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from amlstack.sandbox.arm.entra import TENANT
from amlstack.sandbox.arm.refusals import invalid
from amlstack.sandbox.kinds.base import Body, KindContext, NameRule, ResourceKind, Schema

if TYPE_CHECKING:
    from amlstack.sandbox.arm.ids import ArmPath
    from amlstack.sandbox.store.store import ResourceRow

NAMESPACE = uuid.UUID("8f2f7f5e-6d0c-4c1c-9d57-0c6f0e4a9b11")


class LogWorkspaces(ResourceKind):
    """Log Analytics workspaces."""

    type = "Microsoft.OperationalInsights/workspaces"
    noun = "a Log Analytics workspace"
    names = NameRule(
        r"[A-Za-z0-9][A-Za-z0-9-]{2,61}[A-Za-z0-9]", "4 to 63 letters, digits and hyphens, no hyphen at either end"
    )
    schema = Schema(
        "operationalinsights",
        "WorkspaceArgs",
        frozenset({"resourceGroupName", "workspaceName"}),
        # Unlike elsewhere, the SKU stands among the properties.
        envelope=frozenset({"location", "tags", "identity"}),
    )
    ticks = 1
    patches = True

    def fill(self, context: KindContext, path: ArmPath, body: Body) -> Body:
        """Pay-as-you-go and 30 days, unless the body says otherwise."""
        del context, path
        return {**body, "properties": {"sku": {"name": "PerGB2018"}, "retentionInDays": 30, **body["properties"]}}

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """The customer id by which agents would know it."""
        del context
        return {"customerId": str(uuid.uuid5(NAMESPACE, resource.key))}


class InsightsComponents(ResourceKind):
    """Application Insights components."""

    type = "Microsoft.Insights/components"
    noun = "an Application Insights component"
    names = NameRule(
        r"[-\w().]{0,259}[-\w()]",
        "1 to 260 letters, digits, underscores, hyphens, periods and parentheses, no period at the end",
    )
    schema = Schema(
        "applicationinsights",
        "ComponentArgs",
        frozenset({"resourceGroupName", "resourceName"}),
        envelope=frozenset({"location", "tags", "kind"}),
        wire={
            "applicationType": "Application_Type",
            "flowType": "Flow_Type",
            "requestSource": "Request_Source",
            "hockeyAppId": "HockeyAppId",
            "samplingPercentage": "SamplingPercentage",
            "disableIpMasking": "DisableIpMasking",
            "disableLocalAuth": "DisableLocalAuth",
            "immediatePurgeDataOn30Days": "ImmediatePurgeDataOn30Days",
            "workspaceResourceId": "WorkspaceResourceId",
            "ingestionMode": "IngestionMode",
            "retentionInDays": "RetentionInDays",
            "forceCustomerStorageForProfiler": "ForceCustomerStorageForProfiler",
        },
    )
    made_status = 200

    def check(self, context: KindContext, path: ArmPath, body: Body, before: ResourceRow | None) -> None:
        """The type of application is required, and the log workspace must exist."""
        del path, before
        properties = body["properties"]
        if "Application_Type" not in properties:
            raise invalid("properties.Application_Type", "the required property is missing.")
        logs = properties.get("WorkspaceResourceId")
        if logs is not None and context.store.resources.get(logs) is None:
            raise invalid("properties.WorkspaceResourceId", f"the workspace '{logs}' was not found.")

    def show(self, context: KindContext, resource: ResourceRow) -> Body:
        """Identifiers that a client would put into its configuration."""
        key = str(uuid.uuid5(NAMESPACE, resource.key))
        return {
            "AppId": str(uuid.uuid5(NAMESPACE, f"{resource.key}/app")),
            "ApplicationId": resource.name,
            "ConnectionString": f"InstrumentationKey={key};IngestionEndpoint={context.base}/",
            "InstrumentationKey": key,
            "TenantId": TENANT,
        }


LOGS = LogWorkspaces()
COMPONENTS = InsightsComponents()
