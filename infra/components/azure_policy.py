"""The rules as Azure Policy: definitions and initiative in the subscription, assigned at the scope of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from infra import resource_types
from infra.components.registration import register

if TYPE_CHECKING:
    from infra.azure_policy_assignment import Assigned


class StackAzurePolicy(pulumi.ComponentResource):
    """Definitions, the initiative of them, and its assignment."""

    def __init__(self, spec: Assigned, *, depends_on: list[pulumi.Resource]) -> None:
        super().__init__("amlstack:infra:AzurePolicy", "azure-policy")
        definitions = [
            register(
                resource_types.POLICY_DEFINITION,
                one["name"],
                {"policyDefinitionName": one["name"], **one["properties"]},
                pulumi.ResourceOptions(parent=self),
            )
            for one in spec.definitions
        ]
        name, properties = spec.initiative["name"], spec.initiative["properties"]
        initiative = register(
            resource_types.POLICY_SET_DEFINITION,
            "initiative",
            {"policySetDefinitionName": name, **properties},
            pulumi.ResourceOptions(parent=self, depends_on=definitions),
        )
        assignment = {
            "policyAssignmentName": name,
            "scope": spec.scope.lstrip("/"),
            "displayName": properties["displayName"],
            "description": properties["description"],
            "policyDefinitionId": spec.initiative_id,
            "enforcementMode": "Default",
            "parameters": {parameter: {"value": effect} for parameter, effect in spec.effects.items()},
            "nonComplianceMessages": [
                {"message": message, "policyDefinitionReferenceId": reference}
                for reference, message in spec.messages.items()
            ],
        }
        opts = pulumi.ResourceOptions(parent=self, depends_on=[initiative, *depends_on])
        register(resource_types.POLICY_ASSIGNMENT, "assignment", assignment, opts)
        self.assignment_id = f"{spec.scope}/providers/Microsoft.Authorization/policyAssignments/{name}"
        self.register_outputs({"assignmentId": self.assignment_id})
