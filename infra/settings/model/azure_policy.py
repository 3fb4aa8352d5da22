"""The rules at the gate of Azure itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from infra.settings.model.base import SettingsModel


class AzurePolicy(SettingsModel):
    """The rules at Azure's own gate."""

    effect: Literal["audit", "deny"] = Field(
        "audit",
        description="audit: what breaks a rule is reported; deny: what breaks a mandatory one is refused, by whatever "
        "tool it comes.",
    )
    scope: Literal["resourceGroup", "subscription"] = Field(
        "resourceGroup", description="What the rules reach: the stack's resource group, or the whole subscription."
    )
    exclude: tuple[str, ...] = Field((), description="Codes of rules that are left out.")
