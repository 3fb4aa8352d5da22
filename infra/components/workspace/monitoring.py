"""Log analytics, and application insights that write to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra.components import azure_native, tokens

if TYPE_CHECKING:
    from infra.components.workspace.place import Place


def register_logs(place: Place) -> pulumi.CustomResource:
    """Register the log analytics workspace."""
    properties = {
        "workspaceName": place.names.logs,
        **place.common,
        "sku": {"name": "PerGB2018"},
        "retentionInDays": 30,
    }
    return azure_native.register(tokens.LOGS, "logs", properties, place.opts)


def register_insights(place: Place, written_to: pulumi.Resource | None) -> pulumi.CustomResource:
    """Register application insights.

    Args:
        place: Where.
        written_to: The log analytics workspace; None when it is none of the stack's.
    """
    properties = {
        "resourceName": place.names.insights,
        **place.common,
        "kind": "web",
        "applicationType": "web",
        "ingestionMode": "LogAnalytics",
        "workspaceResourceId": place.names.id("logs"),
        # As azure-native's classes register what is not given.
        "flowType": "Bluefield",
        "requestSource": "rest",
        "publicNetworkAccessForIngestion": "Enabled",
        "publicNetworkAccessForQuery": "Enabled",
    }
    after_logs = pulumi.ResourceOptions(
        depends_on=[written_to] if written_to else [],
        # With them anybody writes telemetry; azure-native marks neither.
        additional_secret_outputs=["connectionString", "instrumentationKey"],
    )
    opts = pulumi.ResourceOptions.merge(place.opts, after_logs)
    return azure_native.register(tokens.INSIGHTS, "insights", properties, opts)
