"""The rules as Azure Policy: definitions and initiative in the subscription, assigned at the scope of the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pulumi
from pulumi_azure_native import authorization

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.azure_policy_assignment import Assigned


class StackAzurePolicy(pulumi.ComponentResource):
    """Definitions, the initiative of them, and its assignment."""

    def __init__(self, spec: Assigned, *, depends_on: list[pulumi.Resource]) -> None:
        super().__init__("amlstack:infra:AzurePolicy", "azure-policy")
        inside = pulumi.ResourceOptions(parent=self)
        definitions = [self._definition(one, inside) for one in spec.definitions]
        initiative = spec.initiative
        whole = authorization.PolicySetDefinition(
            "initiative",
            policy_set_definition_name=initiative["name"],
            display_name=initiative["properties"]["displayName"],
            description=initiative["properties"]["description"],
            policy_type="Custom",
            metadata=initiative["properties"]["metadata"],
            parameters=_parameters(initiative["properties"]["parameters"]),
            policy_definitions=[
                authorization.PolicyDefinitionReferenceArgs(
                    policy_definition_id=one["policyDefinitionId"],
                    policy_definition_reference_id=one["policyDefinitionReferenceId"],
                    parameters=_values({name: each["value"] for name, each in one["parameters"].items()}),
                )
                for one in initiative["properties"]["policyDefinitions"]
            ],
            opts=pulumi.ResourceOptions(parent=self, depends_on=definitions),
        )
        self.assignment = authorization.PolicyAssignment(
            "assignment",
            policy_assignment_name=initiative["name"],
            scope=spec.scope.lstrip("/"),
            display_name=initiative["properties"]["displayName"],
            description=initiative["properties"]["description"],
            policy_definition_id=spec.initiative_id,
            enforcement_mode="Default",
            parameters=_values(spec.effects),
            non_compliance_messages=[
                authorization.NonComplianceMessageArgs(message=message, policy_definition_reference_id=reference)
                for reference, message in spec.messages.items()
            ],
            opts=pulumi.ResourceOptions(parent=self, depends_on=[whole, *depends_on]),
        )
        self.assignment_id = f"{spec.scope}/providers/Microsoft.Authorization/policyAssignments/{initiative['name']}"
        self.register_outputs({"assignmentId": self.assignment_id})

    @staticmethod
    def _definition(one: Mapping[str, Any], opts: pulumi.ResourceOptions) -> pulumi.Resource:
        properties = one["properties"]
        made: pulumi.Resource = authorization.PolicyDefinition(
            one["name"],
            policy_definition_name=one["name"],
            display_name=properties["displayName"],
            description=properties["description"],
            policy_type="Custom",
            mode=properties["mode"],
            metadata=properties["metadata"],
            parameters=_parameters(properties["parameters"]),
            policy_rule=properties["policyRule"],
            opts=opts,
        )
        return made


def _parameters(declared: Mapping[str, Any]) -> dict[str, authorization.ParameterDefinitionsValueArgs]:
    return {
        name: authorization.ParameterDefinitionsValueArgs(
            type=one["type"],
            allowed_values=one.get("allowedValues"),
            default_value=one.get("defaultValue"),
            metadata=authorization.ParameterDefinitionsValueMetadataArgs(
                display_name=one["metadata"]["displayName"], description=one["metadata"].get("description")
            ),
        )
        for name, one in declared.items()
    }


def _values(given: Mapping[str, Any]) -> dict[str, authorization.ParameterValuesValueArgs]:
    return {name: authorization.ParameterValuesValueArgs(value=value) for name, value in given.items()}
